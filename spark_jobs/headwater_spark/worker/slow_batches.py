"""Logs what a task does whose batch takes long: its record, and the line of the code that runs.

A thread of the worker process reads the stack of the thread that processes the batch, so records cost
nothing, and code that hangs is found, too, unless it holds Python's global interpreter lock.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Condition, Lock, Thread, get_ident
from types import FrameType

import attrs
import structlog

from headwater_spark.engine.error_handlers import CodeLine, find_user_line
from headwater_spark.engine.records import NO_RECORD, InputRecord

FIRST_SECONDS = 30.0
"""After so long, a batch is logged; then after twice the time, and so on."""
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
    report_at: float


@attrs.define(eq=False)
class _Batches:
    """The batches of a process; `changed` guards them."""

    changed: Condition = attrs.field(factory=Condition)
    running: set[_Batch] = attrs.field(factory=set)
    is_idle: bool = False
    """Whether the thread that reports waits for a batch, without a timeout."""


class SlowBatches:
    """The batches that this process processes. `first_seconds` is the time of the first report."""

    def __init__(self, first_seconds: float = FIRST_SECONDS) -> None:
        self._first = first_seconds
        self._starting = Lock()
        self._batches = _Batches()
        self._process = 0

    @contextmanager
    def watched(self, task: str, current_record: Callable[[], InputRecord]) -> Iterator[None]:
        """Log what the calling thread does, each time that the block has taken twice as long as before.

        `current_record` returns the input record that is processed; `NO_RECORD`: it is not known.
        """
        now = time.monotonic()
        batch = _Batch(task, current_record, get_ident(), now, now + self._first)
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
                fields = _describe_batch(*self._wait_for_report(batches))
            _log.warning("task takes long", **fields)  # without the lock: a log may block

    def _wait_for_report(self, batches: _Batches) -> tuple[_Batch, float]:
        """Return a batch that has to be reported, and for how many seconds it runs."""
        while True:
            while not batches.running:
                batches.is_idle = True
                batches.changed.wait()
            batches.is_idle = False
            due = min(batches.running, key=lambda batch: batch.report_at)
            now = time.monotonic()
            if due.report_at <= now:
                due.report_at = due.started + 2 * max(now - due.started, self._first)
                return due, now - due.started
            # No batch that begins meanwhile is due before the end of this wait, so none has to end it.
            batches.changed.wait(min(due.report_at - now, self._first))


def _describe_batch(batch: _Batch, seconds: float) -> Mapping[str, object]:
    """Return the fields of the log line."""
    frames = _frames_of(batch.thread)
    is_current = any(
        frame.f_code.co_name in _PROCESSES_RECORDS and _module_of(frame) == _ENGINE for frame in frames
    )
    record = batch.current_record() if is_current else NO_RECORD
    topic, partition, offset = record[:3]
    return {
        "task": batch.task,
        "seconds": round(seconds),
        "record": (
            "not known" if record is NO_RECORD else f"{topic}, partition {partition}, offset {offset}"
        ),
        "code": _describe_line(frames) if frames else "not known",
    }


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
