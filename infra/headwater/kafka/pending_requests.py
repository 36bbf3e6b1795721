"""Requests that are answered in the background, and the largest parts of requests."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
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


T = TypeVar("T")
MOST_RECORDS = 5_000
"""Metadata records of a request; the controller refuses more than 10,000 (`MAX_RECORDS_PER_USER_OP`)."""


def batches(items: Sequence[T], records_of: Callable[[T], int]) -> Iterator[Sequence[T]]:
    """Yield `items` in their order, in batches of at most `MOST_RECORDS` records or one item each."""
    start = total = 0
    for index, item in enumerate(items):
        records = records_of(item)
        if index > start and total + records > MOST_RECORDS:
            yield items[start:index]
            start, total = index, 0
        total += records
    if start < len(items):
        yield items[start:]
