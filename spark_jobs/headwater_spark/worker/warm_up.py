"""Restore the local state of processors that an expansion adds, before they get their partitions (KIP-287).

An expansion ends with its cut: the pause between two batches in which added processors get their partitions.
The restored state has version 0, and the lineage (a random number) that the cut commits for these processors.
So the task that opens the state after the cut finds it outdated, and restores the rest. If the expansion is
interrupted, the next one commits another lineage, and the state is deleted. A task on another machine finds
no state.
"""

import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import attrs

from headwater.kafka import Connection
from headwater.model.offset_metadata import LINEAGE_KEY
from headwater_spark.engine.program import SubtopologyProgram
from headwater_spark.engine.task import Task
from headwater_spark.engine.task_state import task_name_of
from headwater_spark.worker.local_state import LocalState
from headwater_spark.worker.messages import task_folder
from headwater_spark.worker.partition_reader import OffsetRange, PartitionReader
from headwater_spark.worker.restore import restore_topic
from headwater_spark.worker.task_lease import Lease
from headwater_spark.worker.task_owner import TaskOwnedError

_SLOT_SECONDS = 0.5
"""How long a warm-up takes a slot for Spark tasks: batches need the slot, too."""
_ANSWER_SECONDS = 5.0
"""How much longer it takes the slot if no record has arrived: otherwise a slow broker prevents progress."""
_NO_OWNER = ""


@attrs.frozen(kw_only=True)
class WarmUpRequest:
    """The request to restore the local state of added processors of an application.

    `tasks` are (program, number of the processor). `lineage` is the lineage of all their states.
    """

    application: str
    connection: Connection
    state_folder: Path
    tasks: tuple[tuple[SubtopologyProgram, int], ...]
    lineage: int


@attrs.frozen(kw_only=True)
class WarmUpResult:
    """What a part of a warm-up has done.

    The first `done` tasks have restored all records that existed then, or failed. `failures` say why.
    """

    done: int = 0
    restored: int = 0
    failures: tuple[str, ...] = ()


def warm_up(request: WarmUpRequest, seconds: float = _SLOT_SECONDS) -> WarmUpResult:
    """Restore one task after the other, for about `seconds`.

    It never raises: a worker process whose Spark task fails ends, and its other tasks are opened again.
    """
    deadline = time.monotonic() + seconds
    done = restored = 0
    failures: list[str] = []
    try:
        with closing(PartitionReader(request.connection, request.application)) as reader:
            for program, processor in request.tasks:
                warming = _WarmingTask(request, reader, program, processor)
                try:
                    is_done = warming.restore(deadline)
                except Exception as error:  # noqa: BLE001 - returned in `failures`
                    failures.append(f"{warming.name}: {_failure_reason(error)}")
                    is_done = True
                restored += warming.restored
                done += is_done
                if not is_done or time.monotonic() >= deadline:
                    break
    except Exception as error:  # noqa: BLE001 - returned in `failures`
        done, failures = len(request.tasks), [*failures, _failure_reason(error)]
    return WarmUpResult(done=done, restored=restored, failures=tuple(failures))


@attrs.define
class _WarmingTask:
    """The local state of one added processor, while it is restored."""

    _request: WarmUpRequest
    _reader: PartitionReader
    _program: SubtopologyProgram
    _processor: int
    restored: int = 0

    @property
    def name(self) -> str:
        return task_name_of(self._request.application, self._program.name, self._processor)

    def restore(self, deadline: float) -> bool:
        """Restore until `deadline`; return whether all records that exist are restored.

        Raises:
            TaskOwnedError: Another process has the state.
            StateNotWrittenError: The state cannot be written.
            KafkaException: The changelog topics cannot be read.
        """
        folder = self._request.state_folder
        lease = Lease.try_acquire(folder, self.name, _NO_OWNER)
        if lease is None:
            raise TaskOwnedError("another process has the local state")
        try:
            state = LocalState(task_folder(folder, self._program.name, self._processor))
            try:
                return self._restore_state(state, deadline)
            finally:
                state.release()
        finally:
            lease.release()

    def _restore_state(self, state: LocalState, deadline: float) -> bool:
        lineage = self._request.lineage
        if state.metadata.get(LINEAGE_KEY) != lineage:
            state.reset()
        elif state.version:
            return True  # the cut has been made meanwhile: a task has processed records with this state
        task = Task(self._program, self._processor, state)
        for topic, range_ in self._ranges(state.offsets()).items():
            chunks = self._reader.read(topic, self._processor, range_)
            for records in restore_topic(task, state, chunks, topic, lineage):
                self.restored += records
                if time.monotonic() >= deadline + (0 if self.restored else _ANSWER_SECONDS):
                    return not self._ranges(state.offsets())
        return True

    def _ranges(self, known: Mapping[str, int]) -> Mapping[str, OffsetRange]:
        """Return the offsets that are not restored, of each changelog topic that has any."""
        ranges: dict[str, OffsetRange] = {}
        for topic in self._program.changelogs.values():
            first, end = self._reader.bounds(topic, self._processor)
            if max(first, known.get(topic, 0)) < end:
                ranges[topic] = OffsetRange(known.get(topic, 0), end)
        return ranges


def _failure_reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
