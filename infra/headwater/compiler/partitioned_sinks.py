"""The sinks for which Kafka Streams chooses the partition, so the producer does not ask its partitioner.

`RecordCollectorImpl#send` passes a partition if the sink node has a `StreamPartitioner`, and `KafkaProducer`
asks `partitioner.class` only if none is passed. A sink has one if the code names one, or if its keys are
windowed (`StreamSinkNode#writeToTopology`, `WindowedStreamPartitioner`). A sink of a repartition topic has
none for windowed keys. The responses of a foreign-key join go to the partition of the task that has asked
(`KTableImpl#doJoinOnForeignKey`): a key of the left table returns to its task, wherever that is.
"""

from collections.abc import Iterator, Mapping, Sequence

from headwater.compiler.streams_config import LIBRARY_PARTITIONER, StreamsConfig
from headwater.compiler.topic_groups import Naming
from headwater.model.compiled import PartitionedBy, PartitionedSink
from headwater.model.nodes import NodeTopology, SinkNode
from headwater.model.problems import Problem, ProblemCode, Severity
from headwater.model.topology import Application

_WINDOWED = "org.apache.kafka.streams.kstream.internals.WindowedStreamPartitioner"
_RESPONSE = "-subscription-response-topic"
_OF_PRODUCER = "default"


def partitioned_sinks(
    topology: NodeTopology, partitioners: Mapping[str, str], naming: Naming
) -> tuple[PartitionedSink, ...]:
    """Return these sinks in the order of the nodes; none is known for a text of `Topology#describe()`.

    `partitioners` is sink node → class of its partitioner, of an exported document.
    """
    return tuple(_find_sinks(topology, partitioners, naming))


def static_partitioning_problems(
    application: Application, config: StreamsConfig, sinks: Sequence[PartitionedSink] | None
) -> Iterator[Problem]:
    """Yield warnings if an application on the JVM chooses the partitions of some records in another way.

    `sinks` are the sinks that choose partitions themselves; None = not known.
    """
    if config.library_function is None:
        if config.without_partitioner and config.static_partitioner is not None:
            yield _without_partitioner(application, config)
    elif sinks is None:
        yield _unknown_sinks(application)
    else:
        if internal := [sink for sink in sinks if sink.is_internal]:
            yield _incomplete_partitioning(application, internal, "a sub-topology with state does not find")
        if others := [sink for sink in sinks if not sink.is_internal]:
            yield _incomplete_partitioning(application, others, "a consumer with state does not find")


def _without_partitioner(application: Application, config: StreamsConfig) -> Problem:
    return _partitioning_warning(
        application,
        summary=f"{application.id} does not partition its own records statically.",
        expected=f"`producer.partitioner.class: {LIBRARY_PARTITIONER}`",
        found=f"`static.partitioner.class: {config.static_partitioner}` alone, which Kafka Streams ignores",
        why="Records of repartition topics go to the hash of their key. When partitions are added, keys "
        "move away from their state.",
        fix="Set `producer.partitioner.class`, and its other configs with the prefix `producer.`.",
    )


def _unknown_sinks(application: Application) -> Problem:
    return _partitioning_warning(
        application,
        summary=f"It is not known which records of {application.id} are partitioned statically.",
        expected="a document from the code of the application (`exported`)",
        found="a text of `Topology#describe()`, or observed topics",
        why="They do not show which sinks have a partitioner of their own or windowed keys.",
        fix="Export the document from the code: `headwater import --jar`, or `TopologyDocument.write`.",
    )


def _incomplete_partitioning(application: Application, sinks: Sequence[PartitionedSink], who: str) -> Problem:
    kinds = {sink.by for sink in sinks}
    fixes = {
        PartitionedBy.CLASS: "Remove the partitioner from the code, or use a partitioner that keeps each key "
        "on its partition.",
        PartitionedBy.WINDOWED_KEY: "Write another key than the windowed one, or expand such a topic only if "
        "no consumer of it has state.",
    }
    return _partitioning_warning(
        application,
        summary=f"The static partitioner of {application.id} does not choose all partitions.",
        expected="no sink with a partitioner of its own or windowed keys",
        found=", ".join(f"{each.topic or each.node}: {each.by.value} ({each.partitioner})" for each in sinks),
        why="Kafka Streams chooses these partitions itself and does not ask the producer. When partitions "
        f"are added, keys may move to other partitions: {who} its state.",
        fix=" ".join(text for kind, text in fixes.items() if kind in kinds),
    )


def _partitioning_warning(
    application: Application, *, summary: str, expected: str, found: str, why: str, fix: str
) -> Problem:
    return Problem(
        code=ProblemCode.STATIC_PARTITIONING_INCOMPLETE,
        severity=Severity.WARNING,
        summary=summary,
        application=application.id,
        expected=expected,
        found=found,
        why=why,
        fix=fix,
        location=application.at,
    )


def _find_sinks(
    topology: NodeTopology, partitioners: Mapping[str, str], naming: Naming
) -> Iterator[PartitionedSink]:
    for node in topology.nodes:
        if not isinstance(node, SinkNode) or (node.topic or "").endswith(_RESPONSE):
            continue
        is_internal = node.topic in naming.internal
        found = partitioners.get(node.name) or _declared_partitioner(node, is_internal=is_internal)
        if found is not None and found != _OF_PRODUCER:
            by = PartitionedBy.WINDOWED_KEY if found == _WINDOWED else PartitionedBy.CLASS
            topic = naming.topic(node.topic) if node.topic is not None else None
            yield PartitionedSink(node.name, topic, by, found, is_internal=is_internal)


def _declared_partitioner(node: SinkNode, *, is_internal: bool) -> str | None:
    """Return the partitioner of a sink of a document with calls."""
    if node.writes is None:
        return None
    if node.writes.partitioner is not None:
        return node.writes.partitioner
    key = node.writes.format.key
    return _WINDOWED if key is not None and key.window is not None and not is_internal else None
