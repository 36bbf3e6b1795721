"""Requests that are sent before their answers are needed, a few at a time."""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from threading import Thread
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")
IN_FLIGHT = 3
"""A broker answers the requests of a connection one by one: of many at once the last would time out."""


class PendingRequests(Generic[K, V]):
    """A request in chunks. The first `in_flight` chunks are sent at once, the others as answers are taken.

    `what` names the request in problems.
    """

    def __init__(
        self, chunks: Iterator[Callable[[], dict[K, Future[V]]]], in_flight: int = IN_FLIGHT, what: str = ""
    ) -> None:
        self.what = what
        self._chunks = chunks
        self._sent: deque[dict[K, Future[V]]] = deque()
        for _ in range(in_flight):
            self._send()

    def take(self) -> Iterator[tuple[K, Future[V]]]:
        """Yield key and answer, and release each: thousands of answers take much memory."""
        while self._sent:
            chunk = self._sent.popleft()
            for key in tuple(chunk):
                yield key, chunk.pop(key)
            self._send()

    def _send(self) -> None:
        if (send := next(self._chunks, None)) is not None:
            self._sent.append({**send()})  # the client uses its own mapping to find the futures


def in_background(call: Callable[[], V]) -> Future[V]:
    """Run a blocking call in a daemon thread, which does not keep the program from ending."""
    future: Future[V] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:  # noqa: BLE001 - raised where the result is read
            future.set_exception(error)

    Thread(target=run, daemon=True).start()
    return future
