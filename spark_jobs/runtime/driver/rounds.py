"""Rounds of the queries that write repartition topics: a reader's batch ends where a round ends.

A round is one batch of a writing query: its tasks commit one after the other. A reader that took what the
first of them had committed would see that task's stretch of time and take the others' for late. So it waits
for the rest of the round and takes it along (`spark_jobs.runtime.worker.interleaving` then orders it).
"""

import threading
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

Place = tuple[str, int]
Offsets = Mapping[Place, int]
_KEPT = 1000
_NOTHING: Offsets = {}


class Rounds:
    """Shared by the queries of one application; every method may be called by any thread."""

    def __init__(self) -> None:
        self._ends: dict[str, deque[Offsets]] = {}
        self._under_way: set[str] = set()
        self._editions = 0
        self._changed = threading.Condition()

    @contextmanager
    def under_way(self, writer: str) -> Iterator[None]:
        """A batch of `writer`; readers wait for its end. A batch that fails ends no round."""
        with self._changed:
            self._under_way.add(writer)
        try:
            yield
        finally:
            with self._changed:
                self._under_way.discard(writer)
                self._changed.notify_all()

    def ended(self, writer: str, ends: Offsets) -> None:
        """A round of `writer` is over, or there has been none: its topics end at `ends`."""
        with self._changed:
            self._ends.setdefault(writer, deque(maxlen=_KEPT)).append(ends)
            self._changed.notify_all()

    def forget(self) -> None:
        """Forget all rounds; whoever waits for the end of one waits no longer."""
        with self._changed:
            self._ends.clear()
            self._editions += 1
            self._changed.notify_all()

    def whole(self, writer: str, ends: Offsets, seconds: float) -> Offsets:
        """Return where the round ends that `ends` lies in, for the places of the writer's topics.

        Waits for it up to `seconds`. Empty when that is not known: the writer is not at work, or too slow.
        """
        with self._changed:
            edition = self._editions
            self._changed.wait_for(
                lambda: (
                    self._covering(writer, ends) is not None
                    or writer not in self._under_way
                    or self._editions != edition
                ),
                seconds,
            )
            return self._covering(writer, ends) or _NOTHING

    def _covering(self, writer: str, ends: Offsets) -> Offsets | None:
        return next((each for each in self._ends.get(writer, ()) if _reach(each, ends)), None)


def _reach(round_ends: Offsets, ends: Offsets) -> bool:
    return all(end >= ends.get(place, 0) for place, end in round_ends.items())
