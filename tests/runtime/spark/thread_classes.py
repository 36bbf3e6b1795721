"""Classes of documents that control when a batch ends and when it fails, by files."""

import os
import signal
import tempfile
import time
from pathlib import Path

from headwater_spark.processors import Processor, ProcessorContext, Record
from headwater_spark.stream_threads import (
    RunningApplication,
    ThreadFailure,
    UncaughtExceptionHandler,
    UncaughtExceptionResponse,
)

BLOCK, FAIL, KILL = "block ", "fail ", "kill "
_SECONDS = 120.0


class Controlled(Processor):
    """Forwards records.

    `block FILE` waits until FILE is gone, `fail FILE` fails as long as FILE exists, and `kill FILE` kills
    its process once for each byte of FILE.
    """

    def init(self, context: ProcessorContext) -> None:
        self._context = context

    def process(self, record: Record) -> None:
        value = str(record.value)
        if value.startswith(BLOCK):
            file = Path(value.removeprefix(BLOCK))
            file.with_suffix(".entered").touch()
            deadline = time.monotonic() + _SECONDS
            while file.exists() and time.monotonic() < deadline:
                time.sleep(0.02)
        if value.startswith(FAIL) and Path(value.removeprefix(FAIL)).exists():
            raise RuntimeError("the record fails while its file exists")
        if value.startswith(KILL) and (left := (file := Path(value.removeprefix(KILL))).stat().st_size):
            os.truncate(file, left - 1)
            os.kill(os.getpid(), signal.SIGKILL)
        self._context.forward(record)


class FailsToStart(Controlled):
    """Its task cannot be opened while a file with the name of the application exists."""

    def init(self, context: ProcessorContext) -> None:
        if Path(tempfile.gettempdir(), context.application_id).exists():
            raise OSError("the task cannot be opened")
        super().init(context)


class AddsThread(UncaughtExceptionHandler):
    """The example of the KIP: starts a new thread instead of the failed one."""

    added: list[str | None]
    failures: list[ThreadFailure]

    def init(self, application: RunningApplication) -> None:
        self.application = application
        self.added, self.failures = [], []

    def handle(self, failure: ThreadFailure) -> UncaughtExceptionResponse:
        self.failures.append(failure)
        self.added.append(self.application.add_stream_thread())
        return UncaughtExceptionResponse.SHUTDOWN_THREAD


class RemovesThread(UncaughtExceptionHandler):
    """Removes a thread, and lets the failed one be replaced."""

    removed: list[str | None]

    def init(self, application: RunningApplication) -> None:
        self.application = application
        self.removed = []

    def handle(self, failure: ThreadFailure) -> UncaughtExceptionResponse:
        del failure
        self.removed.append(self.application.remove_stream_thread())
        return UncaughtExceptionResponse.REPLACE_THREAD


class Raises(UncaughtExceptionHandler):
    """A handler with a defect."""

    def handle(self, failure: ThreadFailure) -> UncaughtExceptionResponse:
        raise RuntimeError(f"no answer to the failure of {failure.thread}")
