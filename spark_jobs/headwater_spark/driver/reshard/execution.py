"""Execute a reshard step by step. It can be killed at any point and run again.

1. The ends of all changelog partitions are committed, as the journal. From then on it is a reshard.
2. The first changelog topic is expanded, which locks the application. An instance that has started since the
   checks may have written: then the ends are committed again.
3. The changelog topics, the largest first: each is expanded, its entries are copied, compared, and deleted
   from their old partitions.
4. Before the last changelog topic is expanded: the repartition topics are expanded, and source topics whose
   unprocessed records are written again. One transaction writes these records, and commits the offsets.
   If there is only one changelog topic, step 2 has expanded it. Then its entries are moved before step 4.
5. Other source topics are expanded, and offsets of added partitions are committed.

Until the last expansion, the application does not start: Kafka Streams and the runtime refuse topics whose
counts do not fit. That is step 5. If the source topics have the new count before, it is the last changelog
topic, or step 4 if there is only one.
"""

import secrets
import time
from collections.abc import Callable, Mapping, Sequence

import attrs

from headwater.model.problems import Problem, ProblemsError
from headwater_spark.driver.processor_move.entry_copy import MoveProducer, Report
from headwater_spark.driver.reshard import input_problems, problems
from headwater_spark.driver.reshard.checks import check_sources
from headwater_spark.driver.reshard.entry_move import ReshardCluster, await_transactions
from headwater_spark.driver.reshard.entry_passes import EntryPasses, OwnProcess, PassExecutor
from headwater_spark.driver.reshard.entry_totals import (
    DIGEST_VERSION,
    EntryTotals,
    FoundTotals,
    check_totals,
    incomplete_partitions,
)
from headwater_spark.driver.reshard.journal import Journal, Phase, journal_partitions, read_journal
from headwater_spark.driver.reshard.plan import WRITERS, Reshard, worker_names
from headwater_spark.driver.reshard.unprocessed_records import UnprocessedRecords
from headwater_spark.engine.records import TopicPartition
from headwater_spark.engine.scaling.transfers import Transfer

_DAY_MS = 24 * 60 * 60 * 1000
_ROUND_BITS = 62


@attrs.define(eq=False)
class ReshardExecution:
    """One execution of a reshard. A second one fences this one: then `run` raises `KafkaException`.

    `retentions` is changelog topic → its `retention.ms`; None = its records are not deleted by time.
    `journal` was written by an execution which was interrupted; None = nothing has changed. `check_stopped`
    raises `ProblemsError` if the application runs. `executor` executes the passes over the entries; default:
    this process.
    """

    _reshard: Reshard
    _cluster: ReshardCluster
    _retentions: Mapping[str, int | None]
    _journal: Journal | None
    _report: Report
    _check_stopped: Callable[[], None] = attrs.field(kw_only=True)
    _executor: PassExecutor = attrs.field(kw_only=True)

    @_executor.default
    def _own_process(self) -> PassExecutor:
        return OwnProcess(self._cluster, self._report)

    @property
    def written(self) -> int:
        """The number of changelog records that were written to new partitions, by all executions."""
        return 0 if self._journal is None else sum(self._journal.written.values())

    @property
    def has_begun(self) -> bool:
        """Whether something has changed."""
        return self._journal is not None

    @property
    def location(self) -> TopicPartition:
        """The partition whose offset metadata have the number of the round (`WritingRound`)."""
        return self._known_journal().root, 0

    @property
    def number(self) -> int:
        """The number of the round in which tasks may write."""
        return self._known_journal().round

    def begin(self, producer: MoveProducer) -> None:
        """Begin another round; tasks of the earlier ones cannot write any more."""
        self._journal = journal = attrs.evolve(self._known_journal(), round=_new_round())
        producer.commit(journal.commits(journal.root))
        self._fence_writers(journal.writers)

    def run(self) -> None:
        """Execute all steps that are not done.

        Raises:
            ProblemsError: What was written is not complete, or a topic cannot be expanded.
            KafkaException: Kafka fails, or the reshard is executed somewhere else.
        """
        with self._cluster.producer(self._reshard.producer_name) as producer:
            self._fence_others(producer)
            if self._journal is None:
                self._journal = self._begin(producer)
            else:
                self._check_partitioners(self._journal)
            self._lock_application(producer)
            transfers = self._by_size()
            for index, transfer in enumerate(transfers):
                # If the last topic is expanded, the inputs prevent a start until its entries are moved.
                is_expanded = self._cluster.counts([transfer.source])[transfer.source] >= transfer.after
                if index == len(transfers) - 1 and not is_expanded:
                    self._commit_offsets(producer)
                self._move_entries(producer, transfer)
            self._commit_offsets(producer)
            if self._reshard.sources:
                self._cluster.expand(self._reshard.sources)
            self._commit_added(producer)
            producer.commit(self._known_journal().removal)
            check_sources(self._reshard, self._cluster)

    def _fence_others(self, producer: MoveProducer) -> None:
        """Prevent that another execution writes from now on, and check that none has written meanwhile.

        Tasks of Spark read the number of the round after they have opened their producers. So it is committed
        before these are fenced: a task of an earlier round is fenced, or finds another number. The last
        commit shows that the producer has not been fenced before the others were.

        Raises:
            ProblemsError: The journal has changed since it was read.
            KafkaException: Another execution has begun.
        """
        topics = [each.source for each in self._reshard.transfers]
        committed = self._cluster.committed(journal_partitions(self._cluster.counts(topics)))
        if read_journal(committed) != self._journal:
            reason = "another client has executed it meanwhile"
            raise ProblemsError([problems.kafka_failed(self._reshard.application, reason)])
        writers = max(WRITERS, self._executor.writers)
        if self._journal is not None:
            writers = max(writers, self._journal.writers)
            self._journal = attrs.evolve(self._journal, writers=writers, round=_new_round())
            producer.commit(self._journal.commits(self._journal.root))
        own = self._executor.open_producers()
        self._fence_writers(writers, own)
        if self._journal is not None:
            producer.commit(self._journal.commits(self._journal.root))

    def _fence_writers(self, number: int, own: Sequence[str] = ()) -> None:
        names = worker_names(self._reshard.application, number)
        self._cluster.fence([name for name in names if name not in own])

    def _begin(self, producer: MoveProducer) -> Journal:
        partitions = self._reshard.changelog_partitions
        ends = {each: end for each, (_, end) in self._cluster.bounds(partitions).items()}
        journal = Journal(
            self._reshard.counts,
            ends,
            {each.source: Phase.COPY for each in self._reshard.transfers},
            layouts={
                each.source: each.store.layout
                for each in self._reshard.transfers
                if each.store is not None and each.store.layout is not None
            },
            started_ms=int(time.time() * 1000),
            partitioners={
                each.topic: each.partitioner.checksum
                for each in self._reshard.inputs
                if each.partitioner is not None
            },
            writers=max(WRITERS, self._executor.writers),
            round=_new_round(),
        )
        producer.commit(journal.all_commits)
        return journal

    def _check_partitioners(self, journal: Journal) -> None:
        """Check that users' partitioners return what they returned for the entries that have moved.

        Otherwise entries of one key would be in different partitions, or be deleted without a copy.

        Raises:
            ProblemsError: A partitioner has changed; nothing was written since the interruption.
        """
        wrong = []
        for transfer in self._reshard.transfers:
            topic, phase = transfer.source, journal.phases[transfer.source]
            if transfer.partitioner is None or phase is Phase.COPY:
                continue
            found = self._entry_move(transfer).find_totals()
            # Old partitions may still have entries that were copied; added ones have only what was copied.
            misplaced = found.misplaced[transfer.before if phase is Phase.CLEAR else 0 :]
            may_expire = self._may_expire(journal, topic, int(time.time() * 1000))
            if any(misplaced) or (
                phase is Phase.CLEAR
                and incomplete_partitions(
                    journal.totals[topic],
                    found,
                    may_expire=may_expire,
                    has_digests=journal.has_digests(topic),
                )
            ):
                wrong.append(self._changed_partitioner(transfer))
        if wrong:
            raise ProblemsError(wrong)

    def _lock_application(self, producer: MoveProducer) -> None:
        """Prevent starts of the application, and commit the ends again if it has written since the checks.

        Nothing has been written by the reshard yet, so all records of the old partitions are entries.
        """
        journal = self._known_journal()
        if journal.is_locked:
            return
        first = next((each for each in self._by_size() if each.before != each.after), None)
        if first is not None and first.source not in self._reshard.settled:
            self._cluster.expand({first.source: first.after})
        self._check_stopped()
        partitions = self._reshard.changelog_partitions
        await_transactions(self._cluster, partitions)
        if unfinished := self._cluster.open_transactions(partitions):
            application = self._reshard.application
            raise ProblemsError(
                [problems.open_transaction(application, *each, has_begun=True) for each in unfinished]
            )
        ends = {each: end for each, (_, end) in self._cluster.bounds(partitions).items()}
        self._journal = attrs.evolve(journal, ends=ends, is_locked=True)
        producer.commit(self._journal.all_commits)

    def _move_entries(self, producer: MoveProducer, transfer: Transfer) -> None:
        journal, topic, now = self._known_journal(), transfer.source, int(time.time() * 1000)
        phase = journal.phases[topic]
        if phase is Phase.DONE:
            return
        if phase is Phase.COPY:
            self._journal = journal = attrs.evolve(journal, started_ms=now)
        self._cluster.expand({topic: transfer.after})
        move = self._entry_move(transfer)
        if phase is Phase.COPY:
            move.delete_leftovers(producer)
            expected = tuple(move.copy(producer))
            if move.skipped and transfer.partitioner is not None:
                raise ProblemsError([self._changed_partitioner(transfer)])
            check_totals(self._reshard.application, transfer, expected, move.find_totals())
            journal = self._known_journal()  # a copy that was repeated has begun another round
            self._journal = attrs.evolve(journal, written={**journal.written, topic: move.written})
            self._commit_phase(producer, topic, Phase.CLEAR, expected)
        elif not journal.has_digests(topic):
            self._replace_digests(producer, transfer, move.find_totals(), now)
        move.clear(producer)
        found = move.find_totals()
        expected = self._known_journal().totals[topic]
        may_expire = self._may_expire(journal, topic, now)
        check_totals(
            self._reshard.application, transfer, expected, found, is_cleared=True, may_expire=may_expire
        )
        if any(found.misplaced):
            first = problems.wrong_copy(
                self._reshard.application,
                topic,
                0,
                "no entries of other partitions",
                f"{sum(found.misplaced):,} entries",
                is_cleared=True,
            )
            raise ProblemsError([first])
        self._commit_phase(producer, topic, Phase.DONE)

    def _replace_digests(
        self, producer: MoveProducer, transfer: Transfer, found: FoundTotals, now: int
    ) -> None:
        """Compare the numbers of the entries that an execution of another version has copied and compared.

        Its digests are not comparable. What is found gets own ones, with which the deletion is checked.
        """
        journal, topic = self._known_journal(), transfer.source
        check_totals(
            self._reshard.application,
            transfer,
            journal.totals[topic],
            found,
            is_cleared=True,
            may_expire=self._may_expire(journal, topic, now),
            has_digests=False,
        )
        self._commit_phase(producer, topic, Phase.CLEAR, tuple(found.partitions))

    def _entry_move(self, transfer: Transfer) -> EntryPasses:
        journal = self._known_journal()
        limit = expires_before(journal.started_ms, self._retentions.get(transfer.source))
        ends = journal.ends_of(transfer.source)
        return self._executor.move(transfer, ends, limit, self)

    def _may_expire(self, journal: Journal, topic: str, now_ms: int) -> bool:
        """Return whether retention may have deleted entries that were not expiring when they were copied."""
        return self._retentions.get(topic) is not None and now_ms > journal.started_ms + _DAY_MS

    def _changed_partitioner(self, transfer: Transfer) -> Problem:
        name = "" if transfer.partitioner is None else transfer.partitioner.name
        return input_problems.changed_partitioner(self._reshard.application, transfer.source, name)

    def _commit_offsets(self, producer: MoveProducer) -> None:
        """Write unprocessed records again, and commit the offsets: one transaction."""
        journal = self._known_journal()
        if journal.has_offsets:
            self._commit_texts_again(producer)  # an earlier execution may have been interrupted before
            return
        if wrong := self._unprocessed_records().problems(has_begun=True):
            raise ProblemsError(wrong)
        # The counts may fit from now on.
        self._cluster.expand(self._reshard.rewritten_topics)
        self._report("committing offsets", 0, 1)
        records = self._unprocessed_records()
        producer.send(records.rewritten_records())
        self._journal = attrs.evolve(journal, has_offsets=True)
        producer.commit({**records.commits(added=False), **self._journal.commits(journal.root)})
        self._commit_texts_again(producer)

    def _commit_added(self, producer: MoveProducer) -> None:
        if commits := self._unprocessed_records().commits(added=True):
            producer.commit(commits)
            self._commit_texts_again(producer)

    def _commit_texts_again(self, producer: MoveProducer) -> None:
        """Commit the offsets again: Kafka Streams cannot read the texts that a transaction has committed.

        The transaction in between fails if another execution has begun. It may have completed the reshard,
        and the application may have run: then offsets would be set back.
        """
        committed = self._cluster.committed(self._input_partitions())
        journal = self._known_journal()
        producer.commit(journal.commits(journal.root))
        self._cluster.commit_offsets(
            {
                each: (found.offset, found.text)
                for each, found in committed.items()
                if found.offset is not None
            }
        )

    def _commit_phase(
        self, producer: MoveProducer, topic: str, phase: Phase, totals: tuple[EntryTotals, ...] | None = None
    ) -> None:
        journal = self._known_journal()
        self._journal = attrs.evolve(
            journal,
            phases={**journal.phases, topic: phase},
            totals=journal.totals if totals is None else {**journal.totals, topic: totals},
            versions=journal.versions if totals is None else {**journal.versions, topic: DIGEST_VERSION},
        )
        producer.commit({**self._journal.commits(journal.root), **self._journal.commits(topic)})

    def _by_size(self) -> Sequence[Transfer]:
        """Return the transfers: first those whose topics keep their count or have the new one, then by size.

        Topics of sources that have the new count already are last: until one of the others is expanded, they
        are what prevents a start of the application.

        The last expansion unlocks the application if the source topics have the new count already.
        """
        ends = self._known_journal().ends
        sizes = {
            each.source: sum(end for (topic, _), end in ends.items() if topic == each.source)
            for each in self._reshard.transfers
        }
        present = self._cluster.counts(sizes)
        return sorted(
            self._reshard.transfers,
            key=lambda each: (
                each.before != each.after,
                present[each.source] < each.after,
                each.source in self._reshard.settled,
                -sizes[each.source],
            ),
        )

    def _unprocessed_records(self) -> UnprocessedRecords:
        """Return the unprocessed records, as they are committed now."""
        committed = self._cluster.committed(self._input_partitions())
        return UnprocessedRecords(self._reshard, self._cluster, committed)

    def _input_partitions(self) -> Sequence[TopicPartition]:
        counts = self._cluster.counts(each.topic for each in self._reshard.inputs)
        return [(topic, number) for topic, count in counts.items() for number in range(count)]

    def _known_journal(self) -> Journal:
        if self._journal is None:
            raise RuntimeError("the reshard has not begun")
        return self._journal


def _new_round() -> int:
    """Return a number that no other round has: also rounds of earlier reshards of the application."""
    return 1 + secrets.randbits(_ROUND_BITS)


def expires_before(started_ms: int, retention_ms: int | None) -> int | None:
    """Return the timestamp before which brokers may delete records within a day after the start."""
    return None if retention_ms is None else started_ms + _DAY_MS - retention_ms
