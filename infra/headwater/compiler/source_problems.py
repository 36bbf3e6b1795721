"""Problems of missing source topics and of undecided partition counts."""

from collections.abc import Iterable, Iterator

from headwater.compiler.broker_counts import status_text
from headwater.compiler.compilation import Compilation
from headwater.compiler.topic_groups import TopicGroup
from headwater.model.nodes import SourceNode
from headwater.model.problems import Caller, Location, Problem, ProblemCode, Severity, errors
from headwater.model.topology import Protocol


def check_sources(compilation: Compilation) -> Compilation:
    """Add a problem for each missing source, or if none is missing, for each undecided repartition topic."""
    problems = _empty_topologies(compilation) + _missing_sources(compilation) + _missing_global(compilation)
    problems += _read_by_name(compilation)
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
    missing = sorted(compilation.topic_graph.missing)
    return _missing_topic_problems(compilation, missing, _reason_of_missing(compilation))


def _reason_of_missing(compilation: Compilation) -> str:
    if compilation.application.protocol is Protocol.STREAMS:
        return status_text(ProblemCode.MISSING_SOURCE_TOPIC)
    return "Every instance throws MissingSourceTopicException; no internal topic is created."


def _missing_global(compilation: Compilation) -> list[Problem]:
    why = "Kafka Streams throws StreamsException in start(): the global store's topic has no partitions."
    return _missing_topic_problems(compilation, sorted(_absent_global(compilation)), why)


def _missing_topic_problems(compilation: Compilation, topics: Iterable[str], why: str) -> list[Problem]:
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
        if compilation.partitions.get(topic, 0) < 1 and topic not in compilation.repartition
    ]


def _read_by_name(compilation: Compilation) -> list[Problem]:
    """Return a problem for each repartition topic that a source or global table names in full.

    Kafka Streams does not create it before the first assignment, which it refuses without the topic. A run of
    Headwater creates it with the other internal topics, so it is no error.
    """
    named = compilation.topic_graph.read_by_name | {
        topic
        for group in compilation.groups
        if group.is_global
        for topic in group.sources
        if topic in compilation.repartition
    }
    problems = []
    for topic in sorted(named):
        given, own = compilation.partitions.get(topic, 0), compilation.counts.get(topic)
        if given < 1:
            problems.append(_not_created_yet(compilation, topic, own))
        elif not compilation.caller.compares_topics and own not in (None, given):
            problems += _other_count(compilation, topic, given, int(own or 0))
    return problems


def _not_created_yet(compilation: Compilation, topic: str, count: int | None) -> Problem:
    reader = _readers_of(compilation).get(topic)
    partitions = "the partition count that the plan gives it" if count is None else _partitions_text(count)
    is_seen = compilation.caller.reads_cluster
    return Problem(
        code=ProblemCode.MISSING_SOURCE_TOPIC,
        summary=f"{topic}, which the application reads by its full name, "
        + ("does not exist yet." if is_seen else "has to exist before the application starts."),
        topic=topic,
        node=reader.name if reader else None,
        expected=f"a topic with {partitions}",
        found="no such topic" if is_seen else "not known",
        why="This is the repartition topic of the application. Kafka Streams requires that a topic exists "
        f"if a source names it in full. {_reason_of_missing(compilation)}",
        fix=f"Use its handle instead of its name. Otherwise create it with {partitions} before the "
        "application starts, as `pulumi up` does.",
        location=reader.at if reader else None,
        severity=Severity.WARNING,
    )


def _other_count(compilation: Compilation, topic: str, given: int, own: int) -> Iterator[Problem]:
    is_seen = compilation.caller.reads_cluster
    if is_seen and given < own and compilation.config.is_statically_partitioned:
        return  # the next run adds the partitions
    reader = _readers_of(compilation).get(topic)
    yield Problem(
        code=ProblemCode.CONFLICTING_PARTITIONS,
        summary=f"{topic} has another number of partitions than the application gives it.",
        topic=topic,
        node=reader.name if reader else None,
        expected=_partitions_text(own),
        found=_partitions_text(given),
        why="This is the repartition topic of the application. Kafka Streams does not start while it has "
        "another count.",
        fix=f"Set `partitions: {given}` at its `repartition`"
        + ("." if is_seen else f", or leave `--partitions {topic}` out."),
        location=reader.at if reader else None,
    )


def _partitions_text(count: int) -> str:
    return "1 partition" if count == 1 else f"{count} partitions"


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
        fix=f"{_known_input(compilation)}, or give the repartition() call explicit `partitions`.",
        location=at,
    )


def _known_input(compilation: Compilation) -> str:
    """Return how the counts of the inputs get known; without a cluster, no topic matches a pattern."""
    if compilation.caller.reads_cluster:
        return "Create the input topics (a pattern must match at least one)"
    return (
        "Set `--partitions TOPIC=N` for the input topics (a pattern must match at least one), name a cluster "
        "with `--bootstrap-server`"
    )


def _explicit_zero(topic: str, at: Location | None) -> Problem:
    return Problem(
        code=ProblemCode.UNDECIDABLE_PARTITIONS,
        summary=f"Repartition topic {topic} has the explicit partition count 0.",
        topic=topic,
        expected="at least 1",
        found="0",
        why="Kafka Streams throws IllegalArgumentException at the first rebalance; building the topology "
        "does not fail.",
        fix="Set `partitions` to at least 1, or leave it out.",
        location=at,
    )
