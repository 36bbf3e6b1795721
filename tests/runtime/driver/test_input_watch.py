"""When the input of a query is watched, and which signals a query gets."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from queue import Empty, Queue
from threading import Event, Thread
from typing import Any

import attrs
import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import TopicPartition as KafkaTopicPartition

from headwater.toolchain.broker.readiness import until
from headwater_spark.driver.input import watch as module
from headwater_spark.driver.input.watch import InputWatch, QueryWatch, WatchMode
from headwater_spark.engine.records import TopicPartition

_SECONDS = 60
_ENDLESS = 1_000_000_000
POLLING, ARMING, WATCHED = WatchMode


def test_input_is_watched_after_a_pause_and_a_fetch() -> None:
    watch = QueryWatch(since=10.0)
    assert [watch.next_mode(now) for now in (10.0, 10.9, 11.0)] == [POLLING, POLLING, ARMING]
    arming = watch.entered(ARMING, 11.0)
    assert [arming.next_mode(now) for now in (11.9, 12.0)] == [ARMING, WATCHED]
    assert arming.entered(WATCHED, 12.0).next_mode(1e6) is WATCHED


def test_few_records_do_not_end_the_watch() -> None:
    watch = QueryWatch(since=0.0).entered(WATCHED, 0.0)
    for tenth in range(1000):
        watch = watch.received(10, tenth / 10)
    assert watch.mode is WATCHED


def test_many_records_end_the_watch_for_longer_and_longer() -> None:
    watch, pauses = QueryWatch(since=0.0), []
    for second in range(0, 600, 100):
        watch = watch.entered(ARMING, second).received(60, second + 0.1)
        assert watch.mode is ARMING
        watch = watch.received(60, second + 0.9)
        assert (watch.mode, watch.since) == (POLLING, second + 0.9)
        pauses.append(watch.pause_seconds)
    assert pauses == [2, 4, 8, 16, 16, 16]


def test_a_watched_input_polls_shortly_after_the_next_load() -> None:
    long_load = QueryWatch(since=0.0, pause_seconds=16.0)
    watched = long_load.entered(ARMING, 20.0).entered(WATCHED, 21.0)
    assert watched.received(1000, 30.0).pause_seconds == 2


def test_records_of_different_seconds_are_not_added_up() -> None:
    watch = QueryWatch(since=0.0).entered(WATCHED, 0.0).received(100, 1.0)
    assert watch.received(100, 2.0).mode is WATCHED
    assert watch.received(1, 1.9).mode is POLLING


@attrs.define
class _Signal:
    waits: list[float] = attrs.field(factory=list)
    sent: int = 0

    def wait_at_most(self, seconds: float) -> None:
        self.waits.append(seconds)

    def send(self) -> None:
        self.sent += 1


@attrs.define
class _Input:
    ends: dict[TopicPartition, int]
    max_wait_seconds: float = 1.0
    failures: int = 0

    def partitions(self) -> list[TopicPartition]:
        return list(self.ends)

    def end_offsets(self) -> Mapping[TopicPartition, int]:
        if self.failures:
            self.failures -= 1
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        return self.ends


@attrs.frozen
class _Message:
    partition_: TopicPartition
    offset_: int = 0
    error_: KafkaError | None = None

    def topic(self) -> str:
        return self.partition_[0]

    def partition(self) -> int:
        return self.partition_[1]

    def offset(self) -> int:
        return self.offset_

    def error(self) -> KafkaError | None:
        return self.error_


@attrs.define
class _Consumer:
    messages: "Queue[_Message]" = attrs.field(factory=Queue)
    assigned: list[dict[TopicPartition, int]] = attrs.field(factory=list)
    is_closed: bool = False

    def assign(self, partitions: list[KafkaTopicPartition]) -> None:
        self.assigned.append({(each.topic, each.partition): each.offset for each in partitions})

    def poll(self, seconds: float) -> _Message | None:
        try:
            return self.messages.get(timeout=max(seconds, 0.001))
        except Empty:
            return None

    def close(self) -> None:
        self.is_closed = True


@attrs.define
class _Watched:
    consumer: Any
    inputs: dict[str, _Input]
    signals: dict[str, _Signal]
    watch: InputWatch

    def awaits(self, name: str) -> bool:
        """Return whether a query waits for signals."""
        return self.signals[name].waits[-1:] == [self.inputs[name].max_wait_seconds]


@pytest.fixture
def watching(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Return a context in which these inputs are watched; its clock is fast."""
    monkeypatch.setattr(module, "_POLL_SECONDS", 0.005)

    @contextmanager
    def run(**inputs: _Input) -> Iterator[_Watched]:
        consumer: Any = _Consumer()
        signals = {name: _Signal() for name in inputs}
        watch = InputWatch(lambda _: consumer, clock=lambda: time.monotonic() * 50)
        for name, input_ in inputs.items():
            watch.add(name, input_, signals[name])
        stopping = Event()
        thread = Thread(target=watch.run, args=(stopping,), daemon=True)
        thread.start()
        try:
            yield _Watched(consumer, inputs, signals, watch)
        finally:
            stopping.set()
            thread.join(_SECONDS)
        assert not thread.is_alive()

    return run


def test_each_record_signals_the_query_that_reads_it(watching: Callable[..., Any]) -> None:
    with watching(a=_Input({("x", 0): 7}), b=_Input({("y", 0): 3, ("y", 1): 0})) as watched:
        assert until(lambda: watched.awaits("a") and watched.awaits("b"), _SECONDS)
        assert watched.consumer.assigned[-1] == {("x", 0): 7, ("y", 0): 3, ("y", 1): 0}
        watched.consumer.messages.put(_Message(("y", 1)))
        assert until(lambda: watched.signals["b"].sent == 1, _SECONDS)
        watched.consumer.messages.put(_Message(("x", 0), 7))
        assert until(lambda: watched.signals["a"].sent == 1, _SECONDS)
        assert watched.signals["b"].sent == 1
    assert watched.signals["a"].waits[-1] == watched.signals["b"].waits[-1] == 0
    assert watched.consumer.is_closed


def test_a_query_that_reads_much_polls_and_is_not_read_twice(watching: Callable[..., Any]) -> None:
    with watching(a=_Input({("x", 0): 0}), b=_Input({("y", 0): 0})) as watched:
        assert until(lambda: watched.awaits("a") and watched.awaits("b"), _SECONDS)
        watched.consumer.messages.put(_Message(("y", 0), 4))
        assert until(lambda: watched.signals["b"].sent == 1, _SECONDS)

        def polls() -> bool:
            # A busy machine may read some of them in the next second of the fast clock.
            for offset in range(150):
                watched.consumer.messages.put(_Message(("x", 0), offset))
            return {("y", 0): 5} in watched.consumer.assigned

        assert until(polls, _SECONDS)
        assert 0 in watched.signals["a"].waits[1:]
        assert until(lambda: watched.awaits("a"), _SECONDS), "it is watched again after a while"
        assert watched.signals["b"].waits == [1.0]


def test_added_partitions_are_watched(watching: Callable[..., Any]) -> None:
    with watching(a=_Input({("x", 0): 0})) as watched:
        assert until(lambda: watched.awaits("a"), _SECONDS)
        watched.inputs["a"].ends = {("x", 0): 2, ("x", 1): 0}
        assert until(lambda: watched.consumer.assigned[-1:] == [{("x", 0): 2, ("x", 1): 0}], _SECONDS)
        assert until(lambda: watched.signals["a"].waits == [1.0, 0, 1.0], _SECONDS)


def test_a_query_polls_while_its_input_cannot_be_watched(watching: Callable[..., Any]) -> None:
    with watching(a=_Input({("x", 0): 0}, failures=2)) as watched:
        assert until(lambda: watched.awaits("a"), _SECONDS)
        assert watched.inputs["a"].failures == 0
        error = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)
        watched.consumer.messages.put(_Message(("x", 0), error_=error))
        assert until(lambda: watched.signals["a"].waits[:2] == [1.0, 0], _SECONDS)
        assert until(lambda: watched.awaits("a"), _SECONDS)


def test_another_thread_can_request_a_signal(watching: Callable[..., Any]) -> None:
    with watching(a=_Input({("x", 0): 0}), b=_Input({("y", 0): 0})) as watched:
        assert until(lambda: watched.awaits("a") and watched.awaits("b"), _SECONDS)
        watched.watch.request_signal("a")
        assert until(lambda: watched.signals["a"].sent == 1, _SECONDS)
        assert watched.signals["b"].sent == 0


def test_a_query_that_polls_gets_no_requested_signal(watching: Callable[..., Any]) -> None:
    with watching(a=_Input({("x", 0): 0}, failures=_ENDLESS), b=_Input({("y", 0): 0})) as watched:
        assert until(lambda: watched.awaits("b"), _SECONDS)
        watched.watch.request_signal("a")
        watched.watch.request_signal("b")
        assert until(lambda: watched.signals["b"].sent == 1, _SECONDS)
        watched.consumer.messages.put(_Message(("y", 0)))
        assert until(lambda: watched.signals["b"].sent == 2, _SECONDS), "another round of the watch"
        assert watched.signals["a"].sent == 0


def test_no_query_waits_while_the_watch_is_suspended(watching: Callable[..., Any]) -> None:
    with watching(a=_Input({("x", 0): 0})) as watched:
        assert until(lambda: watched.awaits("a"), _SECONDS)
        with watched.watch.suspend_signals():
            assert not watched.awaits("a")
            assert until(lambda: watched.consumer.assigned[-1] == {}, _SECONDS)
            # Several times as long as it takes to be watched.
            assert not until(lambda: watched.awaits("a"), 0.1)
        assert until(lambda: watched.awaits("a"), _SECONDS)
