"""Static partitioners: a key stays on its partition when partitions are added (KIP-878, earlier draft).

`static.partitioner.class` names a built-in partitioner or a user's class:

- `initial-hash`: `static.partitioner.initial.partitions`, the initial number of partitions; never change it.
- `linear-hash`: `static.partitioner.initial.partitions`, the initial number of processors (KIP-287). An added
  partition takes keys from one partition only, and belongs to the same processor.
- `key-prefix`: `static.partitioner.table` (`acme=0,globex=1`), `static.partitioner.separator` (`:`), and for
  prefixes that are not in the table `static.partitioner.initial.partitions`.
- `range`: `static.partitioner.bounds` (`g,n,t`): keys before `g` go to partition 0, before `n` to 1, before
  `t` to 2, all others to 3.

A partitioner may return a partition that does not exist yet: then the batch fails with `TaskMigrated`, and
is retried after the topic is expanded.
"""

from bisect import bisect_right
from collections.abc import Callable, Mapping
from typing import Protocol

import attrs

from headwater.compiler.java.config_values import INT, parse_whole, trim_text
from headwater.model.problems import Location, Problem, ProblemCode
from headwater_spark.engine.partitioners.hashing import default_partition, linear_partition


class StaticStreamPartitioner(Protocol):
    """The interface of users' partitioner classes; both methods are required.

    An object is created without arguments, once per process that partitions records or expands topics.
    """

    def static_partition(self, topic: str, key: object, num_partitions: int) -> int:
        """Return the partition of a deserialized key, 0 or more.

        If it is `num_partitions` or more, the topic must be expanded first. No record is lost: the batch is
        retried.
        """
        ...

    def on_partition_expansion(self, old: int, new: int) -> None:
        """Called on the leading agent when the application has settled after an expansion.

        From now on, keys may be sent to the new partitions. `old`, `new`: numbers of partitions.
        """
        ...


@attrs.frozen
class InitialHash:
    """Kafka's default partitioner on the initial number of partitions: later partitions get no keys."""

    initial_partitions: int

    def static_partition(self, topic: str, key: object, num_partitions: int) -> int:  # noqa: ARG002
        return default_partition(bytes_of(key), self.initial_partitions)

    def on_partition_expansion(self, old: int, new: int) -> None:
        """Do nothing: the partition does not depend on the number of partitions."""


@attrs.frozen
class LinearHash:
    """Linear hashing of the key's bytes: a key may move to an added partition, never to another processor."""

    initial_partitions: int

    def static_partition(self, topic: str, key: object, num_partitions: int) -> int:  # noqa: ARG002
        return linear_partition(bytes_of(key), self.initial_partitions, self._count(num_partitions))

    def partition_of_bytes(self, key: bytes, num_partitions: int) -> int:
        """Return the partition of a serialized key, as `linear_partition` does."""
        return linear_partition(key, self.initial_partitions, self._count(num_partitions))

    def on_partition_expansion(self, old: int, new: int) -> None:
        """Do nothing: the partition depends on the numbers only."""

    def _count(self, num_partitions: int) -> int:
        """Return the count that is required at least."""
        return max(num_partitions, self.initial_partitions)


@attrs.frozen
class KeyPrefix:
    """By the prefix of the key, e.g. a tenant: partitions from a table, other prefixes as `InitialHash`."""

    table: Mapping[str, int]
    separator: str = ":"
    initial_partitions: int | None = None

    def static_partition(self, topic: str, key: object, num_partitions: int) -> int:
        """Raise KeyError for a prefix that is not in the table if `initial_partitions` is not set."""
        prefix = text_of(key).partition(self.separator)[0]
        if prefix in self.table:
            return self.table[prefix]
        if self.initial_partitions is None:
            raise KeyError(prefix)
        return InitialHash(self.initial_partitions).static_partition(topic, prefix, num_partitions)

    def on_partition_expansion(self, old: int, new: int) -> None:
        """Do nothing: to use a new partition, add a prefix to the table in the document."""


@attrs.frozen
class Range:
    """By key range: partition i has the keys from `bounds[i - 1]` (inclusive) to `bounds[i]` (exclusive).

    Appended bounds split the last range: keys from the new bound on must be new keys.
    """

    bounds: tuple[str, ...]

    def static_partition(self, topic: str, key: object, num_partitions: int) -> int:  # noqa: ARG002
        return bisect_right(self.bounds, text_of(key))

    def on_partition_expansion(self, old: int, new: int) -> None:
        """Do nothing: the partition does not depend on the number of partitions."""


def text_of(key: object) -> str:
    """Return the text of a key: bytes decoded as UTF-8, other values by `str`."""
    return key.decode(errors="surrogateescape") if isinstance(key, bytes) else str(key)


def bytes_of(key: object) -> bytes:
    """Return the bytes that are hashed for a key: its text (`text_of`) as UTF-8."""
    return text_of(key).encode(errors="surrogateescape")


CLASS = "static.partitioner.class"
INITIAL = "static.partitioner.initial.partitions"
TABLE = "static.partitioner.table"
SEPARATOR = "static.partitioner.separator"
BOUNDS = "static.partitioner.bounds"


class _BadValueError(Exception):
    """The arguments are the config key, the expected value, and the value found."""


def built_in(
    name: str, config: Mapping[str, str], at: Location
) -> tuple[StaticStreamPartitioner | None, tuple[Problem, ...]]:
    """Return the built-in partitioner `name`, or None and the problems of its config.

    A name with a colon is a user's class: neither a partitioner nor a problem is returned.
    """
    if ":" in name:
        return None, ()
    try:
        return _BUILT_IN.get(name, _unknown_partitioner)(config), ()
    except _BadValueError as error:
        key, expected, found = error.args
        problem = Problem(
            code=ProblemCode.INVALID_CONFIG,
            summary=f"The static partitioner `{name}` cannot be created: `{key}` is {found or 'not set'}.",
            expected=expected,
            found=found or "nothing",
            why="A key must always stay on its partition, so there is no default.",
            fix=f"Set `{key}` in the application's config.",
            location=at,
        )
        return None, (problem,)


def _initial_hash(config: Mapping[str, str]) -> StaticStreamPartitioner:
    return InitialHash(_parse_whole_number(INITIAL, config.get(INITIAL, ""), least=1))


def _linear_hash(config: Mapping[str, str]) -> StaticStreamPartitioner:
    return LinearHash(_parse_whole_number(INITIAL, config.get(INITIAL, ""), least=1))


def _key_prefix(config: Mapping[str, str]) -> StaticStreamPartitioner:
    table = {}
    for entry in filter(None, (each.strip() for each in config.get(TABLE, "").split(","))):
        prefix, equals, partition = entry.rpartition("=")
        if not equals or not prefix:
            raise _BadValueError(TABLE, "prefix=partition, separated by commas", entry)
        table[prefix] = _parse_whole_number(TABLE, partition, least=0)
    initial = _parse_whole_number(INITIAL, config[INITIAL], least=1) if INITIAL in config else None
    if not table and initial is None:
        raise _BadValueError(INITIAL, "the initial number of partitions", "")
    return KeyPrefix(table, config.get(SEPARATOR) or ":", initial)


def _parse_range(config: Mapping[str, str]) -> StaticStreamPartitioner:
    bounds = tuple(each.strip() for each in config.get(BOUNDS, "").split(",") if each.strip())
    if not bounds or list(bounds) != sorted(set(bounds)):
        raise _BadValueError(BOUNDS, "ascending texts, separated by commas", ",".join(bounds))
    return Range(bounds)


def _unknown_partitioner(config: Mapping[str, str]) -> StaticStreamPartitioner:
    raise _BadValueError(CLASS, f"{', '.join(_BUILT_IN)}, or module:Class", config.get(CLASS, ""))


def _parse_whole_number(key: str, text: str, *, least: int) -> int:
    number = parse_whole(trim_text(text), INT)
    if number is None or number < least:
        raise _BadValueError(key, f"a whole number of at least {least}", text)
    return number


_BUILT_IN: Mapping[str, Callable[[Mapping[str, str]], StaticStreamPartitioner]] = {
    "initial-hash": _initial_hash,
    "linear-hash": _linear_hash,
    "key-prefix": _key_prefix,
    "range": _parse_range,
}


class TaskMigrated(Exception):  # noqa: N818 (Kafka's TaskMigratedException)
    """A record requires a partition that does not exist yet; the batch is retried after an expansion.

    KIP-878, earlier draft, `StaticStreamPartitioner#staticPartition`.
    """

    def __init__(self, topic: str, partition: int, num_partitions: int) -> None:
        super().__init__(topic, partition, num_partitions)
        self.topic = topic
        self.partition = partition
        self.num_partitions = num_partitions

    def __str__(self) -> str:
        return (
            f"a record of {self.topic} requires partition {self.partition} of {self.num_partitions}: "
            "it waits until the topic is expanded"
        )


def static_partition(
    partitioner: StaticStreamPartitioner, topic: str, key: object, num_partitions: int
) -> int:
    """Return the partition that a partitioner chooses.

    Raises:
        TaskMigrated: The partition does not exist yet.
        ValueError: The result is not a partition number.
    """
    partition: object = partitioner.static_partition(topic, key, num_partitions)
    if not isinstance(partition, int) or partition < 0:
        raise ValueError(
            f"{type(partitioner).__name__} returned {partition!r}, which is not a partition of {topic}"
        )
    if partition >= num_partitions:
        raise TaskMigrated(topic, partition, num_partitions)
    return partition
