"""What a query has read but its tasks have not committed, because no record has reached them.

A task commits with its records, so without any it would commit nothing: tools would show a lag for ever, and
each restart would read the records again. Spark SQL drops records in its filters, and a batch may have
nothing but transaction markers, or records of transactions that were aborted. Or retention has deleted all
records since the last commit. So the driver lets tasks without records commit the end of what the query has
read for them (`UncommittedInput`). Kafka Streams commits the position of its consumer.
"""

from collections.abc import Iterable
from types import MappingProxyType

from headwater_spark.engine.records import OffsetRanges, Offsets, TopicPartition
from headwater_spark.worker.messages import BatchRequest, BatchResult

_DELAY_SECONDS = 1.0
"""How long tasks without records commit nothing while the query has more records to read."""


class UncommittedInput:
    """The offsets up to which a query has processed its input, and up to which its tasks have committed.

    Args:
        positions: The offsets with which the query starts.
        committed: The committed offsets that are before these: records between them do not exist any more.
    """

    def __init__(self, positions: Offsets, committed: Offsets = MappingProxyType({})) -> None:
        self._processed = dict(positions)
        self._committed = {**positions, **committed}
        self._renewed = dict(self._committed)
        self._requested_at = float("-inf")

    @property
    def ends(self) -> Offsets:
        """Topic partition → the offset before which all records are processed, or reach no task."""
        return dict(self._processed)

    @property
    def pending(self) -> Offsets:
        """Topic partition → the offset that its task has to commit."""
        return {each: end for each, end in self._processed.items() if end > self._committed.get(each, 0)}

    def take_idle(self) -> frozenset[TopicPartition]:
        """Return the partitions whose committed offset is the same as at the last call, or at the start."""
        before, self._renewed = self._renewed, dict(self._committed)
        return frozenset(each for each, offset in self._renewed.items() if before.get(each) == offset)

    def count_new(self, ends: Offsets) -> int:
        """Return about how many records a batch up to `ends` has."""
        return sum(end - self._processed.get(each, 0) for each, end in ends.items())

    def new_ranges(self, ends: Offsets) -> OffsetRanges:
        """Return about which offset ranges a batch up to `ends` has."""
        return {each: (self._processed.get(each, 0), end) for each, end in ends.items()}

    def skip_to(self, starts: Offsets) -> None:
        """Skip records that do not exist any more; `starts` are the first offsets of partitions."""
        for each, start in starts.items():
            if start > self._processed.get(each, 0):
                self._processed[each] = start

    def add(self, request: BatchRequest, results: Iterable[BatchResult]) -> None:
        """Add a batch or step that has not failed.

        Tasks that have committed did so up to what was read for them, or to the first record that was held
        back. Records that were held back are read again.
        """
        ends = dict(request.end_offsets)
        for result in results:
            held_back = result.first_held_back
            if result.read > 0 or not (result.held_back or result.skipped):
                ends |= held_back
                own = request.input_partitions(result.partition)
                self._committed.update({each: ends[each] for each in own if each in ends})
            else:
                ends = {each: end for each, end in ends.items() if each not in held_back}
        self._processed.update(ends)

    def tasks(self, request: BatchRequest) -> tuple[int, ...]:
        """Return the tasks that have to commit something."""
        pending = self.pending
        if not pending:
            return ()
        partitions = {task: request.input_partitions(task) for task in range(request.tasks)}
        return tuple(task for task, own in partitions.items() if not pending.keys().isdisjoint(own))

    def is_due(self, ends: Offsets, now: float) -> bool:
        """Return whether the tasks commit now, or with a later batch.

        Args:
            ends: The present end offsets of the input.
            now: Seconds of a monotonic clock.
        """
        has_more = any(end > self._processed.get(each, 0) for each, end in ends.items())
        if has_more and now - self._requested_at < _DELAY_SECONDS:
            return False
        self._requested_at = now
        return True
