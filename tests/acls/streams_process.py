"""Runs of real Kafka Streams applications, one after the other, in one JVM (`headwater.oracle.Runs`)."""

import json
import os
import queue
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import attrs

from tests.oracle.kafka_streams import OF_THE_BROKER, built_program

_MAIN = "headwater.oracle.Runs"
_SECONDS = 60.0
_PAUSE_SECONDS = 0.05


@attrs.define
class Run:
    """One run. `failures` are the exceptions that Kafka Streams has reported so far, with their causes."""

    _lines: "queue.Queue[str | None]"
    failures: list[str] = attrs.field(factory=list)
    has_ended: bool = False

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
                self.has_ended = self.has_ended or line in (None, "ended")
                if line is not None and line.startswith("failed: "):
                    self.failures.append(line.removeprefix("failed: "))
                seconds = 0.0
        except queue.Empty:
            return


class StreamsProcess:
    """A JVM with a version of Kafka Streams that starts with the first run. `close` stops it."""

    def __init__(self, version: str = OF_THE_BROKER) -> None:
        self._version = version
        self._process: subprocess.Popen[str] | None = None
        self._lines: queue.Queue[str | None] = queue.Queue()

    @contextmanager
    def running(
        self, document: Mapping[str, Any], properties: Mapping[str, str], **request: str
    ) -> Iterator[Run]:
        """Run the document's topology without local state, until the context ends."""
        self._send(json.dumps({"document": document, "properties": properties, **request}))
        run = Run(self._lines)
        try:
            yield run
        finally:
            self._send("")
            while not run.has_ended:
                run.read_lines(_SECONDS)

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    pipe.close()

    def _send(self, line: str) -> None:
        process = self._process or self._start()
        assert process.stdin is not None
        process.stdin.write(line + "\n")
        process.stdin.flush()

    def _start(self) -> "subprocess.Popen[str]":
        java, folder = built_program(self._version)
        class_path = os.pathsep.join((str(folder / "classes"), str(folder / "jars" / "*")))
        self._process = subprocess.Popen(
            [java, "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", class_path, _MAIN],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        threading.Thread(target=self._read_output, args=(self._process,), daemon=True).start()
        return self._process

    def _read_output(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                self._lines.put(line.strip())
        except ValueError:  # closed by `close`
            pass
        self._lines.put(None)
