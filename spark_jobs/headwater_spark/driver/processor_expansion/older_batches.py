"""Wait until no batch partitions its records for fewer partitions than the inputs of processors have.

One of a sub-topology without state could still write such records after the cut. The processor of their
partition would not have the state of their keys any more.
"""

import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from threading import Event

import attrs

from headwater.model.problems import Problem
from headwater_spark.driver.processor_expansion.held_queries import HeldQuery, StoppedError, await_batch
from headwater_spark.driver.processor_move import problems
from headwater_spark.driver.processor_move.moves import Move

_POLL_SECONDS = 0.2
_SILENT_SECONDS = 10.0
"""How long a wait is normal: then its reason is reported."""


@attrs.define(kw_only=True)
class OlderBatches:
    """What an expansion waits for before it is announced.

    `known_counts` returns topic → the partition count that batches use from now on. `queries` are those of
    sub-topologies without state, by the name of the sub-topology. `delayed` gets the reason of a long wait.
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
            started = _now()
            if not await_batch(query, _SILENT_SECONDS, self.stopping):
                self.delayed(problems.older_batch_runs(self.move, name, started))
                await_batch(query, float("inf"), self.stopping)
            query.release()

    def _await_partitions(self) -> None:
        counts = {topic: count for part in self.move.parts for topic, count in part.inputs.items()}
        since, started = time.monotonic(), _now()
        while missing := _missing(counts, self.known_counts()):
            if time.monotonic() - since >= _SILENT_SECONDS:
                self.delayed(problems.partitions_not_known(self.move, missing, started))
            if self.stopping.wait(_POLL_SECONDS):
                raise StoppedError


def _missing(counts: Mapping[str, int], known: Mapping[str, int]) -> list[str]:
    """Return the partitions that the application does not know yet, as text for each topic."""
    return [
        f"{known.get(topic, 0)} of {count} of {topic}"
        for topic, count in sorted(counts.items())
        if known.get(topic, 0) < count
    ]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
