"""Questions under way: sent before their answers are needed, a few at a time."""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from threading import Thread
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")
_UNDER_WAY = 3
"""A broker answers a connection's requests one by one: of many sent at once the last would time out."""


class Asked(Generic[K, V]):
    """A question in chunks. The first ones are sent at once, the others as answers are taken."""

    def __init__(self, chunks: Iterator[Callable[[], dict[K, Future[V]]]]) -> None:
        self._chunks = chunks
        self._sent: deque[dict[K, Future[V]]] = deque()
        for _ in range(_UNDER_WAY):
            self._send()

    def take(self) -> Iterator[tuple[K, Future[V]]]:
        """Yield what each key is answered by and let go of it: thousands weigh on memory."""
        while self._sent:
            chunk = self._sent.popleft()
            for key in tuple(chunk):
                yield key, chunk.pop(key)
            self._send()

    def _send(self) -> None:
        if (send := next(self._chunks, None)) is not None:
            self._sent.append({**send()})  # the client keeps its own to find the futures in


def in_background(call: Callable[[], V]) -> Future[V]:
    """Run a call that blocks in a thread that nobody waits for when the program ends."""
    future: Future[V] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:  # noqa: BLE001 - whoever asks for the result gets it
            future.set_exception(error)

    Thread(target=run, daemon=True).start()
    return future
