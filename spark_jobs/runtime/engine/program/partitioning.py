"""How a sink chooses partitions."""

from collections.abc import Mapping
from enum import Enum

import attrs

from infra.model.behaviors import SinkSettings
from infra.model.topology import Application
from spark_jobs.runtime.engine.partitioners.murmur2 import default_partition
from spark_jobs.runtime.engine.partitioners.static import (
    CLASS,
    StaticStreamPartitioner,
    built_in,
    static_partition,
)
from spark_jobs.runtime.engine.program_interface import Partition
from spark_jobs.runtime.engine.records import Value, Windowed


class PartitionRule(Enum):
    """DEFAULT: murmur2 of the key's bytes. INNER_KEY: of the key inside a windowed one (facts 6).

    ANSWER: a foreign-key join's response goes to the task that asked. STATIC: a static partitioner
    (KIP-878), for the whole application or for the sink. CUSTOM: a class with
    `partition(topic, key, value, num_partitions)`, None = the default.
    """

    DEFAULT = "default"
    INNER_KEY = "inner key"
    ANSWER = "answer"
    STATIC = "static"
    CUSTOM = "custom"


@attrs.frozen
class SinkPartitioning:
    """A sink's rule; `partitioner` names a built-in partitioner or a class."""

    rule: PartitionRule = PartitionRule.DEFAULT
    partitioner: str | None = None


def partitioning_of(
    writes: SinkSettings | None, application: Application, *, internal: bool
) -> SinkPartitioning:
    """What the document says of a sink, else what the application says, else Kafka Streams' own rule."""
    if writes is not None and writes.foreign_key == "response":
        return SinkPartitioning(PartitionRule.ANSWER)
    said = writes.partitioner if writes is not None else None
    chosen = said if said is not None else application.config.get(CLASS)
    if chosen is not None and chosen != "default":
        rule = PartitionRule.CUSTOM if said is not None and ":" in said else PartitionRule.STATIC
        return SinkPartitioning(rule, chosen)
    key = writes.format.key if writes is not None else None
    if not internal and key is not None and key.window is not None:
        return SinkPartitioning(PartitionRule.INNER_KEY)
    return SinkPartitioning()


def answering(_topic: str, _key: Value, _key_bytes: bytes | None, value: Value) -> int | None:
    """The partition in the message; None in answers to messages of before 3.4."""
    partition: int | None = value.partition
    return partition


def by_inner_key(counts: Mapping[str, int], window_bytes: int) -> Partition:
    """`WindowedStreamPartitioner`: the window's `window_bytes` at the end of the key do not count."""

    def partition(topic: str, _key: Value, key_bytes: bytes | None, _value: Value) -> int | None:
        if key_bytes is None:
            return None
        return default_partition(key_bytes[:-window_bytes], _count(counts, topic))

    return partition


def by_static(partitioner: StaticStreamPartitioner, counts: Mapping[str, int]) -> Partition:
    """A windowed key stays where its inner key is; a null key goes where it likes."""

    def partition(topic: str, key: Value, _key_bytes: bytes | None, _value: Value) -> int | None:
        if key is None:
            return None
        inner = key.key if isinstance(key, Windowed) else key
        return static_partition(partitioner, topic, inner, _count(counts, topic))

    return partition


def by_custom(partitioner: Value, counts: Mapping[str, int]) -> Partition:
    """A class of the user's for one sink; one that is static counts as such."""
    if hasattr(partitioner, "static_partition"):
        return by_static(partitioner, counts)

    def partition(topic: str, key: Value, _key_bytes: bytes | None, value: Value) -> int | None:
        chosen: int | None = partitioner.partition(topic, key, value, _count(counts, topic))
        return chosen

    return partition


def configured(name: str, application: Application) -> StaticStreamPartitioner | None:
    """The built-in partitioner `name`; None for a class of the user's."""
    return built_in(name, application.config, application.at)[0]


def _count(counts: Mapping[str, int], topic: str) -> int:
    try:
        return counts[topic]
    except KeyError:
        raise ValueError(f"the number of partitions of {topic} is not known") from None
