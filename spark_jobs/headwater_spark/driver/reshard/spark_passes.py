"""The passes of a reshard as jobs of Spark: one for the check, one for each pass and topic.

A job has a task for each share of the partitions.

A share that has failed is executed again in another round: then its task, if it still runs, cannot write any
more. Before a share is copied again, what it has copied is deleted. That is a pass of its own, in which each
task reads and writes other partitions: the transactions of other tasks would hide records that are committed.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
from attrs.validators import ge, le

from headwater.kafka import Connection
from headwater.model.problems import Problem
from headwater_spark.driver.processor_move.entry_copy import MoveProducer, Report, report_no_progress
from headwater_spark.driver.reshard.entry_move import Share
from headwater_spark.driver.reshard.entry_passes import (
    EntryPasses,
    WritingRound,
    one_each,
    summed_copies,
    summed_found,
)
from headwater_spark.driver.reshard.entry_totals import EntryTotals, FoundTotals
from headwater_spark.driver.reshard.plan import MOST_WRITERS, Reshard
from headwater_spark.driver.reshard.share_tasks import (
    Answer,
    CheckPass,
    Failure,
    MovePass,
    Pass,
    Refusal,
    Result,
    sent_transfer,
)
from headwater_spark.engine.scaling.transfers import Transfer

_ATTEMPTS = 4
"""How often shares are executed in a row without a result of any, as Spark's default for tasks.

Each result counts: the more tasks a pass has and the longer they take, the more executors are lost meanwhile.
"""
RunJob = Callable[[str, Pass, Sequence[int]], Mapping[int, Answer]]
"""Executes a pass for some shares; returns share → answer. Its first argument says what is done.

A share without an answer has failed.
"""
_MISSING = Failure("Spark has not executed a task")
_TEXTS = {
    "delete_leftovers": "deleting an interrupted copy of {topic}",
    "copy": "copying entries of {topic}",
    "find_totals": "checking entries of {topic}",
    "clear": "deleting copied entries of {topic}",
}


@attrs.frozen(eq=False)
class SparkPasses:
    """Executes passes with `run_job`, in up to `writers` tasks each."""

    _connection: Connection
    _application: str
    writers: int = attrs.field(validator=[ge(1), le(MOST_WRITERS)])
    _run_job: RunJob
    _report: Report = report_no_progress

    def check_entries(self, reshard: Reshard) -> Sequence[Problem]:
        transfers = tuple(map(sent_transfer, reshard.transfers))
        shares = min(self.writers, max(each.before for each in transfers))
        needed = attrs.evolve(reshard, transfers=transfers, inputs=())
        request = CheckPass(connection=self._connection, reshard=needed, shares=shares)
        return one_each(self.results("reading the changelog topics", request, range(shares)))

    def open_producers(self) -> Sequence[str]:
        """Open none: each task opens its own one."""
        return ()

    def move(
        self, transfer: Transfer, ends: Mapping[int, int], limit: int | None, writing: WritingRound
    ) -> EntryPasses:
        # Subscriptions that stay are replaced, and read again in the same pass, behind the records of others.
        shares = min(self.writers, transfer.after) if transfer.left is None else 1
        return _SparkMove(self, self._connection, self._application, transfer, ends, limit, shares, writing)

    def results(
        self,
        what: str,
        request: Pass,
        shares: Sequence[int],
        next_request: Callable[[Sequence[int]], Pass] | None = None,
    ) -> Sequence[Any]:
        """Return what a pass returns for each share; shares that fail are executed again.

        `next_request` prepares another execution for the shares that have failed, and returns its pass.
        Raises the error of the last failure, or of a refusal.
        """
        found: dict[int, object] = {}
        missing, failure, attempt = list(shares), _MISSING, 0
        while attempt < _ATTEMPTS:
            if attempt > 0:
                again = f"{what}: executing {len(missing)} of {len(shares)} shares again"
                self._report(f"{again}: {failure.reason}", 0, 0)
                if next_request is not None:
                    request = next_request(missing)
            answers, before = self._run_job(what, request, missing), len(missing)
            for share in missing:
                match answers.get(share, _MISSING):
                    case Result(value):
                        found[share] = value
                    case Refusal() as refusal:
                        raise refusal.error()
                    case Failure() as failure:
                        pass
            missing = [share for share in missing if share not in found]
            if not missing:
                return [found[share] for share in sorted(found)]
            attempt = attempt + 1 if len(missing) == before else 1
        raise failure.error()


@attrs.define
class _SparkMove:
    """The passes over one topic."""

    _passes: SparkPasses
    _connection: Connection
    _application: str
    _transfer: Transfer
    _ends: Mapping[int, int]
    _limit: int | None
    _shares: int
    _writing: WritingRound
    written: int = 0
    skipped: int = 0

    def delete_leftovers(self, producer: MoveProducer) -> None:
        self._delete(producer, None)

    def copy(self, producer: MoveProducer) -> Sequence[EntryTotals]:
        def delete_copies(missing: Sequence[int]) -> Pass:
            self._writing.begin(producer)
            shares = [Share(each, self._shares) for each in missing]
            self._delete(producer, frozenset(at for at in self._ends if any(each.has(at) for each in shares)))
            return self._request("copy")

        found = self._pass_results("copy", delete_copies, shares=self._old_shares)
        totals, self.written, self.skipped = summed_copies(found)
        return totals

    def find_totals(self) -> FoundTotals:
        return summed_found(self._pass_results("find_totals"))

    def clear(self, producer: MoveProducer) -> None:
        self._pass_results("clear", self._repeated_pass("clear", producer), shares=self._old_shares)

    @property
    def _old_shares(self) -> int:
        """The number of shares that have old partitions."""
        return min(self._shares, self._transfer.before)

    def _delete(self, producer: MoveProducer, sources: frozenset[int] | None) -> None:
        again = self._repeated_pass("delete_leftovers", producer, sources)
        self._pass_results("delete_leftovers", again, sources)

    def _repeated_pass(
        self, method: str, producer: MoveProducer, sources: frozenset[int] | None = None
    ) -> Callable[[Sequence[int]], Pass]:
        """Return how a pass is repeated whose tasks may write the same records again."""

        def begin_round(missing: Sequence[int]) -> Pass:
            del missing
            self._writing.begin(producer)
            return self._request(method, sources)

        return begin_round

    def _pass_results(
        self,
        method: str,
        next_request: Callable[[Sequence[int]], Pass] | None = None,
        sources: frozenset[int] | None = None,
        *,
        shares: int | None = None,
    ) -> Sequence[Any]:
        """Return what a pass returns for the first `shares` shares; None = all."""
        what = _TEXTS[method].format(topic=self._transfer.source)
        request = self._request(method, sources)
        return self._passes.results(what, request, range(shares or self._shares), next_request)

    def _request(self, method: str, sources: frozenset[int] | None = None) -> MovePass:
        return MovePass(
            connection=self._connection,
            application=self._application,
            method=method,
            transfer=sent_transfer(self._transfer),
            ends=self._ends,
            limit=self._limit,
            shares=self._shares,
            location=self._writing.location,
            round=self._writing.number,
            sources=sources,
        )
