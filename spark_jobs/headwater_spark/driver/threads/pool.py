"""The stream threads of a client as a value: names, states, who may be added or removed (KIP-663).

A stream thread is a permit to run one Spark task of the application at a time. A batch takes threads, and
its tasks are distributed over them.
"""

from collections.abc import Iterable

import attrs

from headwater_spark.driver.states import ClientState, ThreadState

_CHANGEABLE = (ClientState.RUNNING, ClientState.REBALANCING)


def thread_name(client_id: str, index: int) -> str:
    """Return the name of a thread (`KafkaStreams#createAndAddStreamThread`)."""
    return f"{client_id}-StreamThread-{index}"


@attrs.frozen(kw_only=True)
class StreamThread:
    """A stream thread, with the batches that run on it.

    `serial` distinguishes it from a later thread that reuses its index.
    """

    serial: int
    index: int
    state: ThreadState = ThreadState.CREATED
    batches: frozenset[str] = frozenset()

    @property
    def is_alive(self) -> bool:
        """Whether it takes batches; a thread that is being removed finishes its batches."""
        return self.state is not ThreadState.PENDING_SHUTDOWN


@attrs.frozen(kw_only=True)
class ThreadPool:
    """The threads that are not dead, in the order of their creation. Methods return the next pool.

    `failed` counts the threads that died of a failure. `follows_slots`: there are as many threads as
    slots of Spark, until a thread is added, removed, or not replaced after a failure.
    """

    client_id: str
    threads: tuple[StreamThread, ...] = ()
    failed: int = 0
    follows_slots: bool = False
    next_serial: int = 0

    @classmethod
    def create(cls, client_id: str, count: int, *, follows_slots: bool = False) -> "ThreadPool":
        """Return a pool with `count` new threads."""
        pool = cls(client_id=client_id, follows_slots=follows_slots)
        for _ in range(count):
            pool = pool.with_thread()
        return pool

    @property
    def alive(self) -> tuple[StreamThread, ...]:
        return tuple(thread for thread in self.threads if thread.is_alive)

    def name(self, thread: StreamThread) -> str:
        return thread_name(self.client_id, thread.index)

    def find(self, name: str) -> StreamThread | None:
        return next((thread for thread in self.threads if self.name(thread) == name), None)

    def has(self, serial: int) -> bool:
        return any(thread.serial == serial for thread in self.threads)

    def add(self, state: ClientState) -> tuple["ThreadPool", StreamThread | None]:
        """Return the pool with a new thread, or None as the thread if `state` does not allow it.

        The thread has the lowest index whose thread is dead (KAFKA-12375).
        """
        if state not in _CHANGEABLE:
            return self, None
        pool = attrs.evolve(self.with_thread(), follows_slots=False)
        return pool, pool.threads[-1]

    def start(self) -> "ThreadPool":
        """Return the pool in which all new threads take part."""
        return self._with_states(
            (thread for thread in self.threads if thread.state is ThreadState.CREATED), ThreadState.RUNNING
        )

    def remove(
        self, state: ClientState, caller: int | None = None
    ) -> tuple["ThreadPool", StreamThread | None]:
        """Return the pool without its oldest thread, and the thread; None if there is none to remove.

        `caller` is the serial of the thread whose failure is being handled: it is removed only if no other
        thread is alive. A thread with batches finishes them first.
        """
        if state not in _CHANGEABLE or not self.alive:
            return self, None
        first = next((thread for thread in self.alive if thread.serial != caller), self.alive[0])
        return attrs.evolve(self.without(first), follows_slots=False), first

    def fail(self, name: str, *, replace: bool) -> tuple["ThreadPool", StreamThread | None]:
        """Return the pool after a failure of thread `name`, and the thread that replaces it.

        The new thread is added before the old one is dead, so it never gets its index. A thread that is
        already being removed is not replaced: that would undo the removal (KAFKA-20873).
        """
        pool, thread = attrs.evolve(self, failed=self.failed + 1), self.find(name)
        if thread is None or not thread.is_alive:
            return pool, None
        if not replace:
            return attrs.evolve(pool.without(thread), follows_slots=False), None
        pool = pool.with_thread()
        return pool.without(thread), pool.threads[-1]

    def follow(self, slots: int) -> "ThreadPool":
        """Return the pool with as many alive threads as slots, if it follows them; at least one."""
        pool = self
        if not self.follows_slots:
            return self
        while len(pool.alive) < max(1, slots):
            pool = pool.with_thread()
        while len(pool.alive) > max(1, slots):
            pool = pool.without(pool.alive[-1])
        return pool

    def take_threads(
        self, batch: str, tasks: int, slots: int
    ) -> tuple["ThreadPool", tuple[StreamThread, ...]]:
        """Return the pool in which `batch` runs on idle threads, and these; none: the batch has to wait.

        With fewer threads than slots, a thread runs one batch at a time, and a batch takes as many idle ones
        as it has tasks. Otherwise the slots limit what runs at the same time: threads are shared.
        """
        free = self.alive
        if self.are_exclusive(slots):
            free = tuple(thread for thread in free if not thread.batches)
        else:
            free = tuple(sorted(free, key=lambda thread: len(thread.batches)))
        taken = free[: max(1, tasks)]
        serials = {thread.serial for thread in taken}
        threads = tuple(
            attrs.evolve(thread, state=ThreadState.RUNNING, batches=thread.batches | {batch})
            if thread.serial in serials
            else thread
            for thread in self.threads
        )
        return attrs.evolve(self, threads=threads), taken

    def are_exclusive(self, slots: int) -> bool:
        """Return whether the threads limit what runs at the same time, and not Spark's slots."""
        return not self.follows_slots and len(self.alive) < slots

    def give_back(self, batch: str) -> "ThreadPool":
        """Return the pool in which `batch` has ended; threads that wait for it to be removed are dead."""
        threads = (attrs.evolve(thread, batches=thread.batches - {batch}) for thread in self.threads)
        return attrs.evolve(
            self, threads=tuple(thread for thread in threads if thread.is_alive or thread.batches)
        )

    def shut_down(self) -> "ThreadPool":
        """Return the pool whose threads end after their batches."""
        pool = self
        for thread in self.alive:
            pool = pool.without(thread)
        return attrs.evolve(pool, follows_slots=False)

    def with_thread(self) -> "ThreadPool":
        """Return the pool with one more thread, of the lowest free index."""
        used = {thread.index for thread in self.threads}
        index = next(index for index in range(1, len(used) + 2) if index not in used)
        thread = StreamThread(serial=self.next_serial, index=index)
        return attrs.evolve(self, threads=(*self.threads, thread), next_serial=self.next_serial + 1)

    def without(self, removed: StreamThread) -> "ThreadPool":
        """Return the pool where a thread is dead, or will be when its batches have ended."""
        if removed.batches:
            return self._with_states((removed,), ThreadState.PENDING_SHUTDOWN)
        return attrs.evolve(
            self, threads=tuple(thread for thread in self.threads if thread.serial != removed.serial)
        )

    def _with_states(self, changed: Iterable[StreamThread], state: ThreadState) -> "ThreadPool":
        serials = {thread.serial for thread in changed}
        threads = (
            attrs.evolve(thread, state=state) if thread.serial in serials else thread
            for thread in self.threads
        )
        return attrs.evolve(self, threads=tuple(threads))
