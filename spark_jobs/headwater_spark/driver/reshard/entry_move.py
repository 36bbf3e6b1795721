"""Write the entries of a changelog topic to their new partitions, check them, delete them from the old ones.

Nothing is kept in memory but hashes of keys: a partition is read as a stream. Each pass may be repeated:

- `delete_leftovers` deletes what an interrupted `copy` has written: keys may have been deleted from the old
  part since then.
- `copy` writes all records of the keys that move, in their order, behind the old end of each partition.
- `find_totals` reads the new partitions, for the comparison with what `copy` has read. If the same process
  has copied, it reads only what was written since: nothing else changes the old parts of the partitions.
- `clear` writes tombstones behind the old part of each partition, for the keys that left it.

Several processes can have a share of the partitions each. All of them complete a pass before the next one.
"""

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Protocol

import attrs
import numpy as np
from numpy.typing import NDArray

from headwater_spark.driver.processor_move.entry_copy import (
    MoveCluster,
    MoveProducer,
    Report,
    Transactions,
    create_tombstones,
    sent_if_many,
)
from headwater_spark.driver.reshard.entry_totals import (
    EntryColumns,
    EntryTotals,
    FoundTotals,
    Hashes,
    LastRecords,
    entry_columns,
    summed_totals,
)
from headwater_spark.engine.columns import OutputColumns, TopicColumns
from headwater_spark.engine.records import Commits, TopicPartition
from headwater_spark.engine.scaling.transfers import NO_OWNER, Transfer
from headwater_spark.worker.partition_reader import RecordChunk

_MAX_KEYS_IN_MEMORY = 1_000_000
_MAX_HASHES_IN_MEMORY = 16_000_000
"""The hashes of so many keys that left a partition, of 8 bytes each, may be kept for the last comparison."""
_TOMBSTONES_AT_ONCE = 10_000
_COMPLETION_SECONDS = 60.0
_POLL_SECONDS = 0.05


class ReshardCluster(MoveCluster, Protocol):
    """What a reshard reads and changes; all methods may raise `KafkaException`."""

    def read_range(self, topic: str, partition: int, first: int, end: int) -> Iterator[RecordChunk]:
        """Yield the committed records from `first` up to and excluding `end`."""
        ...

    def renew_reader(self) -> None:
        """Let `read_range` know the partitions that another process has added."""
        ...

    def open_transactions(self, partitions: Sequence[TopicPartition]) -> Sequence[TopicPartition]:
        """Return the partitions that have records of transactions which are not complete."""
        ...

    def commit_offsets(self, commits: Commits) -> None:
        """Commit offsets outside of a transaction, with texts that Kafka Streams can read."""
        ...

    def fence(self, names: Sequence[str]) -> None:
        """Abort the transactions of producers with these transactional ids; they cannot commit any more."""
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
class Share:
    """One of several shares of the partitions of a topic."""

    number: int = 0
    shares: int = 1

    def has(self, partition: int) -> bool:
        return partition % self.shares == self.number


WHOLE = Share()
_NO_HASHES: Hashes = np.empty(0, np.uint64)


class EntryMove:
    """The entries of one transfer.

    Args:
        transfer: From where to where, with the layout of the keys.
        cluster: Has all partitions of the target.
        ends: Partition of the source → the end of its old part.
        expires_before_ms: Retention may delete records with earlier timestamps; None = it deletes none.
        share: The partitions of the source and of the target that this one reads.
        executes_all: This object executes all passes: what one has read is kept for the next ones.
    """

    def __init__(
        self,
        transfer: Transfer,
        cluster: ReshardCluster,
        ends: Mapping[int, int],
        expires_before_ms: int | None,
        report: Report,
        *,
        share: Share = WHOLE,
        executes_all: bool = True,
    ) -> None:
        self._transfer = transfer
        self._cluster = cluster
        self._ends = ends
        self._expires_before = -1 if expires_before_ms is None else expires_before_ms
        self._report = report
        self._share = share
        self._executes_all = executes_all
        self._moved: dict[int, dict[bytes, int]] = {}
        """Partition → keys that left it, with their times. Partitions with too many are missing."""
        self._noted = 0
        self._left: dict[int, Hashes] | None = None
        """Partition → hashes of the keys that left it; None = not known, or too many to keep."""
        self._staying: dict[int, EntryTotals] = {}
        """Partition → totals of the entries that are in its old part only."""
        self._compared: tuple[FoundTotals, Mapping[int, int]] | None = None
        """What was found behind the old parts after the copy, and the ends up to which it was read."""
        self.written = 0
        """The number of records that were written to new partitions."""
        self.skipped = 0
        """The number of entries that `copy` has not written: their keys belong to another old partition."""

    def copy(self, producer: MoveProducer) -> Sequence[EntryTotals]:
        """Write the entries to their new partitions; return the totals that these must have then."""
        transfer = self._transfer
        self._moved, self._noted, self._compared = {}, 0, None
        self._left = {} if transfer.is_in_place and self._executes_all else None
        records = Transactions(producer)
        totals = []
        for partition, chunks in self._read_partitions(transfer.source, self._ends, "copying entries"):
            last, times = LastRecords(), dict[bytes, int]()
            for chunk in chunks:
                records.send(self._moved_columns(partition, entry_columns(chunk), last, times))
                records.commit_if_due()
            if transfer.left is not None and transfer.is_in_place:
                records.commit()
                self._add_replaced(partition, last)
            found = last.totals()
            self.skipped += found.get(NO_OWNER, EntryTotals()).count
            self._keep_left(partition, last, times)
            if transfer.left is None:
                self._staying[partition] = found.get(partition, EntryTotals())
            totals.append(found)
        records.commit()
        return summed_totals(totals, transfer.after)

    def _keep_left(self, partition: int, last: LastRecords, times: dict[bytes, int]) -> None:
        """Keep what left a partition, if it is not too much."""
        if self._executes_all and self._noted + len(times) <= _MAX_KEYS_IN_MEMORY:
            self._moved[partition] = times
            self._noted += len(times)
        if self._left is not None:
            self._left[partition] = last.leaving_keys(partition)
            if sum(map(len, self._left.values())) > _MAX_HASHES_IN_MEMORY:
                self._left = None

    def _add_replaced(self, partition: int, last: LastRecords) -> None:
        """Add entries that an interrupted pass has replaced in their partition.

        Compaction may have removed them from the old part since then: what is behind it is all that is left.
        What this pass has written must be visible: it has the last record of each other key.
        """
        topic = self._transfer.source
        await_transactions(self._cluster, [(topic, partition)])
        [(_, end)] = self._cluster.bounds([(topic, partition)]).values()
        for chunk in self._cluster.read_range(topic, partition, self._ends[partition], end):
            entries = entry_columns(chunk)
            old, new = self._transfer.partition_arrays(entries.keys, partition)
            self._add(last, entries.select_records((old == partition) & (new == partition)), partition)

    def last_records(self) -> Sequence[LastRecords]:
        """Read all partitions of the target, and return the last records of each."""
        found = []
        for partition, chunks in self._read_partitions(
            self._transfer.target, self._target_ends(), "checking entries"
        ):
            last = LastRecords()
            for chunk in chunks:
                self._add(last, entry_columns(chunk), partition)
            found.append(last)
        return found

    def find_totals(self) -> FoundTotals:
        """Read the target, and return what it has; after `copy`, read only what was written since."""
        if self._left is not None:
            await_transactions(self._cluster, self._target_partitions())
            if self._compared is None:
                ends = self._target_ends()
                found = self._find_totals(ends, self._ends, self._staying)
                self._compared = found, ends
                return found
            if self._has_only_tombstones(*self._compared, self._left):
                return self._compared[0]
        await_transactions(self._cluster, self._target_partitions())
        return self._find_totals(self._target_ends())

    def _find_totals(
        self,
        ends: Mapping[int, int],
        starts: Mapping[int, int] | None = None,
        known: Mapping[int, EntryTotals] | None = None,
    ) -> FoundTotals:
        """Read the partitions of the target from `starts` on; what is before has the `known` totals."""
        after = self._transfer.after
        totals, misplaced = [EntryTotals()] * after, [0] * after
        for partition, chunks in self._read_partitions(
            self._transfer.target, ends, "checking entries", starts
        ):
            last = LastRecords()
            for chunk in chunks:
                entries = entry_columns(chunk)
                self._add(last, entries, self._transfer.partition_arrays(entries.keys, partition)[1])
            found = last.totals()
            before = (known or {}).get(partition, EntryTotals())
            totals[partition] = before + found.get(partition, EntryTotals())
            misplaced[partition] = sum(each.count for owner, each in found.items() if owner != partition)
        return FoundTotals(totals, misplaced)

    def _has_only_tombstones(
        self, compared: FoundTotals, starts: Mapping[int, int], left: Mapping[int, Hashes]
    ) -> bool:
        """Return whether exactly the keys that left a partition were deleted since the comparison."""
        if any(compared.misplaced):
            return False
        ends = self._target_ends()
        for partition, chunks in self._read_partitions(
            self._transfer.target, ends, "checking deletions", starts
        ):
            deleted: list[Hashes] = []
            for chunk in chunks:
                entries = entry_columns(chunk)
                old, new = self._transfer.partition_arrays(entries.keys, partition)
                is_value = any(value is not None for value in entries.values)
                if is_value or not ((old == partition) & (new != partition)).all():
                    return False
                deleted.append(entries.hashes)
            expected = left.get(partition, _NO_HASHES)
            # The default of NumPy 2.0 fails for large unsigned numbers that are close to each other.
            if not np.isin(expected, np.concatenate([*deleted, _NO_HASHES]), kind="sort").all():
                return False
        return True

    def clear(self, producer: MoveProducer) -> None:
        """Delete the entries that moved from their old partitions. A tombstone has the time of its entry."""
        if not self._transfer.is_in_place:
            return
        records, topic = Transactions(producer), self._transfer.source
        for partition, times in self._moved.items():
            self._delete_keys(records, topic, partition, times)
        remaining = {each: end for each, end in self._ends.items() if each not in self._moved}
        for partition, chunks in self._read_partitions(topic, remaining, "deleting copied entries"):
            times = {}
            for chunk in chunks:
                entries = entry_columns(chunk)
                old, new = self._transfer.partition_arrays(entries.keys, partition)
                left = entries.select_records((old == partition) & (new != partition))
                for key, value, timestamp in zip(left.keys, left.values, left.times.tolist(), strict=True):
                    if value is not None:
                        times[key] = max(timestamp, times.get(key, timestamp))
                times = sent_if_many(records, topic, partition, times)
                records.commit_if_due()
            self._delete_keys(records, topic, partition, times)
        records.commit()

    def _moved_columns(
        self, partition: int, entries: EntryColumns, last: LastRecords, times: dict[bytes, int]
    ) -> OutputColumns:
        """Return what to write of the records of a chunk, and add what they change to `last` and `times`."""
        transfer = self._transfer
        before, after = transfer.partition_arrays(entries.keys, partition)
        owned = before == partition  # an earlier reshard has deleted the others here
        moved = entries
        if transfer.left is not None:
            values = [*map(transfer.value, entries.keys, entries.values)]
            moved = attrs.evolve(entries, values=values)
        self._add(last, moved, np.where(owned, after, NO_OWNER))
        left = owned & (after != partition)
        # Subscriptions that stay are replaced: all records, for the last one of a key has to be the last.
        is_written = left if transfer.is_in_place and transfer.left is None else owned
        topics = []
        for target in np.unique(after[is_written]).tolist():
            chosen = moved.select_records(is_written & (after == target))
            self.written += len(chosen.keys)
            topics.append(TopicColumns(transfer.target, [chosen.columns], target))
        is_noted = transfer.is_in_place and self._executes_all
        if is_noted and self._noted + len(times) <= _MAX_KEYS_IN_MEMORY:
            _note_times(times, entries.select_records(left))
        return OutputColumns(topics)

    def _add(self, last: LastRecords, entries: EntryColumns, owners: NDArray[np.int64] | int) -> None:
        partitions = np.full(len(entries.keys), owners) if isinstance(owners, int) else owners
        last.add(entries, partitions, entries.times < self._expires_before)

    def delete_leftovers(self, producer: MoveProducer, sources: Collection[int] | None = None) -> None:
        """Delete what an interrupted `copy` has written; with `sources`, only entries of these partitions.

        Raises `ValueError` for `sources` of another topic: its entries do not show their old partition.
        """
        if sources is not None and not self._transfer.is_in_place:
            raise ValueError(f"{self._transfer.target}: copies of some partitions cannot be distinguished")
        topic, records = self._transfer.target, Transactions(producer)
        await_transactions(self._cluster, self._target_partitions())
        for (_, partition), (first, end) in self._cluster.bounds(self._target_partitions()).items():
            old_end = self._ends.get(partition, 0) if self._transfer.is_in_place else 0
            times: dict[bytes, int] = {}
            if max(first, old_end) >= end:
                continue
            for chunk in self._cluster.read_range(topic, partition, old_end, end):
                entries = self._find_leftovers(entry_columns(chunk), partition, sources)
                for key, value, at in zip(entries.keys, entries.values, entries.times.tolist(), strict=True):
                    if value is not None:
                        times[key] = at
                    else:
                        times.pop(key, None)
                times = sent_if_many(records, topic, partition, times)
                records.commit_if_due()
                self._report(f"deleting an interrupted copy of {topic}", partition, self._transfer.after)
            self._delete_keys(records, topic, partition, times)
        records.commit()

    def _find_leftovers(
        self, entries: EntryColumns, partition: int, sources: Collection[int] | None
    ) -> EntryColumns:
        """Return the entries that a `copy` has written to a partition, from others."""
        if not self._transfer.is_in_place or (partition >= len(self._ends) and sources is None):
            return entries
        old, _ = self._transfer.partition_arrays(entries.keys, partition)
        is_copy = old != partition  # the others were replaced in their partition
        return entries.select_records(is_copy if sources is None else is_copy & np.isin(old, list(sources)))

    def _delete_keys(
        self, records: Transactions, topic: str, partition: int, times: Mapping[bytes, int]
    ) -> None:
        """Write a tombstone for each key."""
        written, done = create_tombstones(topic, partition, times), 0
        while part := list(islice(written, _TOMBSTONES_AT_ONCE)):
            _, _, keys, values, at, headers = zip(*part, strict=True)
            records.send(OutputColumns([TopicColumns(topic, [(keys, values, at, headers)], partition)]))
            done += len(part)
            self._report(f"deleting entries of {topic}", done, len(times))

    def _target_partitions(self) -> Sequence[TopicPartition]:
        topic = self._transfer.target
        return [(topic, each) for each in range(self._transfer.after) if self._share.has(each)]

    def _target_ends(self) -> Mapping[int, int]:
        bounds = self._cluster.bounds(self._target_partitions())
        return {partition: end for (_, partition), (_, end) in bounds.items()}

    def _read_partitions(
        self, topic: str, ends: Mapping[int, int], what: str, starts: Mapping[int, int] | None = None
    ) -> Iterator[tuple[int, Iterator[RecordChunk]]]:
        """Yield each partition with its chunks up to its end, which have to be read before the next one."""
        known = starts or {}
        chosen = sorted(filter(self._share.has, ends))
        bounds = self._cluster.bounds((topic, each) for each in chosen)
        firsts = {each: max(first, known.get(each, 0)) for (_, each), (first, _) in bounds.items()}
        total, done = sum(max(0, ends[each] - first) for each, first in firsts.items()), 0

        def reported(partition: int) -> Iterator[RecordChunk]:
            nonlocal done
            for chunk in self._cluster.read_range(topic, partition, known.get(partition, 0), ends[partition]):
                yield chunk
                done += len(chunk)
                self._report(f"{what} of {topic}", done, max(done, total))

        for partition in chosen:
            yield partition, reported(partition)


def _note_times(times: dict[bytes, int], entries: EntryColumns) -> None:
    """Note the latest time of each entry; those that are deleted have none."""
    for key, value, at in zip(entries.keys, entries.values, entries.times.tolist(), strict=True):
        if value is None:
            times.pop(key, None)
        else:
            times[key] = max(at, times.get(key, at))
