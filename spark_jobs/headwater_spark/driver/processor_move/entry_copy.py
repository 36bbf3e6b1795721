"""Copy the entries of keys that move to the changelog partitions of their new processors, and delete them.

Whether an entry counts is only known at the end of a partition: a later record may delete it. So something of
each key is kept, in bounded memory (`BoundedKeys`). If there are too many keys, only those whose hash is in a
smaller range are kept, and the partition is read again for the others.
"""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Generic, Protocol, TypeVar
from zlib import crc32

from headwater_spark.driver.processor_move.moves import Committed, Move
from headwater_spark.engine.records import Commits, OffsetRanges, Offsets, OutputRecord, TopicPartition
from headwater_spark.engine.scaling.moved_stores import MovedStore
from headwater_spark.engine.scaling.transfers import entry_owners
from headwater_spark.worker.partition_reader import RecordChunk

_Value = TypeVar("_Value")
_HASHES = 2**32

Report = Callable[[str, int, int], None]
"""Called with what is being done, how many records are done, and how many there are in total."""
_RECORDS_PER_TRANSACTION = 50_000
_SECONDS_PER_TRANSACTION = 10.0
_MAX_TOMBSTONES = 100_000
_MAX_KEYS_IN_MEMORY = 1_000_000


def report_no_progress(_what: str, _done: int, _total: int) -> None:
    """Report nothing."""


class MoveProducer(Protocol):
    """The transactional producer of a move."""

    def send(self, records: Iterable[OutputRecord]) -> int: ...
    def commit(self, commits: Commits) -> None: ...


class Follower(Protocol):
    """Reads several partitions at the same time, and later what is newer (`PartitionFollower`)."""

    def read(self, starts: Offsets) -> Iterator[tuple[TopicPartition, RecordChunk]]:
        """Yield the committed records from `starts` up to the present ends at least."""
        ...


class MoveCluster(Protocol):
    """What a move reads and changes; all methods may raise `KafkaException`."""

    def committed(
        self, partitions: Iterable[TopicPartition], *, stable: bool = True
    ) -> Mapping[TopicPartition, Committed]:
        """Return what is committed; with `stable`, wait for the end of transactions that commit offsets.

        The transaction of a killed client ends when its producer is opened here.
        """
        ...

    def bounds(self, partitions: Iterable[TopicPartition]) -> OffsetRanges:
        """Return partition → its first offset, and the one after the last committed record."""
        ...

    def counts(self, topics: Iterable[str]) -> Mapping[str, int]:
        """Return topic → partition count."""
        ...

    def expand(self, counts: Mapping[str, int]) -> None:
        """Add partitions, and wait until they can be written to; raises `ProblemsError`."""
        ...

    def read(self, topic: str, partition: int, first: int = 0) -> Iterator[RecordChunk]:
        """Yield the committed records from `first` to the present end."""
        ...

    def follower(self) -> Follower:
        """Return one that is closed with the cluster."""
        ...

    def producer(self, name: str) -> AbstractContextManager[MoveProducer]:
        """Open the producer with a transactional id; earlier ones with this id cannot commit any more."""
        ...

    def at_once(self, calls: Sequence[Callable[[], None]]) -> None:
        """Make calls that do not depend on each other, several at the same time; raises what one raises."""
        ...


class EntryCopy:
    """Copies the entries of one move. While the application runs, `advance` again copies what is newer.

    The changelog topics have the partitions of the added processors.
    """

    def __init__(self, move: Move, cluster: MoveCluster, report: Report) -> None:
        self._move = move
        self._cluster = cluster
        self._report = report
        self._follower: Follower | None = None
        self._stores = {(store.changelog, processor): store for store, processor in move.sources}
        """Old partition → its store."""
        self._positions = dict.fromkeys(self._stores, 0)
        """Old partition → the offset after the last record that was read."""
        self._moved: dict[TopicPartition, dict[bytes, int]] | None = None if move.deletes_later else {}
        """Old partition → keys that have to be deleted, with their times; None = too many to keep."""
        self._outdated: set[TopicPartition] = set()
        """Old partitions with an entry that stays and is outdated (`MovedStore.is_outdated`)."""
        self._max_keys = _MAX_KEYS_IN_MEMORY // len(self._stores)
        self._has_begun = False
        self._read = 0
        self.copied = 0
        """The number of entries that were written to partitions of added processors."""

    def advance(self, producer: MoveProducer, *, is_last: bool = False) -> None:
        """Copy the entries that were written since the last call; at first delete what a former move left.

        With `is_last`, the caller commits the last transaction, together with what follows.
        """
        if not self._has_begun:
            self._delete_leftovers(producer)
            self._has_begun = True
        records = Transactions(producer)
        total = self._read + self.remaining()
        if self._follower is None:
            self._follower = self._cluster.follower()
        for source, chunk in self._follower.read(self._positions):
            copies = list(self._copy_entries(self._stores[source], source[1], chunk))
            records.send(copies)
            self._positions[source] = chunk.next_offset
            self.copied += len(copies)
            self._read += len(chunk)
            self._report("copying entries", self._read, max(total, self._read))
        if not is_last:
            records.commit()

    def remaining(self) -> int:
        """Return how many records of the old partitions `advance` would read now."""
        bounds = self._cluster.bounds(self._positions)
        return sum(max(0, end - max(first, self._positions[each])) for each, (first, end) in bounds.items())

    def rewrite_outdated(self, producer: MoveProducer) -> None:
        """Write the outdated entries that stay again; no task may write them meanwhile."""
        if self._outdated:
            producer.commit({})  # what was copied; to read the entries may take longer than a transaction may
        records = Transactions(producer)
        outdated: BoundedKeys[OutputRecord]
        for store, processor in self._move.sources:
            source = store.changelog, processor
            if source not in self._outdated:
                continue
            for outdated in bounded_keys(self._max_keys):
                for chunk in self._cluster.read(*source):
                    for _, _, _, timestamp, key, value, headers in chunk.records:
                        if key is None or store.processor(key, self._move.new) != processor:
                            continue
                        if store.is_outdated(value):
                            outdated.put(key, (*source, key, store.value(value), timestamp, headers))
                        else:
                            outdated.remove(key)
                records.send(outdated.found.values())
                records.commit()

    def delete_misplaced(self, producer: MoveProducer, partitions: Collection[TopicPartition]) -> None:
        """Delete the entries of changelog partitions whose keys moved before this move."""
        records = Transactions(producer)
        sources = [each for each in self._move.sources if (each[0].changelog, each[1]) in partitions]
        self._delete_by_reading(records, sources, lambda owner, processor, _: owner != processor)
        records.commit()

    def clear(self, producer: MoveProducer) -> None:
        """Delete the entries that moved from the old partitions. A tombstone has the time of its entry."""
        records = Transactions(producer)
        if self._moved is None or not self._has_begun:  # or another process has copied
            self._delete_by_reading(records, list(self._move.sources), _has_moved)
        else:
            for (topic, partition), times in self._moved.items():
                records.send(create_tombstones(topic, partition, times))
        records.commit()

    def _copy_entries(self, store: MovedStore, processor: int, chunk: RecordChunk) -> Iterator[OutputRecord]:
        source = store.changelog, processor
        for index, key, before, after in self._entry_owners(store, chunk):
            if before != processor:
                continue  # an earlier move has deleted it here
            if after != processor:
                _, _, _, timestamp, _, value, headers = chunk.record(index)
                self._note_moved(source, key, value, timestamp)
                yield store.changelog, after, key, store.value(value), timestamp, headers
            elif store.has_subscriptions and store.is_outdated(chunk.value(index)):
                self._outdated.add(source)

    def _entry_owners(self, store: MovedStore, chunk: RecordChunk) -> Iterator[tuple[int, bytes, int, int]]:
        """Yield (index, key, processor before the move, processor after it) of each entry of a chunk."""
        keys = chunk.keys
        owners = entry_owners(store, keys, self._move.old, self._move.new)
        for index, (key, before, after) in enumerate(zip(keys, *owners, strict=True)):
            if key is not None:
                yield index, key, before, after

    def _note_moved(self, source: TopicPartition, key: bytes, value: bytes | None, timestamp: int) -> None:
        if self._moved is None:
            return
        times = self._moved.setdefault(source, {})
        if value is None:
            times.pop(key, None)
        else:
            times[key] = max(timestamp, times.get(key, timestamp))
        if len(times) > self._max_keys:
            self._moved = None

    def _delete_leftovers(self, producer: MoveProducer) -> None:
        """Delete what an interrupted move has copied: its keys may have been deleted since then."""
        records = Transactions(producer)
        counts = self._cluster.counts(self._move.changelogs)
        for topic in sorted(counts):
            for partition in range(self._move.before, min(counts[topic], self._move.after)):
                times: dict[bytes, int] = {}
                for chunk in self._cluster.read(topic, partition):
                    for _, _, _, timestamp, key, value, _ in chunk.records:
                        if key is not None and value is not None:
                            times[key] = timestamp
                        elif key is not None:
                            times.pop(key, None)
                    times = sent_if_many(records, topic, partition, times)
                    records.commit_if_due()
                records.send(create_tombstones(topic, partition, times))
        records.commit()

    def _delete_by_reading(
        self,
        records: "Transactions",
        sources: Sequence[tuple[MovedStore, int]],
        is_deleted: Callable[[int, int, int], bool],
    ) -> None:
        """Delete entries; `is_deleted` gets their processors: before the move, of the partition, after it."""
        bounds = self._cluster.bounds((store.changelog, each) for store, each in sources)
        total, done = sum(end - first for first, end in bounds.values()), 0
        for store, processor in sources:
            times: dict[bytes, int] = {}
            for chunk in self._cluster.read(store.changelog, processor):
                for index, key, before, after in self._entry_owners(store, chunk):
                    if not is_deleted(before, processor, after):
                        continue
                    _, _, _, timestamp, _, value, _ = chunk.record(index)
                    if value is not None:
                        times[key] = max(timestamp, times.get(key, timestamp))
                times = sent_if_many(records, store.changelog, processor, times)
                records.commit_if_due()
                done += len(chunk)
                self._report("deleting copied entries", done, total)
            records.send(create_tombstones(store.changelog, processor, times))


def _has_moved(before: int, processor: int, after: int) -> bool:
    """Return whether an entry in the partition of `processor` moves from there."""
    return before == processor != after


def create_tombstones(topic: str, partition: int, times: Mapping[bytes, int]) -> Iterator[OutputRecord]:
    return ((topic, partition, key, None, at, ()) for key, at in times.items())


def sent_if_many(
    records: "Transactions", topic: str, partition: int, times: dict[bytes, int]
) -> dict[bytes, int]:
    """Send tombstones if there are many; return what remains. Later entries of their keys get another one."""
    if len(times) < _MAX_TOMBSTONES:
        return times
    records.send(create_tombstones(topic, partition, times))
    return {}


class Transactions:
    """Writes records in transactions that are not large and not long."""

    def __init__(self, producer: MoveProducer) -> None:
        self._producer = producer
        self._sent = 0
        self._since = 0.0

    def send(self, records: Iterable[OutputRecord]) -> None:
        """Send `records` in the running transaction; commit it if it is large or old enough."""
        if not self._sent:
            self._since = time.monotonic()
        self._sent += self._producer.send(records)
        self.commit_if_due()

    def commit_if_due(self) -> None:
        """Commit the running transaction if it is large or old enough.

        Call it for each chunk that is read, also if nothing of it is sent: brokers end a transaction that is
        open for too long.
        """
        is_old = time.monotonic() - self._since >= _SECONDS_PER_TRANSACTION
        if self._sent >= _RECORDS_PER_TRANSACTION or (self._sent and is_old):
            self.commit()

    def commit(self) -> None:
        if self._sent:
            self._producer.commit({})
            self._sent = 0


class BoundedKeys(Generic[_Value]):
    """The values of keys whose hash is from `begin` on, and below `end`, which is reduced if necessary."""

    def __init__(self, most: int, begin: int) -> None:
        self._most = most
        self._begin = begin
        self.end = _HASHES
        self.found: dict[bytes, _Value] = {}

    def put(self, key: bytes, value: _Value) -> None:
        if not self._begin <= crc32(key) < self.end:
            return
        self.found[key] = value
        while len(self.found) > self._most and self.end - self._begin > 1:
            self.end = self._begin + (self.end - self._begin) // 2
            self.found = {each: kept for each, kept in self.found.items() if crc32(each) < self.end}

    def remove(self, key: bytes) -> None:
        self.found.pop(key, None)


def bounded_keys(most: int) -> Iterator[BoundedKeys[Any]]:
    """Yield what the next pass over a partition is to fill; the passes have different keys.

    Normally there is one pass. Each has at most `most` keys, unless their hashes are equal.
    """
    begin = 0
    while begin < _HASHES:
        keys = BoundedKeys[Any](most, begin)
        yield keys
        begin = keys.end
