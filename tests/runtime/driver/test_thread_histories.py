"""The pool of stream threads does what the real `KafkaStreams` was recorded to do (KIP-663)."""

import attrs
import pytest

from headwater_spark.driver.states import ClientState
from headwater_spark.driver.threads.pool import StreamThread, ThreadPool, thread_name
from tests.oracle.thread_histories import History, Step, histories

_SLOTS = 100
_BLOCKED = "the blocked batch"
_ENDS_CLIENT = (None, "shutdown-client", "shutdown-application")

_SKIPPED = {
    # 4.1 chooses a thread again that is already being removed; since KAFKA-20873 it does not.
    ("removed-with-a-timeout", 5),
}
"""History and step that are left out."""
_IN_TIME = {
    # A thread without a batch is gone at once, so the removal is in time.
    ("removed-with-a-timeout-of-zero", 1),
}
"""History and step that return no error."""
_DIFFERENT_ENDS = {
    # The KIP: ERROR. The real class stays RUNNING if the handler throws the exception again.
    ("failure-ends-the-last-thread", 2),
    # 4.1 replaces a thread that is being removed; since KAFKA-20873 it does not.
    ("removed-thread-is-replaced", 1),
}
"""History and step from which on the pool differs."""


class _Client:
    """A client without Spark: its state, and the pool."""

    def __init__(self, history: History) -> None:
        self.pool = ThreadPool.create("a", history.threads)
        self.state = ClientState.CREATED
        self._handler = history.handler

    def run(self, step: Step) -> object:
        match step.operation:
            case ("start",):
                self.state = ClientState.RUNNING
            case ("close",):
                self._end(ClientState.NOT_RUNNING)
            case ("add",):
                return self._add()
            case ("add-two",):
                return self._add(), self._add()
            case ("remove", *_):
                return self._remove()
            case ("block", int(index)):
                self._block(index)
            case ("unblock",):
                self.pool = self.pool.give_back(_BLOCKED)
            case ("fail", *indices) | ("fail-together", *indices):
                return self._fail(*map(int, indices))
            case ("fail-while-removed", int(index), _):
                self._block(index)
                self._remove()
                self._fail(index)
                return index
            case _:
                raise AssertionError(step.operation)
        return None

    def _add(self) -> object:
        self.pool, thread = self.pool.add(self.state)
        return "none" if thread is None else thread.index

    def _remove(self) -> object:
        self.pool, thread = self.pool.remove(self.state)
        if thread is None:
            return "none"
        return "TimeoutException" if self.pool.has(thread.serial) else thread.index

    def _block(self, *indices: int) -> None:
        def blocked(thread: StreamThread) -> StreamThread:
            return attrs.evolve(thread, batches=frozenset({_BLOCKED})) if thread.index in indices else thread

        self.pool = attrs.evolve(self.pool, threads=tuple(map(blocked, self.pool.threads)))

    def _fail(self, *indices: int) -> object:
        """Let threads fail in the same batch: none is dead before all are replaced."""
        self._block(*indices)
        returned = None
        for index in indices:
            if self._handler == "add-thread":
                returned = self._add()
            replace = self._handler == "replace-thread"
            self.pool, _ = self.pool.fail(thread_name("a", index), replace=replace)
        self.pool = self.pool.give_back(_BLOCKED)
        if self._handler in _ENDS_CLIENT:
            self._end(ClientState.ERROR)
        return returned

    def _end(self, state: ClientState) -> None:
        self.state = state
        self.pool = self.pool.shut_down()


@pytest.mark.parametrize("history", histories(), ids=lambda history: history.name)
def test_pool_repeats_the_history(history: History) -> None:
    client = _Client(history)
    for number, step in enumerate(history.steps):
        at = (history.name, number)
        if at in _DIFFERENT_ENDS:
            return
        if at in _SKIPPED:
            continue
        returned = client.run(step)
        assert returned == (1 if at in _IN_TIME else step.outcome.returned), at
        assert client.state.value == step.outcome.state, at
        assert {thread.index for thread in client.pool.threads} == step.outcome.threads.keys(), at
        if step.outcome.alive is not None:
            assert len(client.pool.alive) == step.outcome.alive, at
            assert client.pool.failed == step.outcome.failed, at


def test_differences_are_recorded_histories() -> None:
    steps = {(history.name, number) for history in histories() for number in range(len(history.steps))}
    assert steps >= _SKIPPED | _IN_TIME | _DIFFERENT_ENDS
