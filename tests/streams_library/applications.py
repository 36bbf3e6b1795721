"""Run real Kafka Streams applications of any supported version in one JVM, with the library."""

import os
import queue
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import attrs

from headwater.toolchain import machine
from headwater.toolchain.cache import Cache, fingerprint
from headwater.toolchain.commands import Progress, run_logged
from headwater.toolchain.streams_library import ensure_streams_library
from tests.quick_java import QUICK_JAVAC, QUICK_PROGRAM

_SOURCE = Path(__file__).parent / "java"
_MAIN = "headwater.streamstest.Applications"
_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
SUPPLIER = "io.headwater.streams.HeadwaterClientSupplier"
SECONDS = 60.0
OLDEST, NEWEST = "3.7.2", "4.4.0"


@attrs.frozen
class Event:
    """A line that the JVM wrote: its kind, the name of the application, and further words."""

    kind: str
    application: str
    words: tuple[str, ...]
    time: float

    @property
    def exception(self) -> str:
        """Return the class of the exception that the uncaught exception handler received."""
        return self.words[0]

    @property
    def message(self) -> str:
        return self.words[1]

    @property
    def topics(self) -> list[str]:
        """Return what `MissingInternalTopicsException#topics` returned."""
        return self.words[2].split(",") if self.words[2] else []


def class_path(version: str) -> str:
    """Return the class path of a version: test program, library, Kafka Streams and its dependencies."""
    library = ensure_streams_library()
    cache = Cache()
    sources = sorted(path for path in _SOURCE.rglob("*") if path.suffix in {".java", ".xml"})
    contents = fingerprint(*(path.read_bytes() for path in sources), library.parent.name)

    def copy_jars(folder: Path, progress: Progress) -> None:
        programs = machine.require_programs((machine.JAVA, machine.MAVEN))
        with progress.step(f"Kafka Streams {version}: downloading with Maven", expected="10 seconds") as show:
            run_logged(
                [
                    *(programs[machine.MAVEN], "--batch-mode", "--no-transfer-progress"),
                    *("--file", _SOURCE / "pom.xml", f"-Dkafka.version={version}", _COPY),
                    f"-DoutputDirectory={folder}",
                ],
                log=cache.root / "logs" / f"streams-{version}.log",
                environment=os.environ,
                show=show,
                failure=f"Maven could not download Kafka Streams {version}",
            )

    def compile_program(folder: Path, _: Progress) -> None:
        java = [path for path in sources if path.suffix == ".java"]
        subprocess.run(
            ["javac", *QUICK_JAVAC, "--release", "11", "-cp", f"{jars}/*:{library}", "-d", folder, *java],
            check=True,
        )

    pom = fingerprint((_SOURCE / "pom.xml").read_bytes())
    jars = cache.ensure(f"streams-{version}-{pom}", copy_jars, Progress())
    classes = cache.ensure(f"streams-tests-{version}-{contents}", compile_program, Progress())
    return f"{classes}:{library}:{jars}/*"


class Applications:
    """The JVM; `events` are all lines so far, `log` is what applications logged (WARN and higher)."""

    def __init__(self, version: str, state_folder: Path) -> None:
        self.version = version
        self.events: list[Event] = []
        self.log: list[str] = []
        self._state_folder = state_folder
        self._seen = 0
        self._lines: queue.Queue[Event | None] = queue.Queue()
        options = ["-Xmx384m", *QUICK_PROGRAM]
        options.append("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")
        options.append("-Dorg.slf4j.simpleLogger.log.io.headwater=info")
        self.process = subprocess.Popen(
            ["java", *options, "-cp", class_path(version), _MAIN],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self._threads = [
            threading.Thread(target=self._read, args=(self.process.stdout,), daemon=True),
            threading.Thread(target=self._read_log, args=(self.process.stderr,), daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def start(self, name: str, topology: str, configs: Mapping[str, str]) -> None:
        self._send("start", name, topology, self._properties(name, configs))

    def initialize(
        self,
        name: str,
        topology: str,
        configs: Mapping[str, str],
        *,
        if_incomplete: bool = False,
        timeout_ms: int = 60_000,
    ) -> Event:
        """Call `InternalTopics.initialize`; return the event `initialized` or `refused`."""
        self._send(
            *("initialize", name, topology, self._properties(name, configs)),
            *(str(if_incomplete).lower(), str(timeout_ms)),
        )
        return self.wait(name, lambda event: event.kind in ("initialized", "refused"))

    def export(self, name: str, topology: str, configs: Mapping[str, str], path: Path) -> None:
        """Write the topology document of an application, as its own code would."""
        self._send("export", name, topology, self._properties(name, configs), str(path))
        event = self.wait(name, lambda event: event.kind in ("exported", "refused"))
        assert event.kind == "exported", event

    def close(self, name: str) -> None:
        self._send("close", name)
        self.wait(name, lambda event: event.kind == "closed")

    def ask(self, name: str, what: str) -> dict[str, str]:
        """Return the answer to `lags`, `tasks` or `metrics`."""
        self._send(what, name)
        text = self.wait(name, lambda event: event.kind == what).words[0].strip("{}")
        return dict(entry.rpartition("=")[::2] for entry in text.split(", ") if entry)

    def await_tasks(self, name: str, count: int) -> Event:
        """Wait until the application is RUNNING with so many active tasks, and return that event."""
        self._send("awaitTasks", name, str(count))
        event = self.wait(name, lambda event: event.kind in ("awaitTasks", "failed", "refused"))
        assert event.kind == "awaitTasks", event
        return event

    def running(self, name: str) -> Event:
        """Wait until the application is RUNNING, and return that event; fails if it stops before."""
        event = self.wait(
            name,
            lambda event: (
                event.kind in ("failed", "refused") or (event.kind == "state" and event.words[0] == "RUNNING")
            ),
        )
        assert event.kind == "state", event
        return event

    def failed(self, name: str) -> Event:
        """Wait for a call of the uncaught exception handler, or a refused start."""
        return self.wait(name, lambda event: event.kind in ("failed", "refused"))

    def wait(self, name: str, accepted: Callable[[Event], bool], seconds: float = SECONDS) -> Event:
        """Return the next event of an application that is accepted; earlier ones are skipped."""
        deadline = time.monotonic() + seconds
        for position, event in enumerate(self.events[self._seen :], self._seen):
            if event.application == name and accepted(event):
                self._seen = position + 1
                return event
        while True:
            try:
                event_or_end = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"no event of {name}: {self.events[-8:]} {self.log[-20:]}") from None
            assert event_or_end is not None, f"the JVM ended: {self.events[-8:]} {self.log[-20:]}"
            self.events.append(event_or_end)
            if event_or_end.application == name and accepted(event_or_end):
                self._seen = len(self.events)
                return event_or_end

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        for thread in self._threads:
            thread.join()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()

    def _properties(self, name: str, configs: Mapping[str, str]) -> str:
        defaults = {
            "state.dir": str(self._state_folder / name),
            "commit.interval.ms": "100",
            "metadata.max.age.ms": "500",
            "default.key.serde": "org.apache.kafka.common.serialization.Serdes$StringSerde",
            "default.value.serde": "org.apache.kafka.common.serialization.Serdes$StringSerde",
            "auto.offset.reset": "earliest",
            "consumer.internal.leave.group.on.close": "true",
            "consumer.session.timeout.ms": "6000",
            "consumer.heartbeat.interval.ms": "500",
            "default.client.supplier": SUPPLIER,
            "test.name": name,
        }
        merged = {key: value for key, value in {**defaults, **configs}.items() if value}
        return "\\n".join(f"{key}={value}" for key, value in merged.items())

    def _send(self, *words: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\t".join(words) + "\n")
        self.process.stdin.flush()

    def _read(self, output: IO[str]) -> None:
        for line in output:
            kind, name, *words = [*line.rstrip("\n").split("\t"), ""][: line.count("\t") + 2]
            self._lines.put(Event(kind, name, tuple(words), time.monotonic()))
        self._lines.put(None)

    def _read_log(self, output: IO[str]) -> None:
        for line in output:
            self.log.append(line.rstrip("\n"))


@contextmanager
def jvm(version: str, state_folder: Path) -> Iterator[Applications]:
    applications = Applications(version, state_folder)
    try:
        yield applications
    finally:
        applications.kill()
