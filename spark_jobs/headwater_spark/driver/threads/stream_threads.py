"""The stream threads of a running client: batches take them, other threads add and remove them (KIP-663)."""

import os
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import attrs
import structlog

from headwater.model.topology import Application
from headwater_spark.driver.states import ClientState
from headwater_spark.driver.threads.pool import StreamThread, ThreadPool
from headwater_spark.stream_threads import RemovalTimeoutError, ThreadMetadata

_POLL_SECONDS = 0.05
_SLOTS_SECONDS = 1.0

_log = structlog.get_logger(__name__)


def client_id(application: str) -> str:
    """Return the client id of this process, unless `client.id` is configured."""
    return f"{application}-{socket.gethostname()}-{os.getpid()}"


def configured_client_id(application: Application) -> str:
    return application.config.get("client.id", "").strip() or client_id(application.id)


@attrs.frozen
class TakenThreads:
    """The threads of one batch. `limit` is the number of Spark tasks that may run at once; None: any.

    `alive` is the number of threads of the client.
    """

    names: tuple[str, ...]
    limit: int | None
    alive: int


class StreamThreads:
    """Any thread may call any method. No method waits while it holds the lock, or calls slow code.

    Args:
        count: Number of threads at the start; None = as many as Spark has slots, also when that changes.
        slots: Returns the number of Spark tasks that run at the same time.
    """

    def __init__(self, client_id: str, count: int | None, slots: Callable[[], int]) -> None:
        self.on_failed: Callable[[], None] = lambda: None
        """Called once for each thread that failed."""
        self._slots_of_spark = slots
        self.has_executors = False
        """Whether Spark had an executor when the number of slots was last read."""
        self._slots = self._read_slots()
        self._slots_read_at = time.monotonic()
        self._pool = ThreadPool.create(
            client_id, self._slots if count is None else count, follows_slots=count is None
        )
        self._changed = threading.Condition()
        self._waiting: deque[object] = deque()
        self._callers: dict[int, int] = {}

    def _read_slots(self) -> int:
        slots = self._slots_of_spark()
        self.has_executors = slots > 0
        return max(1, slots)

    @property
    def pool(self) -> ThreadPool:
        return self._pool

    @property
    def slots(self) -> int:
        """The number of Spark tasks that run at the same time, as last read."""
        return self._slots

    @property
    def alive(self) -> int:
        """The number of threads that take batches."""
        return len(self._pool.alive)

    @property
    def waiting(self) -> int:
        """The number of batches that wait for a thread."""
        return len(self._waiting)

    def metadata(self) -> tuple[ThreadMetadata, ...]:
        """Return the threads that are not dead (`KafkaStreams#metadataForLocalThreads`)."""
        pool = self._pool
        return tuple(
            ThreadMetadata(
                name=pool.name(thread), state=thread.state.value, runs=tuple(sorted(thread.batches))
            )
            for thread in pool.threads
        )

    @contextmanager
    def take_threads(
        self, batch: str, tasks: int, stopping: threading.Event
    ) -> Iterator[TakenThreads | None]:
        """Wait for idle threads, at least one, and let `batch` run on them inside the block.

        Batches get threads in the order in which they began to wait. Yields None if `stopping` is set first.
        """
        taken, is_exclusive = self._take(batch, tasks, stopping)
        if not taken:
            yield None
            return
        try:
            names = tuple(self._pool.name(thread) for thread in taken)
            yield TakenThreads(names, len(taken) if is_exclusive else None, self.alive)
        finally:
            self._change(lambda pool: pool.give_back(batch))

    def add(self, state: Callable[[], ClientState]) -> str | None:
        """Return the name of a new thread, which the next batch takes; None: the state does not allow it."""
        with self._changed:
            found = state()
            self._pool, thread = self._pool.add(found)
            self._changed.notify_all()
        if thread is None:
            _log.warning("stream thread not added", state=found.value)
            return None
        name = self._pool.name(thread)
        _log.info("stream thread added", thread=name, threads=self.alive)
        return name

    def remove(self, state: Callable[[], ClientState], timeout_seconds: float | None = None) -> str | None:
        """Remove a thread, wait until its batches have ended, and return its name; None if there is none.

        The lock is free during the wait, so a handler can replace the thread (KAFKA-20873). Raises
        `RemovalTimeoutError`.
        """
        with self._changed:
            found = state()
            self._pool, thread = self._pool.remove(found, self._callers.get(threading.get_ident()))
            self._changed.notify_all()
            if thread is None:
                _log.warning("no stream thread removed", state=found.value, threads=self.alive)
                return None
            name, serial = self._pool.name(thread), thread.serial
            is_gone = self._changed.wait_for(lambda: not self._pool.has(serial), timeout_seconds)
        if not is_gone:
            raise RemovalTimeoutError(name, timeout_seconds or 0.0)
        _log.info("stream thread removed", thread=name, threads=self.alive)
        return name

    def fail(self, name: str, *, replace: bool) -> tuple[str | None, bool]:
        """Record the failure of a thread.

        Return the name of the thread that replaces it, and whether it was the last one: the client fails.
        """
        with self._changed:
            was_alive = bool(self._pool.alive)
            self._pool, replacement = self._pool.fail(name, replace=replace)
            new = None if replacement is None else self._pool.name(replacement)
            is_last = was_alive and not self._pool.alive
            self._changed.notify_all()
        self.on_failed()
        return new, is_last

    def failed_thread(self, name: str) -> str:
        """Return the thread that a failure is attributed to: `name`, else the oldest; empty if none is alive.

        A failure outside of tasks has no thread of its own, for example at the query's start.
        """
        pool = self._pool
        return name or (pool.name(pool.alive[0]) if pool.alive else "")

    @contextmanager
    def mark_handler(self, name: str) -> Iterator[None]:
        """Mark the calling thread as the handler of the failure of stream thread `name`."""
        thread, ident = self._pool.find(name), threading.get_ident()
        if thread is not None:
            self._callers[ident] = thread.serial
        try:
            yield
        finally:
            self._callers.pop(ident, None)

    def poll(self) -> None:
        """Let new threads take part; read the number of slots about once per second."""
        now = time.monotonic()
        if now - self._slots_read_at >= _SLOTS_SECONDS:
            self._slots_read_at = now
            self._slots = self._read_slots()
        self._change(lambda pool: pool.follow(self._slots).start())

    def shut_down(self) -> None:
        """Remove all threads; a thread that still runs a batch is dead after it."""
        self._change(ThreadPool.shut_down)

    def close(self) -> None:
        """Forget all threads: no batch runs any more."""
        self._change(lambda pool: attrs.evolve(pool, threads=()))

    def _take(
        self, batch: str, tasks: int, stopping: threading.Event
    ) -> tuple[tuple[StreamThread, ...], bool]:
        ticket = object()
        with self._changed:
            self._waiting.append(ticket)
            try:
                while not stopping.is_set():
                    if self._waiting[0] is ticket:
                        slots = self._slots
                        is_exclusive = self._pool.are_exclusive(slots)
                        self._pool, taken = self._pool.take_threads(batch, tasks, slots)
                        if taken:
                            return taken, is_exclusive
                    self._changed.wait(_POLL_SECONDS)
            finally:
                self._waiting.remove(ticket)
                self._changed.notify_all()
        return (), False

    def _change(self, change: Callable[[ThreadPool], ThreadPool]) -> None:
        with self._changed:
            changed = change(self._pool)
            if changed is not self._pool and changed != self._pool:
                self._pool = changed
                self._changed.notify_all()
