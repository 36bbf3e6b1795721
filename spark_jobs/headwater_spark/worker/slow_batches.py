"""Logs what a task does whose batch takes long: its record, and the line of the code that runs.

A thread of the worker process reads the stack of the thread that processes the batch, so records cost
nothing, and code that hangs is found, too.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Condition, Thread, get_ident
from types import FrameType

import attrs
import structlog

from headwater_spark.engine.error_handlers import CodeLine, find_user_line
from headwater_spark.engine.records import NO_RECORD, InputRecord

FIRST_SECONDS = 30.0
"""After so long, a batch is logged; then after twice the time, and so on."""
_OWN_PACKAGE = "headwater_spark"
_log = structlog.get_logger(__name__)


@attrs.define(eq=False)
class _Batch:
    task: str
    current_record: Callable[[], InputRecord]
    thread: int
    started: float
    report_at: float


class SlowBatches:
    """The batches that this process processes. `first_seconds` is the time of the first report."""

    def __init__(self, first_seconds: float = FIRST_SECONDS) -> None:
        self._first = first_seconds
        self._changed = Condition()
        self._batches: set[_Batch] = set()
        self._process = 0

    @contextmanager
    def watched(self, task: str, current_record: Callable[[], InputRecord]) -> Iterator[None]:
        """Log what the calling thread does, each time that the block has taken twice as long as before.

        `current_record` returns the input record that is processed; `NO_RECORD`: it is not known.
        """
        now = time.monotonic()
        batch = _Batch(task, current_record, get_ident(), now, now + self._first)
        if self._process != os.getpid():  # threads of a parent do not exist in a process that it has forked
            self._changed, self._batches, self._process = Condition(), set(), os.getpid()
            Thread(target=self._report, name="slow-batches", daemon=True).start()
        with self._changed:
            self._batches.add(batch)
            if len(self._batches) == 1:
                self._changed.notify()
        try:
            yield
        finally:
            with self._changed:
                self._batches.discard(batch)

    def _report(self) -> None:
        while True:
            with self._changed:
                while not self._batches:
                    self._changed.wait()
                due = min(self._batches, key=lambda batch: batch.report_at)
                if (wait := due.report_at - time.monotonic()) > 0:
                    self._changed.wait(wait)
                    continue
                seconds = time.monotonic() - due.started
                due.report_at = due.started + 2 * max(seconds, self._first)
                _log_batch(due, seconds)


def _log_batch(batch: _Batch, seconds: float) -> None:
    frame = sys._current_frames().get(batch.thread)  # noqa: SLF001 - CPython documents it
    record = batch.current_record()
    topic, partition, offset = record[:3]
    _log.warning(
        "task takes long",
        task=batch.task,
        seconds=round(seconds),
        record="not known" if record is NO_RECORD else f"{topic}, partition {partition}, offset {offset}",
        code="not known" if frame is None else _describe_line(frame),
    )


def _describe_line(frame: FrameType) -> str:
    """Return the last line of users' code that runs, otherwise the last line of the runtime."""
    lines: list[CodeLine] = []
    inner: FrameType | None = frame
    while inner is not None:
        lines.append((str(inner.f_globals.get("__name__")), inner.f_lineno))
        inner = inner.f_back
    own = next((line for line in lines if line[0].partition(".")[0] == _OWN_PACKAGE), lines[0])
    return find_user_line(reversed(lines)) or f"{own[0]}, line {own[1]}"
