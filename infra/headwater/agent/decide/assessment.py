"""Compare one application with the cluster: missing partitions, problems, parallelism.

The planner's rules find the problems, so that the agent and `pulumi up` never disagree.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import attrs

from headwater.agent.state import Parallelism, Shortfall
from headwater.compiler import StreamsConfig
from headwater.model.compiled import CompiledApplication, InternalTopic
from headwater.model.expansions import TopicCounts
from headwater.model.linear_hashing import round_start
from headwater.model.policies import Policy
from headwater.model.problems import AGENT, Problem, ProblemCode, Severity, errors
from headwater.model.topology import Sink
from headwater.planner.counts import CountedApplication, CountedTopic
from headwater.planner.policies import expansion_violations
from headwater.planner.processors import has_own_count
from headwater.planner.rules.counts import (
    over_partitioned,
    processors_and_partitions,
    source_topics_expanded,
    unsafe_expansion,
)
from headwater.planner.rules.topics import missing_source

_REFUSALS = (missing_source, over_partitioned, processors_and_partitions, unsafe_expansion)


@attrs.frozen(kw_only=True)
class Assessment:
    """How the topics of an application compare with what its document requires.

    `counts` are the partition counts of its existing internal and managed sink topics, `required` the counts
    that they should have.
    """

    id: str
    is_enabled: bool
    timeout_ms: int
    counts: TopicCounts
    required: TopicCounts
    sources: TopicCounts
    reads: frozenset[str]
    sinks: frozenset[str]
    shortfalls: tuple[Shortfall, ...]
    parallelism: tuple[Parallelism, ...]
    refusals: tuple[Problem, ...]
    """Problems that block expansion."""
    expanded: tuple[Problem, ...]
    """Problems with the missing partitions, for when autoscaling is off."""
    warnings: tuple[Problem, ...]

    @property
    def is_expandable(self) -> bool:
        return self.is_enabled and bool(self.shortfalls) and not self.refusals


def assess_application(
    compiled: CompiledApplication,
    live: TopicCounts,
    settled: TopicCounts,
    processors: int | None = None,
    *,
    has_undeclared_processors: bool = False,
    is_resharded: bool = False,
    unread: Problem | None = None,
    policies: Sequence[Policy] = (),
) -> Assessment:
    """Return the assessment.

    Args:
        compiled: the application, compiled with the counts on the cluster.
        live: the partition counts on the cluster.
        settled: the counts of its topics when they last matched its sources.
        processors: the committed number of processors; None = the partition count of the changelog topics.
        has_undeclared_processors: whether a number is committed that the document does not declare.
        is_resharded: whether a reshard has begun and is not complete.
        unread: why the number, or the journal of a reshard, could not be read; None = it was, or need not be.
        policies: policies that an expansion must not violate.
    """
    application = attrs.evolve(
        _count_application(compiled, live, settled, processors),
        has_undeclared_processors=has_undeclared_processors,
        is_resharded=is_resharded,
        unread_reshard=unread if compiled.application.processors is None else None,
        unread_count=unread,
    )
    config = StreamsConfig.from_application(compiled.application)
    found = [problem for rule in _REFUSALS for problem in rule(application)]
    shortfalls = tuple(_shortfalls_of(compiled, application, is_enabled=config.autoscaling))
    expanded = {item.topic: item.required for item in shortfalls}
    found += expansion_violations(compiled, live, expanded, policies if config.autoscaling else ())
    return Assessment(
        id=compiled.application.id,
        is_enabled=config.autoscaling,
        timeout_ms=config.autoscaling_timeout_ms,
        counts={
            topic.name: topic.live_partitions
            for topic in application.topics
            if topic.live_partitions is not None
        },
        required={topic.name: topic.partitions for topic in application.topics},
        sources={name: live[name] for name in compiled.external_sources if name in live},
        reads=frozenset(compiled.external_sources),
        sinks=frozenset(sink.topic for sink in compiled.sinks),
        shortfalls=shortfalls,
        parallelism=_parallelism_of(compiled, application),
        refusals=(*errors(compiled.problems), *errors(found)),
        expanded=tuple(source_topics_expanded(application)),
        warnings=(
            *(each for each in found if each.severity is Severity.WARNING),
            *_missing_sources(application),
        ),
    )


def _shortfalls_of(
    compiled: CompiledApplication, application: CountedApplication, *, is_enabled: bool
) -> Iterator[Shortfall]:
    """Yield the topics with too few partitions; sinks are expanded only if autoscaling is enabled."""
    for topic in application.topics:
        is_short = topic.missing_partitions and (is_enabled or topic.is_internal)
        if is_short and not has_own_count(application, topic):
            yield Shortfall(compiled.application.id, topic.name, topic.live_partitions or 0, topic.partitions)


def _count_application(
    compiled: CompiledApplication, live: TopicCounts, settled: TopicCounts, present: int | None
) -> CountedApplication:
    """Return the input of the planner's rules. The former count of a topic that never settled is unknown."""

    def counted(declared: InternalTopic | Sink, name: str, partitions: int) -> CountedTopic:
        return CountedTopic(
            declared=declared,
            partitions=partitions,
            live_partitions=live.get(name),
            recorded_partitions=settled.get(name),
        )

    return CountedApplication(
        compiled=compiled,
        topics=(
            *(counted(topic, topic.name, topic.partitions) for topic in compiled.internal_topics),
            *(counted(sink, sink.topic, sink.partitions) for sink in compiled.sinks if sink.partitions),
        ),
        caller=AGENT,
        initial=_initial_processors(compiled, live, settled, present),
        present=present,
    )


def _initial_processors(
    compiled: CompiledApplication, live: TopicCounts, settled: TopicCounts, present: int | None
) -> Mapping[str, int]:
    """Return input topic → initial number of processors, as the counts before an expansion show it.

    The agent has no setup record. Counts after an expansion may fit to several initial numbers.
    """
    processors = compiled.application.processors
    parts = [part for part in compiled.subtopologies if part.processors is not None]
    changelogs = {live[topic] for part in parts for topic in part.changelog_topics if topic in live}
    if processors is None or (changelogs if present is None else {present}) != {processors}:
        return {}
    counts = {topic: settled.get(topic, live.get(topic, 0)) for part in parts for topic in part.sources}
    followed = {
        topic: round_start(count, processors) for topic, count in counts.items() if count >= processors
    }
    return {topic: initial for topic, initial in followed.items() if initial is not None}


def _parallelism_of(
    compiled: CompiledApplication, application: CountedApplication
) -> tuple[Parallelism, ...]:
    """Return the tasks that can run: a topic with missing partitions limits the whole sub-topology."""
    short = {
        topic.name: topic.live_partitions or 0
        for topic in application.topics
        if (topic.live_partitions or 0) < topic.partitions and not has_own_count(application, topic)
    }
    found = []
    for part in compiled.subtopologies:
        if not part.is_global:
            own = (*part.repartition_topics, *part.changelog_topics)
            current = min([part.tasks, *(short[topic] for topic in own if topic in short)])
            found.append(Parallelism(part.id, current, part.tasks))
    return tuple(found)


def _missing_sources(application: CountedApplication) -> Iterable[Problem]:
    for topic in application.internal:
        if topic.live_partitions is None:
            yield application.problem(
                ProblemCode.MISSING_INTERNAL_TOPICS,
                f"{topic.title} does not exist.",
                topic=topic,
                expected=f"{topic.partitions} partitions",
                found="none",
                why="The agent adds partitions and creates no topics: a deleted topic may have held state.",
                fix="If `headwater drift` with another user finds the topic, grant the agent's user "
                "Describe and Alter on it. If not, and the application has run before, stop the "
                "application. Then run `pulumi up`, which distinguishes a first start from a loss.",
                severity=Severity.WARNING,
            )


def held_back(assessments: Mapping[str, Assessment], expanding: Collection[str]) -> frozenset[str]:
    """Return applications of `expanding` that read a managed sink topic whose new partitions are not added.

    Their counts follow the future count of the sink topic: before it they would be over-partitioned.
    """
    acting = set(expanding)
    while True:
        stuck = {
            topic
            for assessment in assessments.values()
            for topic in assessment.sinks
            if _stays_short(assessment, topic, is_acting=assessment.id in acting)
        }
        held = {id_ for id_ in acting if not stuck.isdisjoint(assessments[id_].reads)}
        if not held:
            return frozenset(expanding) - acting
        acting -= held


def _stays_short(assessment: Assessment, topic: str, *, is_acting: bool) -> bool:
    """Return whether a sink topic keeps its missing partitions: the agent creates no topics."""
    partitions = assessment.counts.get(topic, 0)
    return partitions < assessment.required.get(topic, 0) and not (is_acting and partitions)
