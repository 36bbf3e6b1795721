"""One application held against the cluster: what lacks, what is wrong, how parallel it is.

The refusals are those of the planner, so that the agent and `pulumi up` never disagree.
"""

from collections.abc import Collection, Iterable, Mapping

import attrs

from infra.compiler import StreamsConfig
from infra.model.cluster import ClusterSnapshot, LiveTopic
from infra.model.compiled import CompiledApplication, SubTopology
from infra.model.problems import Problem, ProblemCode, Severity, errors
from infra.model.record import RecordedTopic, SetupRecord
from infra.planner.rules.missing_source import missing_source
from infra.planner.rules.over_partitioned import over_partitioned
from infra.planner.rules.source_topics_expanded import source_topics_expanded
from infra.planner.rules.unsafe_expansion import unsafe_expansion
from infra.planner.situation import Situation, TopicState
from spark_jobs.agent.state import Parallelism, Shortfall, TopicCounts

_REFUSALS = (missing_source, over_partitioned, unsafe_expansion)


@attrs.frozen(kw_only=True)
class Assessment:
    """`counts` are those of its existing internal and managed sink topics, `wanted` what they ought to be."""

    id: str
    is_enabled: bool
    timeout_ms: int
    counts: TopicCounts
    wanted: TopicCounts
    sources: TopicCounts
    reads: frozenset[str]
    sinks: frozenset[str]
    shortfalls: tuple[Shortfall, ...]
    parallelism: tuple[Parallelism, ...]
    refusals: tuple[Problem, ...]
    """Nothing may be expanded while there is one."""
    expanded: tuple[Problem, ...]
    """The details of what lacks, when autoscaling is off."""
    warnings: tuple[Problem, ...]

    @property
    def is_expandable(self) -> bool:
        return self.is_enabled and bool(self.shortfalls) and not self.refusals


def assess(compiled: CompiledApplication, live: TopicCounts, settled: TopicCounts) -> Assessment:
    """Return the assessment; `live` are the counts on the cluster, `settled` those that agreed last."""
    situation = _situation(compiled, live, settled)
    config = StreamsConfig.of(compiled.application)
    wrong = [problem for rule in _REFUSALS for problem in rule(situation)]
    lacking = [
        state for state in situation.topics if state.lacking and (config.autoscaling or state.is_internal)
    ]
    short = {
        state.name: _partitions(state) for state in situation.topics if _partitions(state) < state.partitions
    }
    return Assessment(
        id=compiled.application.id,
        is_enabled=config.autoscaling,
        timeout_ms=config.autoscaling_timeout_ms,
        counts={state.name: state.live.partitions for state in situation.topics if state.live},
        wanted={state.name: state.partitions for state in situation.topics},
        sources={name: live[name] for name in compiled.external_sources if name in live},
        reads=frozenset(compiled.external_sources),
        sinks=frozenset(sink.topic for sink in compiled.sinks),
        shortfalls=tuple(_shortfall(compiled, state) for state in lacking),
        parallelism=tuple(
            Parallelism(part.id, _current(part, short), part.tasks)
            for part in compiled.subtopologies
            if not part.is_global
        ),
        refusals=tuple(_with_rights(problem) for problem in (*errors(compiled.problems), *wrong)),
        expanded=tuple(source_topics_expanded(situation)),
        warnings=tuple(_missing(situation)),
    )


def _with_rights(problem: Problem) -> Problem:
    """A topic that may not be seen any more looks as if it were gone."""
    if problem.code is not ProblemCode.MISSING_SOURCE_TOPIC:
        return problem
    return attrs.evolve(
        problem, fix=f"{problem.fix} If it exists, grant the agent's user the right to describe it."
    )


def _situation(compiled: CompiledApplication, live: TopicCounts, settled: TopicCounts) -> Situation:
    """What is known of each topic stands in for a recorded set-up: it makes the texts more telling."""
    names = [topic.name for topic in compiled.internal_topics] + [sink.topic for sink in compiled.sinks]
    topics = {name: LiveTopic(name, "", live[name], 0) for name in names if name in live}
    recorded = {
        name: RecordedTopic(name, "", settled.get(name, topic.partitions)) for name, topic in topics.items()
    }
    return Situation(
        compiled=compiled,
        snapshot=ClusterSnapshot(cluster_id="", brokers=0, topics=topics),
        record=SetupRecord(compiled.application.id, recorded, initial_processors=0),
    )


def _shortfall(compiled: CompiledApplication, state: TopicState) -> Shortfall:
    return Shortfall(compiled.application.id, state.name, _partitions(state), state.partitions)


def _current(part: SubTopology, short: TopicCounts) -> int:
    """Return the tasks that can work: a topic that lacks partitions holds back the whole sub-topology."""
    own = (*part.repartition_topics, *part.changelog_topics)
    return min([part.tasks, *(short[topic] for topic in own if topic in short)])


def _partitions(state: TopicState) -> int:
    return state.live.partitions if state.live else 0


def _missing(situation: Situation) -> Iterable[Problem]:
    for state in situation.internal:
        if state.live is None:
            yield situation.problem(
                ProblemCode.MISSING_INTERNAL_TOPICS,
                f"{state.title} does not exist.",
                about=state,
                expected=f"{state.partitions} partitions",
                found="none",
                why="The agent adds partitions and creates no topics: one that is gone may have held state.",
                fix="Set the application up with `pulumi up`, which tells a first start from a loss.",
                severity=Severity.WARNING,
            )


def held_back(assessments: Mapping[str, Assessment], expanding: Collection[str]) -> frozenset[str]:
    """Return those of `expanding` that read a lacking managed sink topic which nobody is about to expand.

    Their counts follow what the sink topic will have: ahead of it they would be over-partitioned.
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
    """A missing topic is never created, one that lacks partitions gets them from an owner that acts."""
    partitions = assessment.counts.get(topic, 0)
    return partitions < assessment.wanted.get(topic, 0) and not (is_acting and partitions)
