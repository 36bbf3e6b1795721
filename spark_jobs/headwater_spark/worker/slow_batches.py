"""Reports what a task does whose batch takes long: its record, and the line of the code that runs.

The log gets a line, the driver a file (`task_activity`). A thread of the worker process reads the stack of
the thread that processes the batch, so records cost nothing, and code that hangs is found, too, unless it
holds Python's global interpreter lock.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Condition, Lock, Thread, get_ident
from types import FrameType

import attrs
import structlog

from headwater_spark.engine.error_handlers import CodeLine, find_user_line
from headwater_spark.engine.records import NO_RECORD, InputRecord
from headwater_spark.worker.restore import restore_progress
from headwater_spark.worker.task_activity import TaskActivity, delete_activity, write_activity

FIRST_SECONDS = 30.0
"""After so long, a batch is logged; then after twice the time, and so on."""
WRITE_SECONDS = 5.0
"""After so long, and then again each time, the file for the driver is written."""
_NODE = "node_name"
"""The variable with the name of the node, in the functions that call users' code (`operators/processors`)."""
_OWN_PACKAGE = "headwater_spark"
_ENGINE = "headwater_spark.engine.task"
_PROCESSES_RECORDS = frozenset({"_process_records", "_end_batch"})
"""The functions of the engine's `Task` that set the current record. Outside them, it is one of before."""
_log = structlog.get_logger(__name__)


@attrs.define(eq=False)
class _Batch:
    task: str
    current_record: Callable[[], InputRecord]
    thread: int
    started: float
    since: float
    """Seconds since 1970."""
    report_at: float
    write_at: float
    folder: Path | None = None
    """The folder of the application's local state."""
    is_written: bool = False

    @property
    def due_at(self) -> float:
        return min(self.report_at, self.write_at)


@attrs.define(eq=False)
class _Batches:
    """The batches of a process; `changed` guards them."""

    changed: Condition = attrs.field(factory=Condition)
    running: set[_Batch] = attrs.field(factory=set)
    is_idle: bool = False
    """Whether the thread that reports waits for a batch, without a timeout."""


class SlowBatches:
    """The batches that this process processes.

    `first_seconds` is the time of the first report in the log, `write_seconds` of each file for the driver.
    """

    def __init__(self, first_seconds: float = FIRST_SECONDS, write_seconds: float = WRITE_SECONDS) -> None:
        self._first, self._write = first_seconds, write_seconds
        self._starting = Lock()
        self._batches = _Batches()
        self._process = 0

    @contextmanager
    def watch_batch(
        self, task: str, current_record: Callable[[], InputRecord], folder: Path | None = None
    ) -> Iterator[None]:
        """Log what the calling thread does, each time that the block has taken twice as long as before.

        `current_record` returns the input record that is processed; `NO_RECORD`: it is not known. `folder` is
        where the files for the driver are; None = there are none.
        """
        now = time.monotonic()
        write_at = float("inf") if folder is None else now + self._write
        batch = _Batch(
            task, current_record, get_ident(), now, time.time(), now + self._first, write_at, folder
        )
        batches = self._batches_of_process()
        with batches.changed:
            batches.running.add(batch)
            if batches.is_idle:
                batches.changed.notify()
        try:
            yield
        finally:
            with batches.changed:
                batches.running.discard(batch)
                if batch.is_written and folder is not None:
                    delete_activity(folder, task)

    def _batches_of_process(self) -> _Batches:
        """Return the batches; start the thread first if this process has none, as after a fork."""
        with self._starting:
            if self._process != os.getpid():
                self._batches, self._process = _Batches(), os.getpid()
                Thread(target=self._report, args=(self._batches,), name="slow-batches", daemon=True).start()
            return self._batches

    def _report(self, batches: _Batches) -> None:
        while True:
            with batches.changed:
                batch, is_logged = self._wait_for_report(batches)
                activity = _describe_activity(batch)
            # Without the lock: a log or a disk may block.
            if is_logged:
                _log.warning("task takes long", **_log_fields(activity))
            elif batch.folder is not None:
                _write_file(batches, batch, batch.folder, activity)

    def _wait_for_report(self, batches: _Batches) -> tuple[_Batch, bool]:
        """Return a batch that has to be reported: in the log, or in the file for the driver."""
        while True:
            while not batches.running:
                batches.is_idle = True
                batches.changed.wait()
            batches.is_idle = False
            due = min(batches.running, key=lambda batch: batch.due_at)
            now = time.monotonic()
            if due.report_at <= now:
                due.report_at = due.started + 2 * max(now - due.started, self._first)
                return due, True
            if due.write_at <= now:
                due.write_at = now + self._write
                return due, False
            # No batch that begins meanwhile is due before the end of this wait, so none has to end it.
            batches.changed.wait(min(due.due_at - now, self._first, self._write))


def _write_file(batches: _Batches, batch: _Batch, folder: Path, activity: TaskActivity) -> None:
    """Write the file of a batch; delete it if the batch has ended meanwhile."""
    write_activity(folder, activity)
    with batches.changed:
        batch.is_written = batch in batches.running
        if not batch.is_written:
            delete_activity(folder, activity.task)


def _describe_activity(batch: _Batch) -> TaskActivity:
    """Return what a batch does now."""
    frames = _frames_of(batch.thread)
    is_current = any(
        frame.f_code.co_name in _PROCESSES_RECORDS and _module_of(frame) == _ENGINE for frame in frames
    )
    record = batch.current_record() if is_current else NO_RECORD
    topic, partition, offset = record[:3]
    restoring = restore_progress(batch.thread)
    return TaskActivity(
        task=batch.task,
        since=batch.since,
        seconds=time.monotonic() - batch.started,
        record="" if record is NO_RECORD else f"{topic}, partition {partition}, offset {offset}",
        processor=_find_node(frames),
        code=_describe_line(frames) if frames else "",
        restoring="" if restoring is None else restoring.topic,
        restored=0 if restoring is None else restoring.restored,
        to_restore=0 if restoring is None else restoring.to_restore,
    )


def _log_fields(activity: TaskActivity) -> Mapping[str, object]:
    """Return the fields of the log line."""
    known = {"processor": activity.processor} if activity.processor else {}
    restoring = f"{activity.restoring}, {activity.restored} of {activity.to_restore} offsets"
    return {
        "task": activity.task,
        "seconds": round(activity.seconds),
        "record": activity.record or "not known",
        "code": activity.code or "not known",
        **known,
        **({"restoring": restoring} if activity.restoring else {}),
    }


def _find_node(frames: Sequence[FrameType]) -> str:
    """Return the name of the node whose code of users runs; empty: none does."""
    for frame in frames:
        if _NODE in frame.f_code.co_varnames and _module_of(frame).startswith(f"{_OWN_PACKAGE}.engine."):
            return str(frame.f_locals.get(_NODE, ""))
    return ""


def _frames_of(thread: int) -> Sequence[FrameType]:
    """Return what a thread executes, innermost first; nothing if it has ended."""
    frames: list[FrameType] = []
    frame = sys._current_frames().get(thread)  # noqa: SLF001 - CPython documents it
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    return frames


def _module_of(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__"))


def _describe_line(frames: Sequence[FrameType]) -> str:
    """Return the last line of users' code that runs, otherwise the last line of the runtime."""
    lines: list[CodeLine] = [(_module_of(frame), frame.f_lineno) for frame in frames]
    own = next((line for line in lines if line[0].partition(".")[0] == _OWN_PACKAGE), lines[0])
    return find_user_line(reversed(lines)) or f"{own[0]}, line {own[1]}"
