"""Which inputs idle queries watch for new records (`input.watch`), and the wait until no query has any."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from threading import Event, Lock
from typing import Protocol

import attrs
from confluent_kafka import KafkaException

from headwater.kafka import Connection
from headwater_spark.driver.input.watch import InputWatch
from headwater_spark.driver.offsets import GroupOffsets
from headwater_spark.driver.queries.specs import QuerySpecs
from headwater_spark.driver.states import ClientState
from headwater_spark.engine.records import Offsets, TopicPartition
from headwater_spark.spark_internals.input_signals import InputSignal, InputSignals
from headwater_spark.worker import clients

_MAX_WAIT_SECONDS = 10.0
"""Then the query checks for new records anyway. `TopicWatch` requests a signal earlier if necessary."""
_MAX_WAIT_FOR_TOPIC_SECONDS = 1.0
"""With patterns: only Spark notices a new topic that matches."""
_MAX_WAIT_FOR_TICK_SECONDS = 0.1

_COMMIT_SECONDS, _COMMIT_POLL_SECONDS = 30.0, 1.0


@attrs.frozen
class WatchedInput:
    """The input of one query in the current layout."""

    specs: QuerySpecs
    name: str

    def partitions(self) -> list[TopicPartition]:
        return self.specs.layout.input_partitions(self.name)

    def end_offsets(self) -> Offsets:
        return self.specs.end_offsets(self.name)

    @property
    def max_wait_seconds(self) -> float:
        input_ = self.specs.layout.inputs[self.name]
        if input_.ticks:
            return _MAX_WAIT_FOR_TICK_SECONDS
        return _MAX_WAIT_FOR_TOPIC_SECONDS if input_.patterns else _MAX_WAIT_SECONDS


def create_input_watch(connection: Connection, group: str, *, exactly_once: bool) -> InputWatch:
    """Return a watch of the records that Spark sees; it has no queries."""
    isolation = "read_committed" if exactly_once else "read_uncommitted"
    return InputWatch(
        lambda settings: clients.create_consumer(
            connection, group, {**settings, "isolation.level": isolation}
        )
    )


def watch_inputs(watch: InputWatch, signals: InputSignals, specs: QuerySpecs) -> Mapping[str, InputSignal]:
    """Add the queries to `watch`; return the signals of queries that can wait."""
    found = {name: signal for name in specs.layout.queries if (signal := signals.create()) is not None}
    for name, signal in found.items():
        watch.add(name, WatchedInput(specs, name), signal)
    return found


class AwaitedQuery(Protocol):
    """A query of the application (`SubtopologyQuery`)."""

    @property
    def end_offset(self) -> object:
        """The end of the last batch; None before the first one."""
        ...

    def process_available(self) -> bool:
        """Wait until the records that exist now are processed; return False if the query has stopped."""
        ...


def wait_until_idle(
    queries: Mapping[str, AwaitedQuery],
    *,
    state: Callable[[], ClientState],
    await_commits: Callable[[], None],
    is_expanding: Callable[[], bool],
    pause: Callable[[], object],
) -> None:
    """Wait until no query has had a new batch, and the client is RUNNING and adds no processors.

    Return also if its state is final.

    Args:
        queries: name → query
        state: returns the state of the client
        await_commits: waits until queries can read all that tasks have committed: brokers answer a commit
            before the partitions show it, and then the reading query would seem to have nothing to do
        is_expanding: returns whether processors are being added
        pause: waits for a moment
    """
    before: Mapping[str, object] | None = None
    while not state().is_final:
        are_active = [query.process_available() for query in queries.values()]
        await_commits()
        now = {name: query.end_offset for name, query in queries.items()}
        is_idle = all(are_active) and now == before and not is_expanding()
        if is_idle and state() is ClientState.RUNNING:
            return
        before = now
        pause()


def await_commits(
    offsets: GroupOffsets, open_offsets: Lock, stopping: Event, partitions: Sequence[TopicPartition]
) -> None:
    """Wait until queries can read all that tasks have committed, but not for transactions that hang.

    `open_offsets` is held while `offsets` are read: they must not be closed meanwhile.
    """
    deadline = time.monotonic() + _COMMIT_SECONDS
    while time.monotonic() < deadline:
        with open_offsets:
            if stopping.is_set():
                return
            with suppress(KafkaException):
                offsets.stable_end_offsets(partitions, _COMMIT_POLL_SECONDS)
                return
