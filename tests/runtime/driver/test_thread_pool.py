"""Names, states and answers of stream threads; a model of them under operations in any order."""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from headwater_spark.driver.states import ClientState, ThreadState
from headwater_spark.driver.threads.pool import StreamThread, ThreadPool, thread_name

_SLOTS = 8
_RUNNING = ClientState.RUNNING
_ALLOWED = (ClientState.RUNNING, ClientState.REBALANCING)


def _indices(pool: ThreadPool) -> list[int]:
    return [thread.index for thread in pool.threads]


def _added(pool: ThreadPool) -> ThreadPool:
    pool, thread = pool.add(_RUNNING)
    assert thread is not None
    return pool


def test_names_begin_with_the_client_id_and_indices_with_one() -> None:
    pool = ThreadPool.create("client-a", 2)
    assert [pool.name(thread) for thread in pool.threads] == [
        "client-a-StreamThread-1",
        "client-a-StreamThread-2",
    ]


def test_index_of_a_dead_thread_is_reused_before_a_new_one() -> None:
    """1, 2, add 3; remove 1; add 1 again, as the oracle program recorded it."""
    pool = _added(ThreadPool.create("a", 2))
    assert _indices(pool) == [1, 2, 3]
    pool, removed = pool.remove(_RUNNING)
    assert removed is not None
    assert removed.index == 1
    pool = _added(pool)
    assert _indices(pool) == [2, 3, 1]
    pool, removed = pool.remove(_RUNNING)
    assert removed is not None
    assert removed.index == 2, "the oldest thread"


def test_index_of_a_thread_that_still_runs_a_batch_is_not_reused() -> None:
    pool, _ = ThreadPool.create("a", 2).take_threads("0", 2, _SLOTS)
    pool, removed = pool.remove(_RUNNING)
    assert removed is not None
    assert pool.threads[0].state is ThreadState.PENDING_SHUTDOWN
    assert _indices(_added(pool)) == [1, 2, 3]
    assert _indices(_added(pool.give_back("0"))) == [2, 1]


def test_replacement_never_has_the_index_of_the_failed_thread() -> None:
    """1, 2, 3; thread 1 fails and is replaced by 4, as the oracle program recorded it."""
    pool, new = ThreadPool.create("a", 3).fail("a-StreamThread-1", replace=True)
    assert new is not None
    assert (new.index, _indices(pool), pool.failed) == (4, [2, 3, 4], 1)


def test_thread_that_is_being_removed_is_not_replaced() -> None:
    pool, _ = ThreadPool.create("a", 2).take_threads("0", 2, _SLOTS)
    pool, _ = pool.remove(_RUNNING)
    pool, new = pool.fail("a-StreamThread-1", replace=True)
    assert new is None
    assert pool.failed == 1
    assert _indices(pool.give_back("0")) == [2]


def test_failed_thread_that_runs_another_batch_takes_no_new_one() -> None:
    pool, _ = ThreadPool.create("a", 2).take_threads("0", 1, 2)
    pool, _ = pool.fail("a-StreamThread-1", replace=False)
    pool, taken = pool.take_threads("1", 2, 2)
    assert [thread.index for thread in taken] == [2]
    assert _indices(pool.give_back("0")) == [2]


@pytest.mark.parametrize("state", [each for each in ClientState if each not in _ALLOWED])
def test_other_states_than_running_and_rebalancing_allow_no_change(state: ClientState) -> None:
    pool = ThreadPool.create("a", 1)
    assert pool.add(state) == (pool, None)
    assert pool.remove(state) == (pool, None)


def test_without_threads_none_is_removed_and_one_can_be_added() -> None:
    pool, _ = ThreadPool.create("a", 1).remove(_RUNNING)
    assert pool.threads == ()
    assert pool.remove(_RUNNING) == (pool, None)
    assert _indices(_added(pool)) == [1]


def test_handler_removes_the_failed_thread_only_if_no_other_is_alive() -> None:
    pool = ThreadPool.create("a", 2)
    failing = pool.threads[0]
    pool, removed = pool.remove(_RUNNING, caller=failing.serial)
    assert removed is not None
    assert removed.index == 2
    pool, removed = pool.remove(_RUNNING, caller=failing.serial)
    assert removed == failing


def test_batch_takes_as_many_idle_threads_as_it_has_tasks() -> None:
    pool, first = ThreadPool.create("a", 3).take_threads("0", 2, _SLOTS)
    assert [thread.index for thread in first] == [1, 2]
    pool, second = pool.take_threads("1", 2, _SLOTS)
    assert [thread.index for thread in second] == [3]
    pool, third = pool.take_threads("2", 2, _SLOTS)
    assert third == ()
    _, third = pool.give_back("0").take_threads("2", 5, _SLOTS)
    assert [thread.index for thread in third] == [1, 2]


def test_threads_are_shared_when_spark_has_no_more_slots_than_threads() -> None:
    """The slots limit what runs at the same time, so a batch never waits for another one."""
    pool, first = ThreadPool.create("a", 2).take_threads("0", 4, 2)
    assert len(first) == 2
    _, second = pool.take_threads("1", 1, 2)
    assert len(second) == 1


def test_number_of_threads_follows_the_slots_until_it_is_changed() -> None:
    pool = ThreadPool.create("a", 2, follows_slots=True).follow(4)
    assert _indices(pool) == [1, 2, 3, 4]
    assert _indices(pool.follow(0)) == [1]
    assert not pool.are_exclusive(1_000)
    changed, _ = pool.remove(_RUNNING)
    assert changed.follow(4) == changed
    failed, _ = pool.fail("a-StreamThread-4", replace=False)
    assert failed.follow(4) == failed


def test_new_thread_is_created_until_batches_can_take_it() -> None:
    pool = ThreadPool.create("a", 2)
    assert {thread.state for thread in pool.threads} == {ThreadState.CREATED}
    assert {thread.state for thread in pool.start().threads} == {ThreadState.RUNNING}
    taken, _ = pool.take_threads("0", 1, _SLOTS)
    assert [thread.state for thread in taken.threads] == [ThreadState.RUNNING, ThreadState.CREATED]


class ThreadPoolMachine(RuleBasedStateMachine):
    """Operations in any order; a model keeps the alive threads by index, and the batches of each thread."""

    def __init__(self) -> None:
        super().__init__()
        self.pool = ThreadPool.create("a", 2)
        self.alive = [1, 2]
        self.dying: list[int] = []
        self.batches: dict[str, frozenset[int]] = {}
        self.failed = 0

    def _free_index(self) -> int:
        return min(set(range(1, 100)) - {*self.alive, *self.dying})

    def _is_busy(self, index: int) -> bool:
        return any(index in taken for taken in self.batches.values())

    def _end(self, index: int) -> None:
        self.alive.remove(index)
        if self._is_busy(index):
            self.dying.append(index)

    @rule(state=st.sampled_from(list(ClientState)))
    def add(self, state: ClientState) -> None:
        expected = self._free_index()
        self.pool, thread = self.pool.add(state)
        if state in _ALLOWED:
            assert thread is not None
            assert thread.index == expected
            self.alive.append(expected)
        else:
            assert thread is None

    @rule(state=st.sampled_from(list(ClientState)))
    def remove(self, state: ClientState) -> None:
        self.pool, thread = self.pool.remove(state)
        if state in _ALLOWED and self.alive:
            assert thread is not None
            assert thread.index == self.alive[0]
            self._end(thread.index)
        else:
            assert thread is None

    @rule(number=st.integers(0, 20), replace=st.booleans())
    def fail(self, number: int, replace: bool) -> None:  # noqa: FBT001 - drawn
        index = ([*self.alive, *self.dying, 50])[number % (len(self.alive) + len(self.dying) + 1)]
        expected = self._free_index()
        self.pool, new = self.pool.fail(thread_name("a", index), replace=replace)
        self.failed += 1
        if index not in self.alive:
            assert new is None
            return
        if replace:
            assert new is not None
            assert new.index == expected
            self.alive.append(expected)
        self._end(index)

    @rule()
    def start(self) -> None:
        self.pool = self.pool.start()

    @rule(batch=st.sampled_from(["0", "1", "2"]), tasks=st.integers(1, 5), slots=st.integers(1, 4))
    def take(self, batch: str, tasks: int, slots: int) -> None:
        if batch in self.batches:
            return
        is_shared = len(self.alive) >= slots
        idle = [index for index in self.alive if is_shared or not self._is_busy(index)]
        self.pool, taken = self.pool.take_threads(batch, tasks, slots)
        indices = frozenset(thread.index for thread in taken)
        assert len(indices) == min(tasks, len(idle))
        assert indices <= set(idle)
        if indices:
            self.batches[batch] = indices

    @precondition(lambda self: self.batches)
    @rule(number=st.integers(0, 5))
    def give_back(self, number: int) -> None:
        batch = sorted(self.batches)[number % len(self.batches)]
        self.pool = self.pool.give_back(batch)
        del self.batches[batch]
        self.dying = [index for index in self.dying if self._is_busy(index)]

    @rule()
    def shut_down(self) -> None:
        self.pool = self.pool.shut_down()
        for index in list(self.alive):
            self._end(index)

    @invariant()
    def pool_is_as_the_model(self) -> None:
        assert [thread.index for thread in self.pool.alive] == self.alive
        rest = [thread for thread in self.pool.threads if not thread.is_alive]
        assert sorted(thread.index for thread in rest) == sorted(self.dying)
        assert self.pool.failed == self.failed
        for thread in self.pool.threads:
            assert thread.batches == {name for name, taken in self.batches.items() if thread.index in taken}

    @invariant()
    def names_and_serials_are_unique(self) -> None:
        threads: tuple[StreamThread, ...] = self.pool.threads
        assert len({thread.index for thread in threads}) == len(threads)
        assert len({thread.serial for thread in threads}) == len(threads)


TestThreadPool = ThreadPoolMachine.TestCase
