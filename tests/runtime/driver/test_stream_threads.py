"""Threads of a running client: waiting batches, waiting removals, and the number of slots."""

import threading

import pytest

from headwater.toolchain.broker.readiness import until
from headwater_spark.driver.states import ClientState
from headwater_spark.driver.threads import stream_threads
from headwater_spark.driver.threads.stream_threads import StreamThreads


def _running() -> ClientState:
    return ClientState.RUNNING


def test_batch_knows_its_threads_their_limit_and_the_number_of_all() -> None:
    threads = StreamThreads("shop", 3, lambda: 4)
    with threads.take_threads("0", 2, threading.Event()) as taken:
        assert taken is not None
        assert taken.names == ("shop-StreamThread-1", "shop-StreamThread-2")
        assert (taken.limit, taken.alive) == (2, 3)
        assert [thread.runs for thread in threads.metadata()] == [("0",), ("0",), ()]
    assert all(thread.runs == () for thread in threads.metadata())


def test_batch_has_no_limit_if_spark_has_no_more_slots() -> None:
    with StreamThreads("shop", 4, lambda: 4).take_threads("0", 9, threading.Event()) as taken:
        assert taken is not None
        assert (len(taken.names), taken.limit) == (4, None)
    with StreamThreads("shop", None, lambda: 4).take_threads("0", 9, threading.Event()) as taken:
        assert taken is not None
        assert (len(taken.names), taken.limit) == (4, None)


@pytest.mark.parametrize("tasks", range(1, 6))
def test_as_many_threads_as_slots_run_batches_as_an_unset_number_does(tasks: int) -> None:
    """So `num.stream.threads` costs nothing then, whatever two runs of a benchmark show."""
    found = []
    for count in (None, 4):
        with StreamThreads("shop", count, lambda: 4).take_threads("0", tasks, threading.Event()) as taken:
            assert taken is not None
            found.append((taken.names, taken.limit, taken.alive))
    assert found[0] == found[1]


def test_threads_are_given_back_after_a_failure() -> None:
    threads = StreamThreads("shop", 1, lambda: 4)
    with pytest.raises(RuntimeError), threads.take_threads("0", 1, threading.Event()):
        raise RuntimeError
    assert threads.metadata()[0].runs == ()


def test_removal_that_waits_ends_with_the_client() -> None:
    threads = StreamThreads("shop", 1, lambda: 4)
    removed: list[str | None] = []
    with threads.take_threads("0", 1, threading.Event()):
        remover = threading.Thread(target=lambda: removed.append(threads.remove(_running)))
        remover.start()
        while threads.alive:
            remover.join(0.01)
        threads.close()
        remover.join(60)
    assert removed == ["shop-StreamThread-1"]
    assert threads.metadata() == ()


def test_batch_that_waits_takes_a_thread_that_is_added() -> None:
    threads = StreamThreads("shop", 1, lambda: 4)
    threads.remove(_running)
    found: list[tuple[str, ...]] = []

    def run() -> None:
        with threads.take_threads("0", 2, threading.Event()) as taken:
            found.append(taken.names if taken is not None else ())

    batch = threading.Thread(target=run)
    batch.start()
    assert until(lambda: threads.waiting, 60)
    assert found == []
    threads.add(_running)
    batch.join(60)
    assert found == [("shop-StreamThread-1",)]


def test_number_of_threads_follows_executors_that_come_and_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_threads, "_SLOTS_SECONDS", 0.0)
    slots = [0]
    following, fixed = (StreamThreads("shop", count, lambda: slots[0]) for count in (None, 2))
    for number, expected in ((0, 1), (6, 6), (3, 3)):
        slots[0] = number
        following.poll()
        fixed.poll()
        assert (following.alive, following.slots, fixed.alive) == (expected, max(1, number), 2)


def test_batches_get_threads_in_the_order_in_which_they_wait() -> None:
    threads = StreamThreads("shop", 1, lambda: 4)
    order: list[str] = []
    stopping = threading.Event()

    def run(batch: str) -> None:
        with threads.take_threads(batch, 1, stopping) as taken:
            if taken is not None:
                order.append(batch)

    waiting = []
    with threads.take_threads("0", 1, stopping):
        for number, batch in enumerate(("1", "2", "3")):
            waiting.append(threading.Thread(target=run, args=(batch,)))
            waiting[-1].start()
            while threads.waiting <= number:
                waiting[-1].join(0.01)
    for each in waiting:
        each.join(60)
    assert order == ["1", "2", "3"]


def test_batch_that_waits_ends_when_its_query_stops() -> None:
    threads = StreamThreads("shop", 1, lambda: 4)
    stopping = threading.Event()
    stopping.set()
    with threads.take_threads("0", 1, threading.Event()), threads.take_threads("1", 1, stopping) as taken:
        assert taken is None
    assert threads.metadata()[0].runs == ()
