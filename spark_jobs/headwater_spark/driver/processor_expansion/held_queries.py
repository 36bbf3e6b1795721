"""What an expansion waits for: few unprocessed records, older batches, and queries between two batches.

Unprocessed records are read in the cut, to check that they are in the partition of their key: a few only.

A batch is older if it partitions its records for fewer partitions than the inputs of processors have. A
sub-topology without state could still write such records after the cut. The processor of their partition
would not have the state of their keys any more.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from threading import Event
from typing import Protocol

import attrs

from headwater.model.problems import Problem
from headwater_spark.driver.processor_expansion import problems
from headwater_spark.driver.processor_move.checks import count_unprocessed
from headwater_spark.driver.processor_move.entry_copy import MoveCluster
from headwater_spark.driver.processor_move.moves import Move
from headwater_spark.engine.records import Commits

_HOLD_SECONDS = 1.0
"""How often a wait for a batch checks whether the application stops."""


class HeldQuery(Protocol):
    """A query whose batches can be held (`SubtopologyQuery`)."""

    def request_hold(self) -> None: ...
    def cancel_hold(self) -> None: ...
    def hold(self, seconds: float) -> bool: ...
    def forget_commits(self) -> None: ...
    def release(self, committed: Commits | None = None) -> None: ...


class StoppedError(Exception):
    """The application is stopped; the next start continues the expansion."""


class BatchRunsError(Exception):
    """A batch or step of `query` has not ended in time."""

    def __init__(self, query: str) -> None:
        super().__init__(query)
        self.query = query


@contextmanager
def all_held(
    queries: Mapping[str, HeldQuery], seconds: float, stopping: Event
) -> Iterator[dict[str, Commits]]:
    """Process no batch of `queries` inside the block.

    The block may fill the dictionary: name of a query → what is committed now, where it continues.

    Raises:
        BatchRunsError: A batch or step has not ended in `seconds`.
        StoppedError: `stopping` is set before all queries are held.
    """
    committed: dict[str, Commits] = {}
    with ExitStack() as held:
        # All at once: while one batch ends, no other one begins.
        for query in queries.values():
            query.request_hold()
            held.callback(query.cancel_hold)
        for name, query in queries.items():
            if not _await_batch(query, seconds, stopping):
                raise BatchRunsError(name)
            held.callback(lambda name, query: query.release(committed.get(name)), name, query)
        try:
            yield committed
        except BaseException:
            for query in queries.values():
                query.forget_commits()
            raise


def _await_batch(query: HeldQuery, seconds: float, stopping: Event) -> bool:
    """Hold a query when its batch ends; return False if that takes longer. Raises `StoppedError`."""
    deadline = time.monotonic() + seconds
    while not query.hold(_HOLD_SECONDS):
        if stopping.is_set():
            raise StoppedError
        if time.monotonic() > deadline:
            return False
    return True


_POLL_SECONDS = 0.2
_SILENT_SECONDS = 10.0
"""How long a wait is normal: then its reason is reported."""


@attrs.define(kw_only=True)
class OlderBatches:
    """What an expansion waits for before it is announced.

    `known_counts` returns topic → the partition count that batches use from now on. `queries` is the
    name of each sub-topology without state → its query. `delayed` gets the reason of a long wait.
    """

    move: Move
    known_counts: Callable[[], Mapping[str, int]]
    queries: Mapping[str, HeldQuery]
    stopping: Event
    delayed: Callable[[Problem], None]

    def wait(self) -> None:
        """Wait until the application knows all partitions, then until older batches have ended.

        Raises:
            StoppedError: The application is stopped.
        """
        self._await_partitions()
        for name, query in self.queries.items():
            started = _format_now()
            if not _await_batch(query, _SILENT_SECONDS, self.stopping):
                self.delayed(problems.older_batch_runs(self.move, name, started))
                _await_batch(query, float("inf"), self.stopping)
            query.release()

    def _await_partitions(self) -> None:
        counts = {topic: count for part in self.move.parts for topic, count in part.inputs.items()}
        since, started = time.monotonic(), _format_now()
        while missing := _missing_partitions(counts, self.known_counts()):
            if time.monotonic() - since >= _SILENT_SECONDS:
                self.delayed(problems.partitions_not_known(self.move, missing, started))
            if self.stopping.wait(_POLL_SECONDS):
                raise StoppedError


def _missing_partitions(counts: Mapping[str, int], known: Mapping[str, int]) -> list[str]:
    """Return the partitions that the application does not know yet, as text for each topic."""
    return [
        f"{known.get(topic, 0)} of {count} of {topic}"
        for topic, count in sorted(counts.items())
        if known.get(topic, 0) < count
    ]


def _format_now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


_MOST_UNPROCESSED = 200_000


@attrs.define
class UnprocessedRecords:
    """The unprocessed records of one application; `delayed` gets the reason of a long wait."""

    _move: Move
    _cluster: MoveCluster
    _delayed: Callable[[Problem], None]
    _since: float | None = attrs.field(default=None, init=False)
    _started: str = attrs.field(default="", init=False)

    def are_few(self) -> bool:
        """Return whether the cut may begin; raises `KafkaException`."""
        if count_unprocessed(self._move, self._cluster) <= _MOST_UNPROCESSED:
            return True
        if self._since is None:
            self._since = time.monotonic()
            self._started = _format_now()
        elif time.monotonic() - self._since >= _SILENT_SECONDS:
            self._delayed(problems.many_unprocessed(self._move, _MOST_UNPROCESSED, self._started))
        return False
