"""Records in columns, a few thousand at a time, and counts over them: no tuple is built for each record.

A `ColumnCounter` processes a whole sub-topology in one loop, with an update per record. This holds if all
that happens to the records of a task is a `count` without a cache, whose updates go to one topic. No serde is
called: keys are left as they are. `counted_windows` has the same with windows.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import compress, repeat
from operator import itemgetter
from typing import Protocol

import attrs

from headwater.model.behaviors import StreamAggregate, TableToStream
from headwater.model.nodes import Node, ProcessorNode, SinkNode
from headwater_spark.engine.key_counts import NO_KEY_OR_VALUE, counted_source
from headwater_spark.engine.operators.aggregation import STORED_COUNT
from headwater_spark.engine.operators.stream_aggregate import counts_fast
from headwater_spark.engine.program_interface import Serde
from headwater_spark.engine.records import Headers, OutputRecord, Value
from headwater_spark.engine.serdes import reads_anything
from headwater_spark.engine.sources_and_sinks import serdes_of
from headwater_spark.engine.stores.key_value import TimestampedKeyValueBytes
from headwater_spark.engine.task_context import TaskContext

Columns = tuple[Sequence[bytes | None], Sequence[bytes | None], Sequence[int], Sequence[Headers]]
"""Keys, values, timestamps in milliseconds and headers of some records."""


@attrs.frozen
class TopicColumns:
    """Output records of one topic. `partition` None = the default partitioner chooses their partitions."""

    topic: str
    parts: Iterable[Columns]
    partition: int | None = None

    def records(self, columns: Columns) -> Iterator[OutputRecord]:
        """Return the records of one of the parts."""
        return zip(repeat(self.topic), repeat(self.partition), *columns, strict=False)


@attrs.frozen
class OutputColumns:
    """Output records of some topics, one topic after the other, and then single records.

    They can be iterated as often as the parts of the topics.
    """

    topics: Sequence[TopicColumns]
    rest: Sequence[OutputRecord] = ()

    def __iter__(self) -> Iterator[OutputRecord]:
        for topic in self.topics:
            for columns in topic.parts:
                yield from topic.records(columns)
        yield from self.rest

    def count_by_topic(self) -> dict[str, int]:
        """Return topic → number of records."""
        counts: dict[str, int] = {}
        for topic in self.topics:
            number = sum(len(keys) for keys, *_ in topic.parts)
            counts[topic.topic] = counts.get(topic.topic, 0) + number
        for topic_name, number in Counter(map(itemgetter(0), self.rest)).items():
            counts[topic_name] = counts.get(topic_name, 0) + number
        return counts


NO_HEADERS = ((),)
_KEY = "k\u00e9y"
_COUNT = 8
"""Where the count begins in a stored value."""


WriteKey = Callable[[bytes], bytes]
"""Returns a key as the store and the sink have it. Keys that are UTF-8 remain as they are."""


class ColumnCounter(Protocol):
    """Counts the records of a task."""

    def count(self, columns: Sequence[Columns]) -> OutputColumns:
        """Count columns without negative timestamps; return the records of changelog topic and sink."""
        ...


@attrs.frozen
class KeyColumnCounter:
    """Counts by key in `store`."""

    node: str
    store: TimestampedKeyValueBytes
    write_key: WriteKey
    changelog: TopicColumns | None
    sink: str
    _task: TaskContext

    def count(self, columns: Sequence[Columns]) -> OutputColumns:
        counted = [self._count(each) for each in columns]
        outputs = [TopicColumns(self.sink, counted)]
        if self.changelog is not None:
            logged = [(keys, values, times, NO_HEADERS * len(keys)) for keys, values, times, _ in counted]
            outputs.append(attrs.evolve(self.changelog, parts=logged))
        return OutputColumns(outputs)

    def _count(self, columns: Columns) -> Columns:
        counted, times, headers, dropped = columns_with_keys(columns, self.write_key, values=True)
        if dropped:
            self._task.dropped[self.node, NO_KEY_OR_VALUE] += dropped
        overlay = self.store.below.overlay
        written, read = overlay.written, overlay.get
        pack, unpack = STORED_COUNT.pack, STORED_COUNT.unpack
        counts: list[bytes] = []
        latest: list[int] = []
        add_count, add_time = counts.append, latest.append
        for key, time in zip(counted, times, strict=True):
            stored = written.get(key) or read(key)
            if stored is None:
                stored = pack(time, 1)
            else:
                known, old = unpack(stored)
                time = max(time, known)  # noqa: PLW2901 - the timestamp of the count
                stored = pack(time, old + 1)
            written[key] = stored
            add_count(stored[_COUNT:])
            add_time(time)
        return counted, counts, latest, headers


def key_column_counter(task: TaskContext) -> KeyColumnCounter | None:
    """Return how a task counts columns by key; None = its nodes do more, or something else."""
    written = written_count(task)
    if (
        written is None
        or not counts_fast(written.behavior, task)
        or task.program.partition(written.sink.name) is not None
    ):
        return None
    store: TimestampedKeyValueBytes = task.stores.typed_store(written.behavior.store)
    if not written.keeps_bytes((store.key_serde, store.value_serde), lambda key: key, b""):
        return None
    write_key = written.key_writer(store.key_serde)
    return KeyColumnCounter(written.node, store, write_key, written.changelog, written.topic, task)


@attrs.frozen
class WrittenCount:
    """The count of a task that writes all updates to one topic, and does nothing else."""

    node: str
    behavior: StreamAggregate
    sink: SinkNode
    topic: str
    changelog: TopicColumns | None
    """The changelog topic, without records."""
    _source: tuple[Serde, Serde]
    _target: tuple[Serde, Serde]

    def key_writer(self, store: Serde) -> WriteKey:
        """Return the function from a key of the source to the key in the store."""
        read, write = self._source[0].deserialize, store.serialize
        return lambda key: write(read(key))

    def keeps_bytes(self, store: tuple[Serde, Serde], key_of: Callable[[Value], Value], end: bytes) -> bool:
        """Return whether source, store and sink have the same bytes of a key, and of a count.

        The sink writes `key_of` of a key, whose bytes have `end` in addition.
        """
        try:
            key = self._source[0].deserialize(_KEY.encode())
            keys = store[0].serialize(key), self._target[0].serialize(key_of(key))
            counts = {serde.serialize(1) for serde in (store[1], self._target[1])}
        except (ValueError, TypeError, AttributeError, OverflowError):  # the sink reports it for each record
            return False
        return keys == (_KEY.encode(), _KEY.encode() + end) and len(counts) == 1


def written_count(task: TaskContext) -> WrittenCount | None:
    """Return the count of a task; None = its nodes do more, something else, or its records may be bad."""
    nodes, program = task.program.nodes, task.program
    counted, sink = counted_source(nodes), _only_sink(nodes)
    if counted is None or sink is None or not isinstance(counted.node.behavior, StreamAggregate):
        return None
    topic, source = program.topic(sink.name), serdes_of(counted.source.reads, program)
    if topic is None or not all(map(reads_anything, source)):
        return None
    behavior = counted.node.behavior
    changelog = program.changelog(behavior.store)
    logged = None if changelog is None else TopicColumns(changelog, (), task.partition)
    target = serdes_of(sink.writes, program)
    return WrittenCount(counted.node.name, behavior, sink, topic, logged, source, target)


def _only_sink(nodes: Sequence[Node]) -> SinkNode | None:
    """Return the sink if the nodes are a source, one processor, a conversion to a stream, and a sink."""
    match tuple(nodes):
        case (
            _,
            ProcessorNode() as count,
            ProcessorNode(behavior=TableToStream()) as stream,
            SinkNode() as sink,
        ):
            if stream.parents == (count.name,) and sink.parents == (stream.name,):
                return sink
    return None


def columns_with_keys(
    columns: Columns, write_key: WriteKey, *, values: bool
) -> tuple[Sequence[bytes], Sequence[int], Sequence[Headers], int]:
    """Return keys, timestamps and headers of records that have a key, and the number of all others.

    `values`: they have a value, too.
    """
    keys, of_records, times, headers = columns
    if None in keys or (values and None in of_records):
        wanted = [
            key is not None and not (values and value is None)
            for key, value in zip(keys, of_records, strict=True)
        ]
        keys, times = list(compress(keys, wanted)), list(compress(times, wanted))
        headers = list(compress(headers, wanted))
    counted: Sequence[bytes] = keys  # type: ignore[assignment]  # mypy does not see that no key is None
    try:
        b"\n".join(counted).decode()
    except UnicodeDecodeError:
        counted = list(map(write_key, counted))
    return counted, times, headers, len(of_records) - len(counted)
