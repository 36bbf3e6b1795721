"""The interface of the compared programs, and how the end of their input is detected for all of them."""

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Literal, Protocol

import attrs
from confluent_kafka.admin import AdminClient

from headwater.kafka import Connection
from headwater_spark.driver.offsets import GroupOffsets
from tests.bench.runtime.workloads import Job

_POLL_SECONDS = 0.02
_TIMEOUT_SECONDS = 600
_REQUEST_SECONDS = 30


class Running(Protocol):
    """A job that is running."""

    def await_end(self) -> None:
        """Wait until all records of the sources are processed and committed."""


class Program(Protocol):
    """One of the compared programs; `name` is part of topic names, `title` is printed."""

    name: str
    title: str

    def running(self, job: Job, *, in_bulk: bool) -> AbstractContextManager[Running]:
        """Run `job` inside the context; `in_bulk`: all its records exist, else they are written singly."""


class WithSetting:
    """A program with another value of a setting of `Workload`, `threads` or `processors`; None = not set."""

    def __init__(
        self, program: Program, setting: Literal["threads", "processors"], value: int | None
    ) -> None:
        self.name = f"{program.name}-{value or 'unset'}"
        self.title = f"{program.title} with {value or 'unset'} {setting}"
        self._program = program
        self._change: Mapping[str, Any] = {setting: value}

    def running(self, job: Job, *, in_bulk: bool) -> AbstractContextManager[Running]:
        workload = attrs.evolve(job.workload, **self._change)
        return self._program.running(attrs.evolve(job, workload=workload), in_bulk=in_bulk)


class Committed:
    """Reads the committed offsets of the group `job.id`, in the same way for each program with a group."""

    def __init__(self, servers: str, job: Job, failure: Callable[[], str | None]) -> None:
        self._offsets = GroupOffsets(Connection(bootstrap_servers=(servers,)), job.id)
        self._partitions = [
            (source, each)
            for chain in job.chains
            for source in chain.sources
            for each in range(job.partitions)
        ]
        self._failure = failure
        self._id = job.id
        self._admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})

    def await_end(self) -> None:
        """Wait until the end offsets of sources, then of internal topics that are read, are committed.

        Raises `RuntimeError` if the job ended early.
        """
        partitions = self._partitions
        ends = self._offsets.end_offsets(partitions)
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        while True:
            committed = self._offsets.committed(partitions)
            if all(committed.get(partition, 0) >= end for partition, end in ends.items()):
                # a sub-topology may have written more meanwhile
                partitions = self._internal_partitions()
                newer = self._offsets.end_offsets(partitions)
                if ends == newer or not partitions:
                    return
                ends = newer
                continue
            if (failure := self._failure()) is not None:
                raise RuntimeError(failure)
            if time.monotonic() > deadline:
                raise RuntimeError(f"not at the end after {_TIMEOUT_SECONDS} s: {committed} of {ends}")
            time.sleep(_POLL_SECONDS)

    def _internal_partitions(self) -> list[tuple[str, int]]:
        """Return the partitions of the application's repartition and foreign-key topics."""
        found = self._admin.list_topics(timeout=_REQUEST_SECONDS).topics.items()
        return [
            (name, partition)
            for name, topic in found
            if name.startswith(f"{self._id}-") and name.endswith(("-repartition", "-topic"))
            for partition in topic.partitions
        ]

    def close(self) -> None:
        self._offsets.close()
