"""Problems of missing source topics and of undecided partition counts."""

from collections.abc import Iterable

from headwater.compiler.broker_counts import status_text
from headwater.compiler.compilation import Compilation
from headwater.compiler.topic_groups import TopicGroup
from headwater.model.nodes import SourceNode
from headwater.model.problems import Caller, Location, Problem, ProblemCode, errors
from headwater.model.topology import Protocol


def check_sources(compilation: Compilation) -> Compilation:
    """Add a problem for each missing source, or if none is missing, for each undecided repartition topic."""
    problems = _empty_topologies(compilation) + _missing_sources(compilation) + _missing_global(compilation)
    if not compilation.topic_graph.missing:
        problems += _undecidable_topics(compilation)
    return compilation.with_problems(problems)


def missing_topics(compilation: Compilation) -> tuple[str, ...]:
    """Return the topics that tasks or global tables read and that have no partition count, sorted.

    Without a cluster, topics of global tables are omitted: no count depends on them.
    """
    return tuple(sorted(compilation.topic_graph.missing | set(_absent_global(compilation))))


def with_locations(problems: Iterable[Problem], compilation: Compilation) -> tuple[Problem, ...]:
    """Return each problem once, with the application; location and node default to the topic's source."""
    readers = _readers_of(compilation)
    application = compilation.application
    found = []
    for problem in dict.fromkeys(problems):
        reader = readers.get(problem.topic or "")
        found.append(
            problem.located(
                application=application.id,
                node=reader.name if reader else None,
                location=(reader.at if reader else None) or application.at,
            )
        )
    return tuple(found)


def _empty_topologies(compilation: Compilation) -> list[Problem]:
    if any(isinstance(node, SourceNode) for node in compilation.topology.nodes):
        return []
    if errors(compilation.problems):
        return []
    return [
        Problem(
            code=ProblemCode.INVALID_TOPOLOGY,
            summary="The topology reads no topic.",
            expected="at least one source topic or global table",
            found="none",
            why="Kafka Streams throws a TopologyException when the application is constructed.",
            fix="Add a `stream`, `table`, `globalTable` or `addSource`.",
            location=compilation.application.at,
        )
    ]


def _missing_sources(compilation: Compilation) -> list[Problem]:
    by_broker = compilation.application.protocol is Protocol.STREAMS
    why = (
        status_text(ProblemCode.MISSING_SOURCE_TOPIC)
        if by_broker
        else "Every instance throws MissingSourceTopicException; no internal topic is created."
    )
    return _missing_topics(compilation, sorted(compilation.topic_graph.missing), why)


def _missing_global(compilation: Compilation) -> list[Problem]:
    why = "Kafka Streams throws StreamsException in start(): the global store's topic has no partitions."
    return _missing_topics(compilation, sorted(_absent_global(compilation)), why)


def _missing_topics(compilation: Compilation, topics: Iterable[str], why: str) -> list[Problem]:
    readers = _readers_of(compilation)
    return [
        missing_topic(
            topic,
            compilation.caller,
            why=why,
            fix="Create the topic before the application is set up, or correct its name.",
            node=reader.name if reader else None,
            location=reader.at if reader else None,
        )
        for topic in topics
        if topic not in compilation.following
        for reader in (readers.get(topic),)
    ]


def _absent_global(compilation: Compilation) -> list[str]:
    if not compilation.caller.reads_cluster:
        return []
    return [
        topic
        for group in compilation.groups
        if group.is_global
        for topic in group.sources
        if compilation.partitions.get(topic, 0) < 1
    ]


def _readers_of(compilation: Compilation) -> dict[str, SourceNode]:
    return {
        topic: node
        for node in compilation.topology.nodes
        if isinstance(node, SourceNode)
        for topic in compilation.sources.topics.get(node.name, ())
    }


def missing_topic(
    topic: str,
    caller: Caller,
    *,
    why: str,
    fix: str,
    application: str | None = None,
    node: str | None = None,
    location: Location | None = None,
) -> Problem:
    """Return the problem of a source topic without a partition count, in the words that suit `caller`.

    `why` and `fix` are for callers that read a cluster: without one, only the count is unknown.
    """
    if caller.reads_cluster:
        summary, expected, found = (
            f"Source topic {topic} does not exist.",
            "an existing topic",
            "no such topic",
        )
        fix += caller.describe_hint
    else:
        summary, expected, found = (
            f"The partition count of source topic {topic} is not known.",
            "a number of partitions",
            "none",
        )
        why = "The partition counts of the internal topics follow the source topics."
        fix = f"Set `--partitions {topic}=N`, or name a cluster with `--bootstrap-server`."
    return Problem(
        code=ProblemCode.MISSING_SOURCE_TOPIC,
        summary=summary,
        application=application,
        topic=topic,
        node=node,
        expected=expected,
        found=found,
        why=why,
        fix=fix,
        location=location,
    )


def _undecidable_topics(compilation: Compilation) -> list[Problem]:
    writers: dict[str, list[TopicGroup]] = {}
    for group in compilation.groups:
        for topic in group.sinks:
            writers.setdefault(topic, []).append(group)
    problems = []
    for topic, details in compilation.repartition.items():
        if details.partitions == 0:
            problems.append(_explicit_zero(topic, details.at))
        elif topic not in compilation.counts:
            problems.append(
                _undecided_count(compilation, topic, _reason_of(writers.get(topic, [])), details.at)
            )
    return problems


def _reason_of(writers: list[TopicGroup]) -> str:
    if not writers:
        return "no sub-topology writes it"
    patterns = [pattern for group in writers for pattern in group.patterns]
    if patterns:
        return f"no topic matches the pattern {patterns[0]} of its input"
    return "its count depends on itself or on a topic without a count"


def _undecided_count(compilation: Compilation, topic: str, reason: str, at: Location | None) -> Problem:
    by_broker = compilation.application.protocol is Protocol.STREAMS
    return Problem(
        code=ProblemCode.UNDECIDABLE_PARTITIONS,
        summary=f"The partition count of {topic} cannot be decided: {reason}.",
        topic=topic,
        expected="an input whose partition count is known",
        found=reason,
        why=(
            status_text(ProblemCode.UNDECIDABLE_PARTITIONS)
            if by_broker
            else "Every instance throws TaskAssignmentException; no internal topic is created."
        ),
        fix=(
            "Create the input topics (a pattern must match at least one), or give the repartition() call "
            "explicit `partitions`."
        ),
        location=at,
    )


def _explicit_zero(topic: str, at: Location | None) -> Problem:
    return Problem(
        code=ProblemCode.UNDECIDABLE_PARTITIONS,
        summary=f"Repartition topic {topic} has the explicit partition count 0.",
        topic=topic,
        expected="at least 1",
        found="0",
        why=(
            "Kafka Streams throws IllegalArgumentException at the first rebalance; building the topology "
            "does not fail."
        ),
        fix="Set `partitions` to at least 1, or leave it out.",
        location=at,
    )
