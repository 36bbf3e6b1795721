"""Wait until the queries of an application have processed all records."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from threading import Event, Lock
from typing import Protocol

from confluent_kafka import KafkaException

from headwater_spark.driver.offsets import GroupOffsets
from headwater_spark.driver.states import ClientState
from headwater_spark.engine.records import TopicPartition

_COMMIT_SECONDS, _COMMIT_POLL_SECONDS = 30.0, 1.0


class AwaitedQuery(Protocol):
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
