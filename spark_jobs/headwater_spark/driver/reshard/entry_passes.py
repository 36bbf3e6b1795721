"""The passes of a reshard over the entries of a topic, what executes them, and who may write meanwhile.

One process executes them (`OwnProcess`), several processes (`EntryWorkers`), or the tasks of Spark jobs
(`SparkPasses`). Each executes the passes of `EntryMove`, for a share of the partitions. Tasks and processes
may run after the process that has started them has ended, and another one has begun, or the application was
reset. So they check before they write that their round is the present one (`WritingRound`).
"""

import time
from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

import attrs
from confluent_kafka import KafkaError, KafkaException

from headwater.model.problems import Problem
from headwater_spark.driver.processor_move.entry_copy import MoveProducer, Report
from headwater_spark.driver.reshard.entry_checks import check_entries
from headwater_spark.driver.reshard.entry_move import EntryMove, ReshardCluster
from headwater_spark.driver.reshard.entry_totals import EntryTotals, FoundTotals
from headwater_spark.driver.reshard.journal import read_round
from headwater_spark.driver.reshard.plan import Reshard
from headwater_spark.engine.records import TopicPartition
from headwater_spark.engine.scaling.transfers import Transfer

_VISIBLE_SECONDS = 60.0
_POLL_SECONDS = 0.1
FAILED = KafkaError._FAIL  # noqa: SLF001 - the library's own codes begin with an underscore


class WritingRound(Protocol):
    """Decides which tasks and processes may write: only writers of the round whose number is in the journal.

    A round begins with each execution, and before tasks are repeated. Then all writers of earlier rounds are
    fenced. A late writer that opens its producer afterwards finds another number in the journal.
    """

    @property
    def location(self) -> TopicPartition:
        """The partition whose offset metadata have the number."""
        ...

    @property
    def number(self) -> int: ...

    def begin(self, producer: MoveProducer) -> None:
        """Commit another number, then fence all writers."""
        ...


class OtherRoundError(KafkaException):
    """Another round has begun, or another execution."""

    def __init__(self) -> None:
        super().__init__(KafkaError(FAILED, "another client executes it"))


def await_partitions(cluster: ReshardCluster, topic: str, count: int) -> None:
    """Wait until the broker of this process knows the partitions that another process has added.

    A process that moves a share never adds partitions: it may run after the process that has started it has
    ended, and the application was reset. Raises `KafkaException`.
    """
    deadline = time.monotonic() + _VISIBLE_SECONDS
    while (found := cluster.counts([topic])[topic]) < count:
        if time.monotonic() > deadline:
            raise KafkaException(KafkaError(FAILED, f"{topic} has {found} partitions instead of {count}"))
        time.sleep(_POLL_SECONDS)
    cluster.renew_reader()


def check_round(cluster: ReshardCluster, location: TopicPartition, number: int) -> None:
    """Check that the journal has this round, after a producer was opened: it has fenced earlier ones.

    A process that opens its producer after the fence of the next execution would not be fenced. Raises
    `OtherRoundError`.
    """
    [found] = cluster.committed([location]).values()
    if read_round(found.text) != number:
        raise OtherRoundError


class EntryPasses(Protocol):
    """The passes over one topic. All shares complete a pass before the next one begins."""

    written: int
    skipped: int

    def delete_leftovers(self, producer: MoveProducer) -> None: ...
    def copy(self, producer: MoveProducer) -> Sequence[EntryTotals]: ...
    def find_totals(self) -> FoundTotals: ...
    def clear(self, producer: MoveProducer) -> None: ...


class PassExecutor(Protocol):
    """Executes passes. Methods raise `ProblemsError`, `PartitionerError` and `KafkaException`."""

    @property
    def writers(self) -> int:
        """The number of its writers: they have the first ones of the transactional ids in `worker_names`."""
        ...

    def check_entries(self, reshard: Reshard) -> Sequence[Problem]:
        """Return a problem for each changelog topic with an entry that is not in the partition of its key."""
        ...

    def open_producers(self) -> Sequence[str]:
        """Open the producers that write in all passes; return their transactional ids, which are fenced."""
        ...

    def move(
        self, transfer: Transfer, ends: Mapping[int, int], limit: int | None, writing: WritingRound
    ) -> EntryPasses:
        """Return the passes over the topic of a transfer, which has all partitions.

        `ends` is partition → end of its old part. Retention may delete records from before `limit`, a
        timestamp; None = none.
        """
        ...


@attrs.frozen(eq=False)
class OwnProcess:
    """This process executes the passes, with the producer of the execution."""

    _cluster: ReshardCluster
    _report: Report
    writers = 0

    def check_entries(self, reshard: Reshard) -> Sequence[Problem]:
        return check_entries(reshard, self._cluster, self._report)

    def open_producers(self) -> Sequence[str]:
        return ()

    def move(
        self, transfer: Transfer, ends: Mapping[int, int], limit: int | None, writing: WritingRound
    ) -> EntryPasses:
        del writing  # nothing is repeated
        return EntryMove(transfer, self._cluster, ends, limit, self._report)


def run_pass(
    move: EntryMove, method: str, producer: MoveProducer, sources: Collection[int] | None = None
) -> object:
    """Execute a pass that writes, for a share of the partitions; return what it returns.

    `copy` also returns how many records it has written, and how many entries it has skipped. `sources` limits
    `delete_leftovers` to the entries of these partitions.
    """
    if method == "copy":
        return move.copy(producer), move.written, move.skipped
    if method == "delete_leftovers":
        move.delete_leftovers(producer, sources)
    else:
        move.clear(producer)
    return None


def summed_copies(
    copies: Sequence[tuple[Sequence[EntryTotals], int, int]],
) -> tuple[list[EntryTotals], int, int]:
    """Return the sums of what `run_pass` has returned for `copy` of all shares."""
    totals, written, skipped = zip(*copies, strict=True)
    return summed_shares(totals), sum(written), sum(skipped)


def summed_shares(totals: Sequence[Sequence[EntryTotals]]) -> list[EntryTotals]:
    """Return the sum of what all shares have found, for each partition."""
    return [sum(parts, EntryTotals()) for parts in zip(*totals, strict=True)]


def summed_found(found: Sequence[FoundTotals]) -> FoundTotals:
    """Return the sum of what all shares have found."""
    misplaced = [sum(each) for each in zip(*(each.misplaced for each in found), strict=True)]
    return FoundTotals(summed_shares([each.partitions for each in found]), misplaced)


def one_each(problems: Sequence[Sequence[Problem]]) -> Sequence[Problem]:
    """Return the first problem of each topic that a share has found."""
    found = [problem for each in problems for problem in each]
    return list({problem.topic: problem for problem in reversed(found)}.values())
