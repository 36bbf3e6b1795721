"""Execute a move of the state, step by step (`moves`)."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Protocol

from infra.model.problems import ProblemsError
from spark_jobs.runtime.driver.processor_move.moves import Committed, Move, MovedPart, MoveStep
from spark_jobs.runtime.driver.processor_move.problems import client_runs
from spark_jobs.runtime.engine.records import OutputRecord, TopicPartition
from spark_jobs.runtime.worker.offset_metadata import decode_mark
from spark_jobs.runtime.worker.restore import RecordChunk

Commits = Mapping[TopicPartition, tuple[int, str]]
"""Topic partition → (next offset to read, text of the offset metadata)"""
Report = Callable[[str, int, int], None]
"""Called with what is being done, how many records are done, and how many there are in total."""
_RECORDS_PER_TRANSACTION = 50_000
_SECONDS_PER_TRANSACTION = 10.0
_MAX_TOMBSTONES = 100_000


class MoveProducer(Protocol):
    def send(self, records: Iterable[OutputRecord]) -> int: ...
    def commit(self, commits: Commits) -> None: ...


class MoveCluster(Protocol):
    """What a move reads and changes; all methods may raise `KafkaException`."""

    def committed(
        self, partitions: Iterable[TopicPartition], *, stable: bool = True
    ) -> Mapping[TopicPartition, Committed]:
        """Return what is committed; with `stable`, wait for the end of transactions that commit offsets.

        That of a client that was killed ends when its producer is opened here.
        """
        ...

    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        """Return the first offset, and the one after the last committed record."""
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

    def producer(self, name: str) -> AbstractContextManager[MoveProducer]:
        """Open the producer with a transactional id; earlier ones with this id cannot commit any more."""
        ...


class StateMove:
    """One execution of a move; `observed` is what was committed when the input was checked.

    A second execution fences this one: then `run` raises `KafkaException`.
    """

    def __init__(
        self,
        move: Move,
        cluster: MoveCluster,
        observed: Mapping[TopicPartition, Committed],
        report: Report,
    ) -> None:
        self._move = move
        self._cluster = cluster
        self._observed = observed
        self._report = report
        self.copied = 0
        """The number of entries that were written to changelog partitions of added processors."""

    def run(self) -> None:
        """Execute all steps that are not done.

        Raises:
            ProblemsError: A client runs, or the offset of a partition is missing.
            KafkaException: Kafka fails, or the move is executed somewhere else.
        """
        with self._cluster.producer(f"{self._move.application}-headwater-move") as producer:
            while True:
                counts = self._cluster.counts(self._move.changelogs)
                unstable = self._cluster.committed(self._move.partitions, stable=False)
                if self._move.next_step(unstable, counts) is MoveStep.MARK:
                    self._mark()
                committed = self._cluster.committed(self._move.partitions)
                match self._move.next_step(committed, counts):
                    case MoveStep.EXPAND:
                        self._cluster.expand(dict.fromkeys(self._move.changelogs, self._move.after))
                    case MoveStep.COPY:
                        self._copy(producer)
                        self._commit(producer, committed, self._move.assigned(committed))
                    case MoveStep.CLEAR:
                        self._clear(producer)
                        self._commit(producer, committed, self._move.completed(committed))
                    case MoveStep.DONE:
                        return
                    case MoveStep.MARK:
                        pass  # a partition was added to the input meanwhile

    def _mark(self) -> None:
        for part in self._move.parts:
            for processor in range(self._move.before):
                self._mark_task(part, processor)

    def _mark_task(self, part: MovedPart, processor: int) -> None:
        """Mark the partitions of a task, as the task itself: so what a client commits is not overwritten."""
        with self._cluster.producer(self._move.task_name(part, processor)) as producer:
            found = self._cluster.committed(part.partitions_of(processor, self._move.before))
            if found and all(decode_mark(each.text) is not None for each in found.values()):
                return
            commits: dict[TopicPartition, tuple[int, str]] = {}
            for (topic, partition), each in found.items():
                is_marked = decode_mark(each.text) is not None
                if not is_marked and self._observed.get((topic, partition), each) != each:
                    raise ProblemsError([client_runs(self._move.application)])
                # Without a committed offset it had no record when the input was checked (`check_input`).
                offset = self._cluster.bounds(topic, partition)[0] if each.offset is None else each.offset
                commits[topic, partition] = offset, self._move.marked(partition, each.text)
            producer.commit(commits)

    def _copy(self, producer: MoveProducer) -> None:
        records = _Transactions(producer)
        before, after = self._move.before, self._move.after
        total, done = self._total(), 0
        for store, processor in self._move.sources:
            for chunk in self._cluster.read(store.changelog, processor):
                copies: list[OutputRecord] = []
                for _, _, _, timestamp, key, value, headers in chunk.records:
                    if key is None or store.processor(key, before) != processor:
                        continue  # an earlier move has deleted it here
                    owner = store.processor(key, after)
                    # Entries with processors in their values are all written again, in their order.
                    if owner != processor or store.has_partitions:
                        new = store.value(key, value, after)
                        copies.append((store.changelog, owner, key, new, timestamp, headers))
                records.send(copies)
                self.copied += len(copies)
                done += len(chunk.records)
                self._report("copying entries", done, total)
        records.commit()

    def _clear(self, producer: MoveProducer) -> None:
        """Delete the entries that were copied. A tombstone has the time of its entry."""
        records = _Transactions(producer)
        before, after = self._move.before, self._move.after
        total, done = self._total(), 0
        for store, processor in self._move.sources:
            times: dict[bytes, int] = {}

            def write(
                topic: str = store.changelog, partition: int = processor, times: dict[bytes, int] = times
            ) -> None:
                records.send((topic, partition, key, None, at, ()) for key, at in times.items())
                times.clear()

            for chunk in self._cluster.read(store.changelog, processor):
                for _, _, _, timestamp, key, value, _ in chunk.records:
                    if key is None or store.processor(key, before) != processor:
                        continue
                    if value is not None and store.processor(key, after) != processor:
                        times[key] = max(timestamp, times.get(key, timestamp))
                if len(times) >= _MAX_TOMBSTONES:
                    write()
                done += len(chunk.records)
                self._report("deleting copied entries", done, total)
            write()
        records.commit()

    def _commit(
        self,
        producer: MoveProducer,
        committed: Mapping[TopicPartition, Committed],
        texts: Mapping[TopicPartition, str],
    ) -> None:
        producer.commit({each: (committed[each].offset or 0, text) for each, text in texts.items()})

    def _total(self) -> int:
        bounds = (self._cluster.bounds(store.changelog, each) for store, each in self._move.sources)
        return sum(end - first for first, end in bounds)


class _Transactions:
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
        is_old = time.monotonic() - self._since >= _SECONDS_PER_TRANSACTION
        if self._sent >= _RECORDS_PER_TRANSACTION or (self._sent and is_old):
            self.commit()

    def commit(self) -> None:
        if self._sent:
            self._producer.commit({})
            self._sent = 0
