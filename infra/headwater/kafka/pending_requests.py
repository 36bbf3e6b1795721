"""Requests that are answered in the background, clients that may hang, and the largest parts of requests."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
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

    def take_answers(self) -> Iterator[tuple[K, Future[V]]]:
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


C = TypeVar("C")


class RenewedClient(Generic[C]):
    """A Kafka client, for one thread, that is replaced after a failure.

    A client that met a hanging broker may never be answered. The old client is dropped in the background,
    after its last answer, because that may hang as well. `connect` makes a client; `settle` waits for the
    last answers of one.
    """

    def __init__(self, connect: Callable[[], C], settle: Callable[[C], object] = lambda _: None) -> None:
        self._connect = connect
        self._settle = settle
        self.client = connect()

    def renew(self) -> None:
        """Replace the client."""
        old, self.client = [self.client], self._connect()
        in_background(partial(self._drop_client, old))

    @contextmanager
    def used(self, *failures: type[Exception]) -> Iterator[C]:
        """Yield the client; replace it if one of the `failures` is raised."""
        try:
            yield self.client
        except failures:
            self.renew()
            raise

    def _drop_client(self, clients: list[C]) -> None:
        """Drop the only client of the list: no other reference may keep it."""
        self._settle(clients[0])
        clients.clear()


T = TypeVar("T")
MOST_RECORDS = 5_000
"""Metadata records of a request; the controller refuses more than 10,000 (`MAX_RECORDS_PER_USER_OP`)."""


def split_batches(items: Sequence[T], records_of: Callable[[T], int]) -> Iterator[Sequence[T]]:
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
