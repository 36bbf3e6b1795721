"""The real Kafka Streams, asked through the program in `java/`: one JVM, a line of JSON a question."""

import json
import os
import queue
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import attrs

from toolchain import machine
from toolchain.cache import Cache, fingerprint
from toolchain.commands import run_logged
from toolchain.progress import Progress

_SOURCE = Path(__file__).parent / "java"
_MAIN = "headwater.oracle.Oracle"
_IN_MEMORY = Path("/dev/shm")  # noqa: S108 - stores wait for their disk ten times as long as they compute


class OracleDiedError(Exception):
    """The JVM ended or did not answer in time; the next question starts another one."""


@attrs.frozen
class Run:
    """One start of an application: which counts would its internal topics get?"""

    application_id: str
    partitions: Mapping[str, int]
    protocol: Literal["classic", "streams"] = "classic"


@attrs.frozen
class Refusal:
    """What Kafka Streams threw: while `stage` = `build`, `start` (KafkaStreams' constructor) or `assign`."""

    java_class: str
    message: str
    stage: str

    @property
    def name(self) -> str:
        return self.java_class.rpartition(".")[2]


@attrs.frozen
class Counts:
    """`counts` by full topic name, `tasks` by sub-topology id; `status` is the streams protocol's."""

    counts: Mapping[str, int] = attrs.field(factory=dict)
    tasks: Mapping[str, int] = attrs.field(factory=dict)
    status: str | None = None
    detail: str | None = None
    refusal: Refusal | None = None


@attrs.frozen
class Answer:
    """`insides` has the form of a recorded case's `subtopologies.json`, with full names."""

    describe: str | None
    insides: Mapping[str, Any] | None
    runs: tuple[Counts, ...]
    refusal: Refusal | None = None


def built_program(cache: Cache | None = None) -> tuple[Path, Path]:
    """Return the `java` executable and the folder with classes and jars, made by Maven if need be."""
    cache = cache or Cache()
    sources = sorted(
        path for path in _SOURCE.rglob("*") if path.suffix in {".java", ".xml"} and "target" not in path.parts
    )
    entry = f"oracle-{fingerprint(*(path.read_bytes() for path in sources))}"
    programs = machine.require((machine.JAVA,) if cache.find(entry) else (machine.JAVA, machine.MAVEN))

    def compile_program(folder: Path, progress: Progress) -> None:
        with progress.step("test oracle: compiling by Maven") as show:
            run_logged(
                [
                    programs[machine.MAVEN],
                    *("--batch-mode", "--no-transfer-progress", "--file", _SOURCE / "pom.xml"),
                    *(f"-Doutside={folder}", "compile"),
                ],
                log=cache.root / "logs" / "oracle.log",
                environment=os.environ,
                show=show,
                failure="Maven could not compile the test oracle",
            )

    return programs[machine.JAVA], cache.ensure(entry, compile_program, Progress())


class KafkaStreams:
    """Starts the JVM when it is first asked; `close` always ends it."""

    def __init__(self, timeout_seconds: float = 600) -> None:
        self._timeout = timeout_seconds
        self._process: subprocess.Popen[str] | None = None
        self._folder: TemporaryDirectory[str] | None = None
        self._answers: queue.Queue[str | None] = queue.Queue()

    def ask(
        self, document: Mapping[str, Any], runs: Sequence[Run] = (), topics: Mapping[str, int] | None = None
    ) -> Answer:
        """`topics` are those of the cluster while `insides` is made; only patterns look at them."""
        request = {
            "document": document,
            "topics": dict(topics or {}),
            "runs": [
                {
                    "applicationId": run.application_id,
                    "partitions": dict(run.partitions),
                    "protocol": run.protocol,
                }
                for run in runs
            ],
        }
        return _answer(json.loads(self._exchange(json.dumps(request))))

    def run(
        self, document: Mapping[str, Any], data: Sequence[Mapping[str, Any]]
    ) -> list[Mapping[str, Any]] | Refusal:
        """What `TopologyTestDriver` makes of records (topic, key, value, timestamp), by the functions of all.

        Records come out of every topic as (after, topic, key, value, timestamp), bytes in base 64.
        """
        told = json.loads(self._exchange(json.dumps({"document": document, "data": list(data)})))
        refusal = _refusal(told)
        if refusal is not None:
            return refusal
        records: list[Mapping[str, Any]] = told["records"]
        return records

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    pipe.close()
            self._process = None
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def _exchange(self, line: str) -> str:
        process = self._running()
        assert process.stdin is not None
        try:
            process.stdin.write(line + "\n")
            process.stdin.flush()
            answer = self._answers.get(timeout=self._timeout)
        except (OSError, queue.Empty):
            answer = None
        if answer is None:
            self.close()
            raise OracleDiedError(line)
        return answer

    def _running(self) -> subprocess.Popen[str]:
        if self._process is not None and self._process.poll() is None:
            return self._process
        self.close()
        java, folder = built_program()
        class_path = os.pathsep.join((str(folder / "classes"), str(folder / "jars" / "*")))
        self._folder = TemporaryDirectory(
            prefix="headwater-oracle-", dir=_IN_MEMORY if _IN_MEMORY.is_dir() else None
        )
        flags = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        process = subprocess.Popen(
            [java, *flags, f"-Djava.io.tmpdir={self._folder.name}", "-cp", class_path, _MAIN],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._process, self._answers = process, queue.Queue()
        threading.Thread(target=_pump, args=(process, self._answers), daemon=True).start()
        return process


def _pump(process: subprocess.Popen[str], answers: queue.Queue[str | None]) -> None:
    assert process.stdout is not None
    try:
        for line in process.stdout:
            answers.put(line)
    except ValueError:  # closed by `close`
        pass
    answers.put(None)


def _answer(told: Mapping[str, Any]) -> Answer:
    return Answer(
        told.get("describe"), told.get("insides"), tuple(_counts(run) for run in told["runs"]), _refusal(told)
    )


def _counts(told: Mapping[str, Any]) -> Counts:
    counts, tasks = told.get("counts", {}), told.get("tasks", {})
    return Counts(counts, tasks, told.get("status"), told.get("detail"), _refusal(told))


def _refusal(told: Mapping[str, Any]) -> Refusal | None:
    error = told.get("error")
    return Refusal(error["class"], error["message"] or "", error["stage"]) if error else None
