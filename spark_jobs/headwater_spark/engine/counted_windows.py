"""Counts in time windows over columns, with an update per record: no tuple is built for each record.

The sub-topology is as for counts by key (`columns`), with tumbling or hopping windows.
"""

from collections.abc import Mapping, Sequence
from itertools import compress

import attrs

from headwater_spark.engine.columns import (
    NO_HEADERS,
    Columns,
    OutputColumns,
    TopicColumns,
    WriteKey,
    columns_with_keys,
    written_count,
)
from headwater_spark.engine.key_counts import CLOSED, NO_KEY, DirectSink, TimeWindows
from headwater_spark.engine.operators.aggregation import STORED_COUNT, counts_longs
from headwater_spark.engine.operators.windowed_aggregates import regular_windows
from headwater_spark.engine.partitioners.hashing import InnerKeyPartition
from headwater_spark.engine.records import Headers, Windowed
from headwater_spark.engine.stores.cached import Cached
from headwater_spark.engine.stores.layers import TIMESTAMP, Logged
from headwater_spark.engine.stores.segments import SEGMENT, TIME
from headwater_spark.engine.stores.windows import TimestampedWindowBytes
from headwater_spark.engine.task_context import TaskContext

_START = 1_700_000_000_000
_SEQUENCE = 4
_SUFFIX = TIME + _SEQUENCE
"""The bytes after the key in the changelog topic: the start of the window, and zeros (`WindowBytes`)."""


@attrs.frozen
class _Updates:
    """The updates of some records; `logged_keys` are the keys of the changelog topic."""

    logged_keys: Sequence[bytes]
    counts: Sequence[bytes]
    times: Sequence[int]
    headers: Sequence[Headers]

    @property
    def keys(self) -> Sequence[bytes]:
        """The keys without windows."""
        return [key[:-_SUFFIX] for key in self.logged_keys]

    @property
    def changelog(self) -> Columns:
        return self.logged_keys, self.counts, self.times, NO_HEADERS * len(self.counts)

    @property
    def sink(self) -> Columns:
        return [key[:-_SEQUENCE] for key in self.logged_keys], self.counts, self.times, self.headers

    def sink_of(self, partition: int, partitions: Mapping[bytes, int]) -> Columns:
        """Return the columns of one partition; `partitions` are by key."""
        wanted = [partitions[key] == partition for key in self.keys]
        keys, counts, times, headers = self.sink
        return (
            list(compress(keys, wanted)),
            list(compress(counts, wanted)),
            list(compress(times, wanted)),
            list(compress(headers, wanted)),
        )


@attrs.frozen
class WindowColumnCounter:
    """Counts by key and window in `store`; `partition_of` None = the default partitioner of the sink."""

    node: str
    windows: TimeWindows
    store: TimestampedWindowBytes
    write_key: WriteKey
    changelog: TopicColumns | None
    sink: str
    partition_of: InnerKeyPartition | None
    _task: TaskContext

    def count(self, columns: Sequence[Columns]) -> OutputColumns:
        updates = [self._count(each) for each in columns]
        outputs = self._sink_columns(updates)
        if self.changelog is not None:
            outputs.append(attrs.evolve(self.changelog, parts=[each.changelog for each in updates]))
        return OutputColumns(outputs)

    def _sink_columns(self, updates: Sequence[_Updates]) -> list[TopicColumns]:
        if self.partition_of is None:
            return [TopicColumns(self.sink, [each.sink for each in updates])]
        of_key = self.partition_of.of_inner_key
        partitions = {key: of_key(self.sink, key) for each in updates for key in set(each.keys)}
        different = sorted(set(partitions.values()))
        if len(different) == 1:
            return [TopicColumns(self.sink, [each.sink for each in updates], different[0])]
        return [
            TopicColumns(self.sink, [each.sink_of(number, partitions) for each in updates], number)
            for number in different
        ]

    def _count(self, columns: Columns) -> _Updates:
        counted, times, headers, dropped = columns_with_keys(columns, self.write_key, values=False)
        if dropped:
            self._task.dropped[self.node, NO_KEY] += dropped
        store, observed = self.store, self._task.clock(self.node)
        size, advance, grace = self.windows.size, self.windows.advance, self.windows.grace
        written, read = store.below.overlay.written, store.below.overlay.get
        pack, unpack, visible = STORED_COUNT.pack, STORED_COUNT.unpack, store.visible_ms
        now, latest_start, closed = observed.now, store.observed.now, 0
        close_time, first_visible = now - grace, latest_start - visible
        around_key: dict[int, tuple[bytes, bytes]] = {}
        logged_keys: list[bytes] = []
        values: list[bytes] = []
        latest: list[int] = []
        of_updates: list[Headers] = []
        for key, time, of_record in zip(counted, times, headers, strict=True):
            if time > now:
                now, close_time = time, time - grace
            last = time - time % advance
            first = last if size == advance else max(0, time - size + advance) // advance * advance
            for start in range(first, last + 1, advance):
                if start + size <= close_time:
                    closed += 1
                    continue
                parts = around_key.get(start)
                if parts is None:
                    entry = store.entry_key(b"", start)
                    parts = around_key[start] = entry[:SEGMENT], entry[SEGMENT:]
                logged_key = key + parts[1]
                entry_key = parts[0] + logged_key
                stored = None if start < first_visible else written.get(entry_key) or read(entry_key)
                if stored is None:
                    update_time, stored = time, pack(time, 1)
                else:
                    known, old = unpack(stored)
                    update_time = max(time, known)
                    stored = pack(update_time, old + 1)
                written[entry_key] = stored
                if start > latest_start:
                    latest_start, first_visible = start, start - visible
                logged_keys.append(logged_key)
                values.append(stored)
                latest.append(update_time)
                of_updates.append(of_record)
        observed.now, store.observed.now = now, latest_start
        if closed:
            self._task.dropped[self.node, CLOSED] += closed
        return _Updates(logged_keys, [value[TIMESTAMP:] for value in values], latest, of_updates)


def window_column_counter(task: TaskContext) -> WindowColumnCounter | None:
    """Return how a task counts columns in windows; None = its nodes do more, or something else."""
    written = written_count(task)
    if written is None or written.behavior.emit_on_close:
        return None
    behavior, windows = written.behavior, regular_windows(written.behavior.window)
    store: TimestampedWindowBytes = task.stores.typed_store(behavior.store)
    partition_of = task.program.partition(written.sink.name)
    if (
        windows is None
        or type(store) is not TimestampedWindowBytes
        or not isinstance(store.below, Logged)
        or store.below.without_timestamps
        or not counts_longs(behavior, store.value_serde)
        or not written.keeps_bytes(
            (store.key_serde, store.value_serde),
            lambda key: Windowed(key, _START, _START + windows.size),
            _START.to_bytes(TIME, "big"),
        )
    ):
        return None
    if partition_of is not None and not (
        isinstance(partition_of, InnerKeyPartition) and written.topic in partition_of.counts
    ):
        return None
    write_key = written.key_writer(store.key_serde)
    return WindowColumnCounter(
        written.node, windows, store, write_key, written.changelog, written.topic, partition_of, task
    )


def direct_sink(task: TaskContext) -> DirectSink | None:
    """Return where a task can append the records of windows that leave a cache; None = nodes do more."""
    written = written_count(task)
    if written is None or written.behavior.sends_old or task.append != task.outputs.append:
        return None
    store, target = task.stores.typed_store(written.behavior.store), written.topic
    below = store.below.below if isinstance(store.below, Cached) else None
    if (
        type(store) is not TimestampedWindowBytes
        or not isinstance(below, Logged)
        or below.without_timestamps
        or not written.keeps_bytes(
            (store.key_serde, store.value_serde),
            lambda key: Windowed(key, _START, _START),
            _START.to_bytes(TIME, "big"),
        )
    ):
        return None
    changelog = None if written.changelog is None else written.changelog.topic
    partition_of = task.program.partition(written.sink.name)
    if partition_of is None:
        return DirectSink(task.append, changelog, task.partition, target, lambda _: None)
    if not isinstance(partition_of, InnerKeyPartition) or target not in partition_of.counts:
        return None
    of_key = partition_of.of_inner_key
    return DirectSink(task.append, changelog, task.partition, target, lambda key: of_key(target, key))
