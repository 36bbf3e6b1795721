"""Plan documents for a cluster that was observed, and compile them for counts that it does not have yet."""

from collections.abc import Iterator, Mapping, Sequence

import attrs

from headwater.compiler import compile_document
from headwater.model.compiled import CompiledApplication, InternalTopic
from headwater.model.policies import Policy
from headwater.model.problems import APPLICATION, Problem, ProblemCode
from headwater.model.topology import Sink, TopologyDocument
from headwater.operations.observation import Observation
from headwater.planner import ActionKind, Plan, PlanPolicy, plan
from headwater.planner.phrases import few_names
from headwater.planner.plans import ApplicationPlan, TopicAction
from headwater.planner.upgrade import compile_recorded


def plan_documents(observed: Observation, policy: PlanPolicy, elapsed_ms: int) -> Plan:
    """Return the plan that commands print and that Pulumi applies; `elapsed_ms` is how long it took so far.

    Errors of a user are in its `problems`.
    """
    records = observed.records or {}
    earlier = compile_recorded(observed.documents, records, observed.snapshot.partitions)
    planned = plan(observed.compiled, observed.snapshot, records, policy, elapsed_ms, earlier=earlier)
    return attrs.evolve(planned, problems=(*planned.problems, *_unknown_replication(planned)))


def _unknown_replication(planned: Plan) -> Iterator[Problem]:
    """Yield a problem for each application that depends on the brokers' unknown default."""
    for application in planned.applications:
        new = [a for a in application.actions if a.live is None and a.replication_factor < 1]
        created = [each for each in new if each.kind in (ActionKind.CREATE, ActionKind.RECREATE)]
        if created:
            yield Problem(
                code=ProblemCode.REPLICATION_FACTOR,
                summary=f"{application.application_id} uses the brokers' default replication factor, "
                "which is not known.",
                application=application.application_id,
                expected="a declared replication factor, or permission to read the brokers' "
                "`default.replication.factor`",
                found="neither",
                why="Pulumi's Kafka provider can only create topics with an explicit replication factor.",
                fix=f"Set {_declared_factors(application, created)}, or grant the user DescribeConfigs on "
                "the cluster.",
            )


def _declared_factors(application: ApplicationPlan, created: Sequence[TopicAction]) -> str:
    """Return where a document declares the replication factors of these topics."""
    internal = [each.name for each in created if isinstance(each.topic, InternalTopic)]
    sinks = [each.name for each in created if isinstance(each.topic, Sink)]
    places = [f"`replicationFactor` of {few_names(sinks)} below `topics`"] if sinks else []
    if internal and application.compiled is not None and application.compiled.is_observed:
        places.insert(0, f"`replicationFactor` of {few_names(internal)} below `observed.topics`")
    elif internal:
        places.insert(0, "`replication.factor` in the application's config")
    return " and ".join(places)


def plan_application(observed: Observation, policies: Sequence[Policy] = ()) -> Plan:
    """Return what an application that runs without Pulumi finds: problems, and what its topics should be."""
    policy = PlanPolicy(policies=tuple(policies))
    return plan(observed.compiled, observed.snapshot, observed.records or {}, policy, caller=APPLICATION)


def external_counts(document: TopologyDocument, partitions: Mapping[str, int]) -> Mapping[str, int]:
    """Return the counts of all topics but the internal ones, whose counts follow from the others."""
    internal = {topic.name for topic in compile_document(document, partitions).internal_topics}
    return {topic: count for topic, count in partitions.items() if topic not in internal}


def compile_with_counts(
    document: TopologyDocument, partitions: Mapping[str, int], sources: Mapping[str, int]
) -> CompiledApplication:
    """Return the application as it is when its source topics have other partition counts.

    `partitions` is topic → count on the cluster, `sources` is source topic → its new count. The counts of
    internal topics follow from the counts of the others, whatever they are on the cluster.
    """
    return compile_document(document, {**external_counts(document, partitions), **sources})
