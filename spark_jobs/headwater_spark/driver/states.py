"""States of a client (`KafkaStreams.State`) and of a query."""

from collections.abc import Mapping
from enum import StrEnum


class ClientState(StrEnum):
    """The state of a client, with the names of `KafkaStreams.State`."""

    CREATED = "CREATED"
    REBALANCING = "REBALANCING"
    RUNNING = "RUNNING"
    PENDING_SHUTDOWN = "PENDING_SHUTDOWN"
    NOT_RUNNING = "NOT_RUNNING"
    PENDING_ERROR = "PENDING_ERROR"
    ERROR = "ERROR"

    def may_become(self, other: "ClientState") -> bool:
        return other in _AFTER[self]

    @property
    def is_final(self) -> bool:
        return self in (ClientState.NOT_RUNNING, ClientState.ERROR)


_AFTER: Mapping[ClientState, frozenset[ClientState]] = {
    ClientState.CREATED: frozenset(
        {ClientState.REBALANCING, ClientState.PENDING_SHUTDOWN, ClientState.PENDING_ERROR}
    ),
    ClientState.REBALANCING: frozenset(
        {ClientState.RUNNING, ClientState.PENDING_SHUTDOWN, ClientState.PENDING_ERROR}
    ),
    ClientState.RUNNING: frozenset(
        {ClientState.REBALANCING, ClientState.PENDING_SHUTDOWN, ClientState.PENDING_ERROR}
    ),
    ClientState.PENDING_SHUTDOWN: frozenset({ClientState.NOT_RUNNING}),
    ClientState.NOT_RUNNING: frozenset(),
    ClientState.PENDING_ERROR: frozenset({ClientState.ERROR}),
    ClientState.ERROR: frozenset(),
}


class QueryState(StrEnum):
    """`STARTING` until Spark has looked up the first offsets; `WAITING` for a restart."""

    STARTING = "STARTING"
    RUNNING = "RUNNING"
    WAITING = "WAITING"
    FAILED = "FAILED"
    STOPPED = "STOPPED"


THREAD_NOTE = "on stream thread "
"""Begins the note on an exception of a task: the rest is the name of its stream thread."""


class ThreadState(StrEnum):
    """The state of a stream thread (`StreamThread.State`); dead threads are not kept.

    `CREATED` until the next batch can take it; `PENDING_SHUTDOWN` until its batches have ended.
    """

    CREATED = "CREATED"
    RUNNING = "RUNNING"
    PENDING_SHUTDOWN = "PENDING_SHUTDOWN"
