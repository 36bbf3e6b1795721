"""Plan a stack, compare the plan with the approved plan, and check what the run registers.

A run registers each topic once, and Pulumi deletes no topic of a resource that Headwater has not registered.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import attrs

from headwater.kafka import ClusterReader, Connection, KafkaClusterReader
from headwater.model.problems import Problem, ProblemCode, ProblemsError
from headwater.model.records import StackIdentity
from headwater.operations.observation import observe_cluster
from headwater.operations.planning import plan_documents
from headwater.planner import Plan
from headwater.planner.phrases import listed
from headwater.planner.run import Run
from headwater.planner.upgrade import with_recorded_versions
from headwater.pulumi.other_resources import other_resources, relevant_resources
from headwater.pulumi.registration import Registration, TopicResource
from headwater.pulumi.settings import APPROVED_PLAN, StackSettings
from headwater.pulumi.stack_state import Properties, StackState, urn_name, with_exported
from headwater.report.plan_json import ApprovedPlan, plan_digest, read_approved, topic_differences


@attrs.frozen
class Planned:
    """The plan of a stack, None if the cluster could not be read; `problems` include problems of settings."""

    plan: Plan | None
    problems: tuple[Problem, ...]
    run: Run | None = None
    """What the plan was made of, to check deletions again with the evidence of a later time."""


def plan_stack(
    settings: StackSettings,
    state: StackState,
    reader_for: Callable[[Connection], ClusterReader] = KafkaClusterReader,
    *,
    stack: StackIdentity | None = None,
    is_only_program: bool = False,
    export: Callable[[], Mapping[str, Properties] | None] = lambda: None,
) -> Planned:
    """Return the plan; errors that a user can fix are in `problems`.

    With a `stack`, the ownership records of the cluster are compared. `is_only_program`: no other code
    registers resources in the stack. `export` reads the whole state, if `state` does not show which of its
    other resources Pulumi would delete; None if it cannot be read.
    """
    started = time.monotonic()
    if settings.connection is None:
        return Planned(None, settings.problems)
    try:
        observed = observe_cluster(
            reader_for(settings.connection),
            with_recorded_versions(settings.documents, state.records),
            state.records,
            with_ownership=settings.has_ownership_records and stack is not None,
        )
    except ProblemsError as error:
        return Planned(None, (*settings.problems, *error.problems))
    policy = attrs.evolve(settings.policy, stack=stack)
    planned = plan_documents(observed, policy, round((time.monotonic() - started) * 1000))
    run = Run(observed.compiled, (), observed.snapshot, state.records, policy)
    others = state.others
    relevant = relevant_resources(others, planned, is_only_program=is_only_program)
    if any(other.is_deleted is None for other in relevant) and (exported := export()) is not None:
        others = with_exported(others, exported)
    refused = other_resources(others, planned, is_only_program=is_only_program)
    return Planned(planned, (*settings.problems, *planned.problems, *refused), run)


_MOST_TOPICS = 10
_MOST_BYTES = 64 << 20


def approval_problem(plan: Plan, approved: str | None) -> Problem | None:
    """Return the problem of a plan that is not the approved one; None if it is, or if any plan may be made.

    All values of the plan are compared, with the ids of existing topics. The run then makes this plan: it
    does not plan again.

    Args:
        plan: The plan of this run.
        approved: A digest, or the path of a file with the JSON of a plan. An empty text approves nothing: a
            pipeline that lost the digest must not apply any plan.
    """
    if approved is None:
        return None
    try:
        expected = _read_approved(approved)
    except (OSError, ValueError) as error:
        return _not_approved(
            f"The approved plan cannot be read: {getattr(error, 'strerror', None) or error}.",
            expected="a digest, or a file of `headwater plan --format json`",
            found=approved or "nothing",
        )
    found = plan_digest(plan)
    if found == expected.digest:
        return None
    return _not_approved(
        "This is not the plan that was approved." + _list_differences(expected, plan),
        expected=expected.digest,
        found=found,
    )


def _read_approved(approved: str) -> ApprovedPlan:
    if not approved:
        raise ValueError(f"{APPROVED_PLAN} is empty")
    if approved.startswith("sha256:"):
        return read_approved(approved)
    with Path(approved).open("rb") as file:
        content = file.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise ValueError("it is too large")
    return read_approved(content.decode())


def _list_differences(approved: ApprovedPlan, plan: Plan) -> str:
    names = topic_differences(approved, plan)
    if not names:
        return ""
    more = len(names) - _MOST_TOPICS
    listed = ", ".join(names[:_MOST_TOPICS]) + (f" and {more:,} more" if more > 0 else "")
    return f" Different: {listed}."


def _not_approved(summary: str, *, expected: str, found: str) -> Problem:
    return Problem(
        code=ProblemCode.PLAN_NOT_APPROVED,
        summary=summary,
        expected=expected,
        found=found,
        why="The cluster, the stack or the documents have changed since the approval.",
        fix="Plan again, and have the new plan approved.",
    )


def registered_twice(registrations: Mapping[str, Registration]) -> Iterator[Problem]:
    """Yield a problem for each resource that several registrations name.

    The engine refuses the second registration of a URN when it has made earlier changes already. The planner
    yields problems for all plans that contain a topic twice, so this check finds only its mistakes.
    `registrations` is application id → all resources that the run registers for it.
    """
    owners: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for application, registration in registrations.items():
        for resource in registration.resources:
            kind = "Topic" if isinstance(resource, TopicResource) else "ACL"
            owners[kind, resource.name].append(application)
            alias = getattr(resource, "alias", None)
            if alias is not None:
                owners[kind, urn_name(alias)].append(application)
    for (kind, name), applications in sorted(owners.items()):
        if len(applications) > 1:
            yield Problem(
                code=ProblemCode.CONFLICTING_PARTITIONS,
                summary=f"{kind} {name} would be registered {len(applications)} times with Pulumi.",
                topic=name if kind == "Topic" else None,
                expected="one application that registers it",
                found=listed(applications),
                why="Pulumi refuses the second registration after it has made other changes.",
                fix="Declare it in the document of one application only. If no document declares it twice, "
                "report this as a defect of Headwater.",
            )
