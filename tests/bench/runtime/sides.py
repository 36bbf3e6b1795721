"""What every side can do, and the one way to tell that it has come to the end of its input."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

from infra.observe import Connection
from spark_jobs.runtime.driver.offsets import GroupOffsets
from tests.bench.runtime.workloads import PARTITIONS, Job

_LOOK_SECONDS = 0.02
_PATIENCE_SECONDS = 600


class Running(Protocol):
    """A job that has been started."""

    def await_end(self) -> None:
        """Return when all that was in the sources has been worked off and committed."""


class Side(Protocol):
    """`name` is for topics, `title` for people."""

    name: str
    title: str

    def running(self, job: Job, *, in_bulk: bool) -> AbstractContextManager[Running]:
        """Start `job`, end it with the context. `in_bulk`: many records are there; else they come singly."""


class Committed:
    """Reads the committed offsets of the group `job.id`, in the same way for each side that has a group."""

    def __init__(self, servers: str, job: Job, failure: Callable[[], str | None]) -> None:
        self._offsets = GroupOffsets(Connection(bootstrap_servers=(servers,)), job.id)
        self._partitions = [(lane.source, each) for lane in job.lanes for each in range(PARTITIONS)]
        self._failure = failure

    def await_end(self) -> None:
        """Return when the group has read everything; raises `RuntimeError` if the job ended before."""
        ends = self._offsets.end_offsets(self._partitions)
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while True:
            committed = self._offsets.committed(self._partitions)
            if all(committed.get(partition, 0) >= end for partition, end in ends.items()):
                return
            if (failure := self._failure()) is not None:
                raise RuntimeError(failure)
            if time.monotonic() > deadline:
                raise RuntimeError(f"not at the end after {_PATIENCE_SECONDS} s: {committed} of {ends}")
            time.sleep(_LOOK_SECONDS)

    def close(self) -> None:
        self._offsets.close()
