"""How a sink chooses the partition of a record."""

from collections.abc import Mapping
from enum import Enum

import attrs

from headwater.model.formats import SinkSettings
from headwater.model.topology import Application
from headwater_spark.engine.partitioners.hashing import partition_count
from headwater_spark.engine.partitioners.static import (
    CLASS,
    LinearHash,
    StaticStreamPartitioner,
    TaskMigrated,
    built_in,
    static_partition,
)
from headwater_spark.engine.program_interface import Partition
from headwater_spark.engine.records import Value, Windowed
from headwater_spark.engine.scaling.processors import Processors


class PartitionRule(Enum):
    """The rule by which a sink chooses partitions.

    DEFAULT: murmur2 of the key bytes. INNER_KEY: murmur2 of the key inside a windowed key. ANSWER: the
    response of a foreign-key join goes to the task of the left row (`by_message`). STATIC: a static
    partitioner (KIP-878), of the application or the sink. CUSTOM: a class with `partition(topic, key, value,
    num_partitions)`, which returns None for the default.
    """

    DEFAULT = "default"
    INNER_KEY = "inner key"
    ANSWER = "answer"
    STATIC = "static"
    CUSTOM = "custom"


@attrs.frozen
class SinkPartitioning:
    """The rule of a sink; `partitioner` is a built-in partitioner or a class."""

    rule: PartitionRule = PartitionRule.DEFAULT
    partitioner: str | None = None


def partitioning_of(
    writes: SinkSettings | None, application: Application, *, internal: bool
) -> SinkPartitioning:
    """Return the partitioner of the sink, else of the application, else of Kafka Streams."""
    if writes is not None and writes.foreign_key == "response":
        return SinkPartitioning(PartitionRule.ANSWER)
    of_sink = writes.partitioner if writes is not None else None
    chosen = of_sink if of_sink is not None else application.config.get(CLASS)
    if chosen is not None and chosen != "default":
        rule = PartitionRule.CUSTOM if of_sink is not None and ":" in of_sink else PartitionRule.STATIC
        return SinkPartitioning(rule, chosen)
    key = writes.format.key if writes is not None else None
    if not internal and key is not None and key.window is not None:
        return SinkPartitioning(PartitionRule.INNER_KEY)
    return SinkPartitioning()


def by_message(processors: Processors | None, counts: Mapping[str, int]) -> Partition:
    """Use the partition in a response; None in responses to messages before 3.4 (`Partition`).

    With `processors`, a response that names none, or the processor of its key, goes to the partition of its
    key: there it is also found by a processor that is added before it is processed.
    """
    if processors is None:
        return _named_partition
    by_key = by_linear_hash(LinearHash(processors.initial), counts, 0)

    def partition(topic: str, key: Value, key_bytes: bytes | None, value: Value) -> int | None:
        named: int | None = value.partition
        if named is None or (key_bytes is not None and processors.owner_of_key(key_bytes) == named):
            return by_key(topic, key, key_bytes, value)
        return named

    return partition


def _named_partition(_topic: str, _key: Value, _key_bytes: bytes | None, value: Value) -> int | None:
    partition: int | None = value.partition
    return partition


def by_static(partitioner: StaticStreamPartitioner, counts: Mapping[str, int]) -> Partition:
    """Use a static partitioner. A windowed key is on the partition of its inner key; null keys on any."""

    def partition(topic: str, key: Value, _key_bytes: bytes | None, _value: Value) -> int | None:
        if key is None:
            return None
        inner = key.key if isinstance(key, Windowed) else key
        return static_partition(partitioner, topic, inner, partition_count(counts, topic))

    return partition


def by_linear_hash(partitioner: LinearHash, counts: Mapping[str, int], window_bytes: int) -> Partition:
    """Hash the bytes of the key as Kafka's producers do, without the `window_bytes` at its end."""

    def partition(topic: str, _key: Value, key_bytes: bytes | None, _value: Value) -> int | None:
        if key_bytes is None:
            return None
        inner = key_bytes[:-window_bytes] if window_bytes else key_bytes
        count = partition_count(counts, topic)
        found = partitioner.partition_of_bytes(inner, count)
        if found >= count:
            raise TaskMigrated(topic, found, count)
        return found

    return partition


def by_custom(partitioner: Value, counts: Mapping[str, int]) -> Partition:
    """Use a user's class for one sink; it may be a static partitioner."""
    if hasattr(partitioner, "static_partition"):
        return by_static(partitioner, counts)

    def partition(topic: str, key: Value, _key_bytes: bytes | None, value: Value) -> int | None:
        chosen: int | None = partitioner.partition(topic, key, value, partition_count(counts, topic))
        return chosen

    return partition


def configured_partitioner(name: str, application: Application) -> StaticStreamPartitioner | None:
    """Return the built-in partitioner `name`; None for a user's class."""
    return built_in(name, application.config, application.at)[0]
