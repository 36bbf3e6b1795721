"""Hold queries between two batches, so that processors can be added."""

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from threading import Event
from typing import Protocol

from headwater_spark.driver.offsets import Offsets

_HOLD_SECONDS = 1.0
"""How often a wait for a batch checks whether the application stops."""


class HeldQuery(Protocol):
    def request_hold(self) -> None: ...
    def cancel_hold(self) -> None: ...
    def hold(self, seconds: float) -> bool: ...
    def release(self, positions: Offsets | None = None) -> None: ...


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
) -> Iterator[dict[str, Offsets]]:
    """Process no batch of `queries` inside the block.

    The block may fill the dictionary: name of a query → offsets at which it continues.

    Raises:
        BatchRunsError: A batch or step has not ended in `seconds`.
        StoppedError: `stopping` is set before all queries are held.
    """
    positions: dict[str, Offsets] = {}
    with ExitStack() as held:
        # All at once: while one batch ends, no other one begins.
        for query in queries.values():
            query.request_hold()
            held.callback(query.cancel_hold)
        for name, query in queries.items():
            if not await_batch(query, seconds, stopping):
                raise BatchRunsError(name)
            held.callback(lambda name, query: query.release(positions.get(name)), name, query)
        yield positions


def await_batch(query: HeldQuery, seconds: float, stopping: Event) -> bool:
    """Hold a query when its batch ends; return False if that takes longer. Raises `StoppedError`."""
    deadline = time.monotonic() + seconds
    while not query.hold(_HOLD_SECONDS):
        if stopping.is_set():
            raise StoppedError
        if time.monotonic() > deadline:
            return False
    return True
