"""Input that a task only counts: numbers of records per key, or columns of records whose keys are numbered.

For the numbers per key, the records of the only source go directly to a `count` whose record cache holds
updates back until the batch ends: only the last update of each key leaves the cache. For windows, the times
of the records are needed, too (`KeyedColumns`). The records then need not become Python objects;
`worker.task_input` counts them, and numbers their keys, as columns.

This module imports no numpy: the process from which Spark forks workers loads it, and numpy starts threads.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Protocol

import attrs

from headwater.model.behaviors import AggregationKind, RunProcessor, StreamAggregate
from headwater.model.formats import SourceSettings
from headwater.model.nodes import Node, ProcessorNode, SourceNode
from headwater_spark.engine.records import InputRecord, OutputRecord, Value
from headwater_spark.engine.stores.record_cache import ENTRY_BYTES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]

_TIMESTAMP_AND_COUNT = 16
_BYTES_OF_INVALID_BYTE = 3
"""Invalid UTF-8 in a key is read as U+FFFD."""
NULL_KEY = -1
LATEST_TIME = 2**53
"""Times up to this one can be computed with without an overflow."""

AddCount = Callable[[Value, int, int, InputRecord], None]
"""(key, number of records, largest timestamp, last record): adds the records of one key to a count."""


@attrs.frozen
class CountPerKey:
    """How a node adds counts per key; `reserve` is called first, with the bytes of all entries."""

    add: AddCount
    reserve: Callable[[int], None]


NO_KEY = "null key"
CLOSED = "window is closed"
NO_KEY_OR_VALUE = "null key or value"
NEGATIVE_TIMESTAMP = "negative timestamp"
"""The reasons for which operators and sources drop records."""

KeyCount = tuple[bytes, int, int, InputRecord]
"""(key, number of records, largest timestamp, last record)"""


@attrs.frozen(kw_only=True)
class KeyCounts:
    """The records of a batch, counted per key.

    `by_key` is in the order of the keys' last records. `dropped` is the number of records without a key or
    value. `latest` is the largest timestamp, in milliseconds, dropped records included. `header_bytes` is at
    least the size of the headers of all records.
    """

    by_key: Sequence[KeyCount]
    dropped: int
    latest: int
    header_bytes: int = 0

    @property
    def cache_bytes(self) -> int:
        """Return at least the bytes of the counts in a record cache."""
        keys = sum(map(len, map(itemgetter(0), self.by_key)))
        topic = len(self.by_key[0][3][0]) if self.by_key else 0
        each = ENTRY_BYTES + _TIMESTAMP_AND_COUNT + topic
        return len(self.by_key) * each + keys * _BYTES_OF_INVALID_BYTE + self.header_bytes


@attrs.frozen(eq=False, kw_only=True)
class KeyedColumns:
    """Records of one input partition, in order, without headers and negative timestamps.

    `codes` has the position of each record's key in `keys`, or `NULL_KEY`. `times` are in milliseconds.
    `without_value` are the rows whose value is null; None = there is none. `records` returns the records of
    some rows, whose numbers ascend.
    """

    topic: str
    keys: Sequence[bytes]
    codes: "Numbers"
    times: "Numbers"
    without_value: "NDArray[np.bool_] | None"
    records: "Callable[[Numbers], Sequence[InputRecord]]"


class WindowCounts(Protocol):
    """How a node counts records in columns."""

    @property
    def is_usable(self) -> bool:
        """Return whether single records would have the same results; known when all nodes are built."""
        ...

    def count(
        self, columns: KeyedColumns, deserialize_key: Callable[[bytes], Value]
    ) -> Mapping[str, int] | None:
        """Count all records; return reason → number of records that were dropped, or of their windows.

        None = nothing was counted: single records may have other results.
        """
        ...


@attrs.frozen
class TimeWindows:
    """Windows of `size` milliseconds that start every `advance`; window n starts at n * advance."""

    size: int
    advance: int
    grace: int


@attrs.frozen(eq=False)
class DirectSink:
    """Where the records of updates of windows can be appended, without a call for each node that they pass.

    `changelog` is the topic, None = there is none, `partition` its partition. `partition_of` returns the
    partition of a serialized key in the topic `sink`.
    """

    append: Callable[[OutputRecord], None]
    changelog: str | None
    partition: int
    sink: str
    partition_of: Callable[[bytes], int | None]


@attrs.frozen
class KeyCounter:
    """The node that counts the only input of a task."""

    node: str
    deserialize_key: Callable[[bytes], Value]
    count: CountPerKey


@attrs.frozen
class WindowCounter:
    """The node that counts the only input of a task in windows."""

    node: str
    deserialize_key: Callable[[bytes], Value]
    counts: WindowCounts


@attrs.frozen(kw_only=True)
class CountedSource:
    """A source and the node that counts its records."""

    source: SourceNode
    node: ProcessorNode


def counted_source(nodes: Iterable[Node]) -> CountedSource | None:
    """Return the only source of a sub-topology with the node that counts it; None if single records matter.

    They matter to users' processors: a punctuation may be due between any two.
    """
    nodes = tuple(nodes)
    counted = only_counted_source(nodes)
    if counted is None or any(
        isinstance(node, ProcessorNode) and isinstance(node.behavior, RunProcessor) for node in nodes
    ):
        return None
    return counted


def only_counted_source(nodes: Iterable[Node]) -> CountedSource | None:
    """Return the only source of a sub-topology if all that happens to its records is one count; else None."""
    nodes = tuple(nodes)
    sources = [node for node in nodes if isinstance(node, SourceNode)]
    if len(sources) != 1:
        return None
    (source,) = sources
    readers = [node for node in nodes if not isinstance(node, SourceNode) and source.name in node.parents]
    match source.reads, readers:
        case reads, [ProcessorNode(behavior=StreamAggregate() as behavior) as node] if (
            behavior.aggregation.kind is AggregationKind.COUNT and (reads is None or _is_plain(reads))
        ):
            return CountedSource(source=source, node=node)
    return None


def _is_plain(reads: SourceSettings) -> bool:
    return reads.timestamp is None and reads.foreign_key is None and not reads.carries_changes
