"""Write the entries of a changelog topic to their new partitions, check them, delete them from the old ones.

Nothing is kept in memory but hashes of keys: a partition is read as a stream. Each pass may be repeated:

- `copy` writes all records of the keys that move, in their order, behind the old end of each partition. What
  an earlier pass has written there is deleted first: keys may have been deleted from the old part since then.
- `find_totals` reads the new partitions, for the comparison with what `copy` has read.
- `clear` writes tombstones behind the old part of each partition, for the keys that left it.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

import attrs

from headwater_spark.driver.processor_move.entry_copy import (
    MoveCluster,
    MoveProducer,
    Report,
    Transactions,
    sent_if_many,
    tombstones,
)
from headwater_spark.driver.reshard.entry_totals import (
    EntryTotals,
    LastRecords,
    record_digest,
    summed_totals,
)
from headwater_spark.engine.records import OutputRecord, TopicPartition
from headwater_spark.engine.scaling.entry_owners import NO_OWNER
from headwater_spark.engine.scaling.transfers import Transfer
from headwater_spark.worker.restore import RecordChunk

_MAX_KEYS_IN_MEMORY = 1_000_000
_MAX_TOTALS_IN_MEMORY = 4_000_000
"""So many keys, of 21 bytes each, may be kept to read only what is new when entries are compared again."""
_COMPLETION_SECONDS = 60.0
_POLL_SECONDS = 0.05


class ReshardCluster(MoveCluster, Protocol):
    """What a reshard reads and changes; all methods may raise `KafkaException`."""

    def read_range(self, topic: str, partition: int, first: int, end: int) -> Iterator[RecordChunk]:
        """Yield the committed records from `first` up to and excluding `end`."""
        ...

    def open_transactions(self, partitions: Sequence[TopicPartition]) -> Sequence[TopicPartition]:
        """Return the partitions that have records of transactions which are not complete."""
        ...

    def check_expansion(self, counts: Mapping[str, int]) -> None:
        """Let the brokers check an expansion, without changing anything; raises `ProblemsError`."""
        ...


def await_transactions(cluster: ReshardCluster, partitions: Sequence[TopicPartition]) -> None:
    """Wait until the partitions show what was committed: the brokers answer a commit before."""
    deadline = time.monotonic() + _COMPLETION_SECONDS
    while cluster.open_transactions(partitions) and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)


@attrs.frozen
class FoundTotals:
    """The totals of each partition, and how many entries each has that belong to another partition."""

    partitions: Sequence[EntryTotals]
    misplaced: Sequence[int]


class EntryMove:
    """The entries of one transfer.

    Args:
        transfer: From where to where, with the layout of the keys.
        cluster: Has all partitions of the target.
        ends: Partition of the source → the end of its old part.
        expires_before_ms: Retention may delete records with earlier timestamps; None = it deletes none.
        report: Receives the progress.
    """

    def __init__(
        self,
        transfer: Transfer,
        cluster: ReshardCluster,
        ends: Mapping[int, int],
        expires_before_ms: int | None,
        report: Report,
    ) -> None:
        self._transfer = transfer
        self._cluster = cluster
        self._ends = ends
        self._expires_before = -1 if expires_before_ms is None else expires_before_ms
        self._report = report
        self._moved: dict[int, dict[bytes, int]] | None = {}
        """Partition → keys that left it, with their times; None = not known, or too many to keep."""
        self._noted = 0
        self._has_copied = False
        self._compared: dict[int, tuple[LastRecords, int]] = {}
        """Partition of the target → its last records, and the offset up to which they were read."""
        self.written = 0
        """The number of records that were written to new partitions."""
        self.skipped = 0
        """The number of entries that `copy` has not written: their keys belong to another old partition."""

    def copy(self, producer: MoveProducer) -> Sequence[EntryTotals]:
        """Write the entries to their new partitions; return the totals that these must have then."""
        self._delete_leftovers(producer)
        self._moved, self._noted, self._has_copied = {}, 0, True
        records = Transactions(producer)
        totals = []
        for partition, chunks in self._old_parts("copying entries"):
            last = LastRecords()
            for chunk in chunks:
                copies = list(self._copies(partition, chunk, last))
                self.written += len(copies)
                records.send(copies)
                records.commit_if_due()
            if self._transfer.left is not None and self._transfer.is_in_place:
                records.commit()
                self._add_replaced(partition, last)
            found = last.totals()
            self.skipped += found.get(NO_OWNER, EntryTotals()).count
            totals.append(found)
        records.commit()
        return summed_totals(totals, self._transfer.after)

    def _add_replaced(self, partition: int, last: LastRecords) -> None:
        """Add entries that an interrupted pass has replaced in their partition.

        Compaction may have removed them from the old part since then: what is behind it is all that is left.
        What this pass has written must be visible: it has the last record of each other key.
        """
        topic = self._transfer.source
        await_transactions(self._cluster, [(topic, partition)])
        [(_, end)] = self._cluster.bounds([(topic, partition)]).values()
        for chunk in self._cluster.read_range(topic, partition, self._ends[partition], end):
            old, new = self._transfer.partitions(chunk.keys, partition)
            for record, before, after in zip(chunk.records, old, new, strict=True):
                if before == after == partition:
                    self._note(last, record[4], record[5], record[3], record[6], after)

    def last_records(self) -> Sequence[LastRecords]:
        """Read all partitions of the target, and return the last records of each."""
        bounds = self._cluster.bounds((self._transfer.target, each) for each in range(self._transfer.after))
        ends = {partition: end for (_, partition), (_, end) in bounds.items()}
        found = []
        for partition, chunks in self._parts(self._transfer.target, ends, "checking entries"):
            last = LastRecords()
            for chunk in chunks:
                for record in chunk.records:
                    self._note(last, record[4], record[5], record[3], record[6], partition)
            found.append(last)
        return found

    def find_totals(self) -> FoundTotals:
        """Read all partitions of the target, and return what they have; later, read only what is new."""
        topic, found, misplaced = self._transfer.target, [], []
        partitions = [(topic, each) for each in range(self._transfer.after)]
        await_transactions(self._cluster, partitions)
        bounds = self._cluster.bounds(partitions)
        ends = {partition: end for (_, partition), (_, end) in bounds.items()}
        starts = {partition: start for partition, (_, start) in self._compared.items()}
        for partition, chunks in self._parts(topic, ends, "checking entries", starts):
            last, _ = self._compared.pop(partition, (LastRecords(), 0))
            for chunk in chunks:
                keys = chunk.keys
                _, owners = self._transfer.partitions(keys, partition)
                for record, owner in zip(chunk.records, owners, strict=True):
                    self._note(last, record[4], record[5], record[3], record[6], owner)
            totals = last.totals()
            found.append({partition: totals.get(partition, EntryTotals())})
            misplaced.append(sum(each.count for owner, each in totals.items() if owner != partition))
            if len(last) + sum(len(kept) for kept, _ in self._compared.values()) <= _MAX_TOTALS_IN_MEMORY:
                self._compared[partition] = last, ends[partition]
        return FoundTotals(summed_totals(found, self._transfer.after), misplaced)

    def clear(self, producer: MoveProducer) -> None:
        """Delete the entries that moved from their old partitions. A tombstone has the time of its entry."""
        if not self._transfer.is_in_place:
            return
        records = Transactions(producer)
        if self._has_copied and self._moved is not None:
            for partition, moved in self._moved.items():
                records.send(tombstones(self._transfer.source, partition, moved))
        else:
            for partition, chunks in self._old_parts("deleting copied entries"):
                times: dict[bytes, int] = {}
                for chunk in chunks:
                    for key, value, timestamp in self._left(partition, chunk):
                        if value is not None:
                            times[key] = max(timestamp, times.get(key, timestamp))
                    times = sent_if_many(records, self._transfer.source, partition, times)
                    records.commit_if_due()
                records.send(tombstones(self._transfer.source, partition, times))
        records.commit()

    def _copies(self, partition: int, chunk: RecordChunk, last: LastRecords) -> Iterator[OutputRecord]:
        transfer = self._transfer
        old, new = transfer.partitions(chunk.keys, partition)
        for (_, _, _, timestamp, key, value, headers), before, after in zip(
            chunk.records, old, new, strict=True
        ):
            if key is None:
                continue
            if before != partition:  # an earlier reshard has deleted it here
                self._note(last, key, value, timestamp, headers, NO_OWNER)
                continue
            moved = transfer.value(key, value)
            self._note(last, key, moved, timestamp, headers, after)
            # Subscriptions that stay are replaced: all records, for the last one of a key has to be the last.
            if not transfer.is_in_place or after != partition or transfer.left is not None:
                yield transfer.target, after, key, moved, timestamp, headers
            if after != partition:
                self._note_left(partition, key, value, timestamp)

    def _left(self, partition: int, chunk: RecordChunk) -> Iterator[tuple[bytes, bytes | None, int]]:
        """Yield (key, value, timestamp) of the records whose key left a partition."""
        old, new = self._transfer.partitions(chunk.keys, partition)
        for record, before, after in zip(chunk.records, old, new, strict=True):
            if record[4] is not None and before == partition != after:
                yield record[4], record[5], record[3]

    def _note(  # noqa: PLR0917 - the parts of one record
        self,
        last: LastRecords,
        key: bytes | None,
        value: bytes | None,
        timestamp: int,
        headers: tuple[tuple[str, bytes | None], ...],
        owner: int,
    ) -> None:
        if key is not None:
            digest = None if value is None else record_digest(key, value, timestamp, headers)
            last.add(key, digest, owner, is_expiring=timestamp < self._expires_before)

    def _note_left(self, partition: int, key: bytes, value: bytes | None, timestamp: int) -> None:
        if self._moved is None:
            return
        times = self._moved.setdefault(partition, {})
        if value is None:
            times.pop(key, None)
            return
        self._noted += key not in times
        times[key] = max(timestamp, times.get(key, timestamp))
        if self._noted > _MAX_KEYS_IN_MEMORY:
            self._moved = None

    def _delete_leftovers(self, producer: MoveProducer) -> None:
        """Delete what an interrupted pass has written."""
        topic, records = self._transfer.target, Transactions(producer)
        bounds = self._cluster.bounds((topic, each) for each in range(self._transfer.after))
        for (_, partition), (first, end) in bounds.items():
            old_end = self._ends.get(partition, 0) if self._transfer.is_in_place else 0
            times: dict[bytes, int] = {}
            if max(first, old_end) >= end:
                continue
            for chunk in self._cluster.read_range(topic, partition, old_end, end):
                old, _ = self._transfer.partitions(chunk.keys, partition)
                for (_, _, _, timestamp, key, value, _), before in zip(chunk.records, old, strict=True):
                    if key is None or (self._transfer.is_in_place and before == partition < len(self._ends)):
                        continue  # an entry that was replaced in its partition
                    if value is not None:
                        times[key] = timestamp
                    else:
                        times.pop(key, None)
                times = sent_if_many(records, topic, partition, times)
                records.commit_if_due()
            records.send(tombstones(topic, partition, times))
        records.commit()

    def _old_parts(self, what: str) -> Iterator[tuple[int, Iterator[RecordChunk]]]:
        yield from self._parts(self._transfer.source, self._ends, what)

    def _parts(
        self, topic: str, ends: Mapping[int, int], what: str, starts: Mapping[int, int] | None = None
    ) -> Iterator[tuple[int, Iterator[RecordChunk]]]:
        """Yield each partition with its chunks up to its end, which have to be read before the next one."""
        known = starts or {}
        bounds = self._cluster.bounds((topic, each) for each in ends)
        firsts = {each: max(first, known.get(each, 0)) for (_, each), (first, _) in bounds.items()}
        total, done = sum(max(0, ends[each] - first) for each, first in firsts.items()), 0

        def reported(partition: int) -> Iterator[RecordChunk]:
            nonlocal done
            for chunk in self._cluster.read_range(topic, partition, known.get(partition, 0), ends[partition]):
                yield chunk
                done += len(chunk)
                self._report(f"{what} of {topic}", done, max(done, total))

        for partition in sorted(ends):
            yield partition, reported(partition)
