"""Runs of real Kafka Streams applications, one after the other, in one JVM (`headwater.oracle.Runs`)."""

import json
import os
import queue
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import attrs

from tests.oracle.kafka_streams import OF_THE_BROKER, built_program
from tests.quick_java import QUICK_PROGRAM

_MAIN = "headwater.oracle.Runs"
_SECONDS = 120.0
_END_SECONDS = 60.0
"""The program closes an application within 20 seconds, or ends itself."""
_PAUSE_SECONDS = 0.05


@attrs.define
class Run:
    """One run. `failures` are the exceptions that Kafka Streams has reported so far, with their causes.

    `jvm_has_ended`: the run has ended because the JVM has.
    """

    _lines: "queue.Queue[str | None]"
    failures: list[str] = attrs.field(factory=list)
    has_ended: bool = False
    jvm_has_ended: bool = False

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait for a condition. Raise `AssertionError` with the failures after a timeout."""
        deadline = time.monotonic() + _SECONDS
        while True:
            self.read_lines()
            if condition():
                return
            assert time.monotonic() < deadline, f"timed out; failures so far: {self.failures}"
            time.sleep(_PAUSE_SECONDS)

    def read_lines(self, seconds: float = 0.0) -> None:
        """Read the lines that have been printed. Wait at most `seconds` for the first one."""
        try:
            while True:
                line = self._lines.get(timeout=seconds) if seconds else self._lines.get_nowait()
                self.jvm_has_ended = self.jvm_has_ended or line in (None, "not closed")
                self.has_ended = self.jvm_has_ended or self.has_ended or line == "ended"
                if line is not None and line.startswith("failed: "):
                    self.failures.append(line.removeprefix("failed: "))
                seconds = 0.0
        except queue.Empty:
            return


class StreamsProcess:
    """A JVM with a version of Kafka Streams that starts with the first run. `close` stops it.

    A run ends in bounded time: if the application does not close, the next run gets a new JVM.
    """

    def __init__(self, version: str = OF_THE_BROKER, end_seconds: float = _END_SECONDS) -> None:
        self._version = version
        self._end_seconds = end_seconds
        self._process: subprocess.Popen[str] | None = None
        self._lines: queue.Queue[str | None] = queue.Queue()

    @property
    def pid(self) -> int | None:
        """The process id of the JVM, `None` if the next run starts one."""
        return None if self._process is None else self._process.pid

    @contextmanager
    def running(
        self, document: Mapping[str, Any], properties: Mapping[str, str], **request: str
    ) -> Iterator[Run]:
        """Run the document's topology without local state, until the context ends."""
        if self._process is not None and self._process.poll() is not None:
            self.close()
        process = self._process or self._start()
        _send(process, json.dumps({"document": document, "properties": properties, **request}))
        run = Run(self._lines)
        try:
            yield run
        finally:
            self._end(process, run)

    def close(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with suppress(OSError):  # a line that the JVM has not read
                        pipe.close()

    def _end(self, process: "subprocess.Popen[str]", run: Run) -> None:
        """End the run. Kill a JVM that does not: the broker removes its member after the session timeout."""
        with suppress(OSError):  # the JVM has ended
            _send(process, "")
        deadline = time.monotonic() + self._end_seconds
        while not run.has_ended and (left := deadline - time.monotonic()) > 0:
            run.read_lines(left)
        if run.jvm_has_ended or not run.has_ended:
            self.close()

    def _start(self) -> "subprocess.Popen[str]":
        java, folder = built_program(self._version)
        class_path = os.pathsep.join((str(folder / "classes"), str(folder / "jars" / "*")))
        process = subprocess.Popen(
            [java, "-Xmx384m", *QUICK_PROGRAM, "-cp", class_path, _MAIN],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._process, self._lines = process, queue.Queue()
        threading.Thread(target=_read_output, args=(process, self._lines), daemon=True).start()
        return process


def _send(process: "subprocess.Popen[str]", line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(line + "\n")
    process.stdin.flush()


def _read_output(process: "subprocess.Popen[str]", lines: "queue.Queue[str | None]") -> None:
    assert process.stdout is not None
    with suppress(ValueError):  # closed by `close`
        for line in process.stdout:
            lines.put(line.strip())
    lines.put(None)
