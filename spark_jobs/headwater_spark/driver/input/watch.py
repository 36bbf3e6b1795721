"""Watch the input of all queries with one consumer, and signal a query when it has new records.

A broker answers a consumer's fetch as soon as a record arrives, so waiting costs nearly nothing, and a record
waits no longer than with frequent checks. A query that reads much would fetch everything twice: its input is
not watched, and it polls.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from enum import Enum, auto
from threading import Event, Lock
from typing import Protocol

import attrs
import structlog
from confluent_kafka import Consumer, KafkaException
from confluent_kafka import TopicPartition as KafkaTopicPartition

from headwater_spark.driver.captured_failures import failure_reason
from headwater_spark.engine.records import Offsets, TopicPartition

_log = structlog.get_logger(__name__)
_POLL_SECONDS, _UPDATE_SECONDS = 0.1, 0.5
_FETCH_SECONDS = 0.5
_ARMING_SECONDS = 2 * _FETCH_SECONDS
"""A fetch that does not include new partitions has ended by then."""
_MAX_RECORDS, _WINDOW_SECONDS = 100, 1.0
_FIRST_PAUSE_SECONDS, _MAX_PAUSE_SECONDS = 1.0, 16.0
_FETCH_SETTINGS = {
    "auto.offset.reset": "earliest",
    "enable.auto.offset.store": False,
    "fetch.wait.max.ms": int(_FETCH_SECONDS * 1000),
    "fetch.min.bytes": 1,
    "fetch.message.max.bytes": 65_536,
    "fetch.queue.backoff.ms": 10,
    "queued.min.messages": _MAX_RECORDS,
    "queued.max.messages.kbytes": 1_024,
}


class WatchMode(Enum):
    """How a query learns of new records."""

    POLLING = auto()
    """The query polls, and its input is not watched."""
    ARMING = auto()
    """The query polls until its input is surely watched."""
    WATCHED = auto()
    """The query waits for signals."""


@attrs.frozen(kw_only=True)
class QueryWatch:
    """How the input of a query is watched, since `since`. Times are seconds of a monotonic clock."""

    since: float
    mode: WatchMode = WatchMode.POLLING
    pause_seconds: float = _FIRST_PAUSE_SECONDS
    """How long it polls before its input is watched; doubled whenever it reads too much to be watched."""
    records: int = 0
    counted_from: float = 0.0

    def next_mode(self, now: float) -> WatchMode:
        """Return the mode that is due at `now`."""
        if self.mode is WatchMode.POLLING and now - self.since >= self.pause_seconds:
            return WatchMode.ARMING
        if self.mode is WatchMode.ARMING and now - self.since >= _ARMING_SECONDS:
            return WatchMode.WATCHED
        return self.mode

    def entered(self, mode: WatchMode, now: float) -> "QueryWatch":
        pause = _FIRST_PAUSE_SECONDS if mode is WatchMode.WATCHED else self.pause_seconds
        return attrs.evolve(self, mode=mode, since=now, pause_seconds=pause)

    def received(self, records: int, now: float) -> "QueryWatch":
        """Return the watch after `records` more records; too many in a second end it for a while."""
        if now - self.counted_from >= _WINDOW_SECONDS:
            counted = attrs.evolve(self, records=records, counted_from=now)
        else:
            counted = attrs.evolve(self, records=self.records + records)
        return counted.failed(now) if counted.records > _MAX_RECORDS else counted

    def failed(self, now: float) -> "QueryWatch":
        """Return the watch after its input could not be watched."""
        pause = min(2 * self.pause_seconds, _MAX_PAUSE_SECONDS)
        return QueryWatch(since=now, pause_seconds=pause)


class Signal(Protocol):
    """What an idle query waits for (`InputSignal`)."""

    def wait_at_most(self, seconds: float) -> None:
        """Let the query wait up to `seconds` for a signal; 0 = not at all."""
        ...

    def send(self) -> None:
        """Let the query check for new records."""
        ...


class Input(Protocol):
    """The input of one query."""

    def partitions(self) -> list[TopicPartition]:
        """Return the present partitions."""
        ...

    def end_offsets(self) -> Offsets:
        """Return the present end offsets of the partitions; raises `KafkaException`."""
        ...

    @property
    def max_wait_seconds(self) -> float:
        """How long the query may wait for a signal."""
        ...


@attrs.define(eq=False)
class InputWatch:
    """Add the queries, then `run` it in a thread of its own; any thread may suspend it.

    `consumer` returns a consumer with these settings in addition, which joins no group.
    """

    _consumer: Callable[[Mapping[str, object]], Consumer]
    _clock: Callable[[], float] = time.monotonic
    _queries: dict[str, tuple[Input, Signal]] = attrs.field(factory=dict, init=False)
    _watches: dict[str, QueryWatch] = attrs.field(factory=dict, init=False)
    _positions: dict[str, dict[TopicPartition, int]] = attrs.field(factory=dict, init=False)
    """Query → partition → offset from which it is watched."""
    _requested: set[str] = attrs.field(factory=set, init=False)
    """The queries for which another thread has requested a signal."""
    _suspensions: int = attrs.field(default=0, init=False)
    _lock: Lock = attrs.field(factory=Lock, init=False)
    """Held while a query begins or ends to wait for signals."""

    def add(self, name: str, input_: Input, signal: Signal) -> None:
        """Watch the input of a query, which can wait for the signal."""
        self._queries[name] = input_, signal

    def request_signal(self, name: str) -> None:
        """Let a query that waits check for new records soon, also if none was noticed; return at once."""
        self._requested.add(name)

    def run(self, stopping: Event) -> None:
        """Watch until `stopping` is set."""
        if not self._queries:
            return
        self._watches = {name: QueryWatch(since=self._clock()) for name in self._queries}
        updated_at = 0.0
        with closing(self._consumer(_FETCH_SETTINGS)) as consumer:
            try:
                while not stopping.is_set():
                    now = self._clock()
                    if now - updated_at >= _UPDATE_SECONDS:
                        updated_at = now
                        self._update(consumer, now)
                    self._send_requested()
                    self._signal_queries(consumer)
            finally:
                with self._lock:
                    self._let_all_poll()

    @contextmanager
    def suspend_signals(self) -> Iterator[None]:
        """Return a context in which all queries poll: what waits for a query does not wait for a signal."""
        with self._lock:
            self._suspensions += 1
            self._let_all_poll()
        try:
            yield
        finally:
            with self._lock:
                self._suspensions -= 1

    def _let_all_poll(self) -> None:
        for _, signal in self._queries.values():
            signal.wait_at_most(0)

    def _update(self, consumer: Consumer, now: float) -> None:
        """Enter the modes that are due."""
        before = {name: dict(offsets) for name, offsets in self._positions.items()}
        for name, (input_, signal) in self._queries.items():
            watch = self._watches[name]
            watched = self._positions.get(name)
            if watch.mode is not WatchMode.POLLING and (
                self._suspensions or watched is None or sorted(watched) != sorted(input_.partitions())
            ):
                self._let_poll(name, watch.entered(WatchMode.POLLING, now))
                continue
            mode = watch.next_mode(now)
            if mode is watch.mode or self._suspensions:
                continue
            if mode is WatchMode.ARMING:
                self._arm_signal(name, input_, now)
            else:
                self._watches[name] = watch.entered(mode, now)
                with self._lock:
                    if not self._suspensions:
                        signal.wait_at_most(input_.max_wait_seconds)
        if before.keys() != self._positions.keys():
            self._assign_partitions(consumer)

    def _arm_signal(self, name: str, input_: Input, now: float) -> None:
        watch = self._watches[name]
        try:
            self._positions[name] = dict(input_.end_offsets())
            self._watches[name] = watch.entered(WatchMode.ARMING, now)
        except KafkaException as error:
            _log.debug("input is not watched", query=name, reason=failure_reason(error))
            self._watches[name] = watch.failed(now)

    def _let_poll(self, name: str, watch: QueryWatch) -> None:
        self._watches[name] = watch
        self._positions.pop(name, None)
        self._queries[name][1].wait_at_most(0)

    def _assign_partitions(self, consumer: Consumer) -> None:
        consumer.assign(
            [
                KafkaTopicPartition(*partition, offset)
                for offsets in self._positions.values()
                for partition, offset in offsets.items()
            ]
        )

    def _send_requested(self) -> None:
        while self._requested:
            name = self._requested.pop()
            if name in self._watches and self._watches[name].mode is WatchMode.WATCHED:
                self._queries[name][1].send()

    def _signal_queries(self, consumer: Consumer) -> None:
        """Wait for records for a moment; signal the queries that read them."""
        names = {each: name for name, offsets in self._positions.items() for each in offsets}
        received: Counter[str] = Counter()
        failed: set[str] = set()
        message = consumer.poll(_POLL_SECONDS)
        while message is not None:
            partition = message.topic() or "", message.partition() or 0
            name = names.get(partition)
            if name is not None and message.error() is None:
                received[name] += 1
                self._positions[name][partition] = (message.offset() or 0) + 1
                if received[name] == 1:
                    self._queries[name][1].send()
            elif name is not None:
                failed.add(name)
            message = consumer.poll(0) if received.total() < _MAX_RECORDS else None
        now = self._clock()
        for name in received.keys() | failed:
            watch = self._watches[name]
            watch = watch.failed(now) if name in failed else watch.received(received[name], now)
            if watch.mode is WatchMode.POLLING:
                self._let_poll(name, watch)
                self._assign_partitions(consumer)
            else:
                self._watches[name] = watch
