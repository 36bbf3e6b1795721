"""Run the real Kafka Streams in one JVM with the program in `java/`: one line of JSON per request."""

import json
import os
import queue
import re
import shutil
import subprocess
import threading
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import attrs

from headwater.model.versions import DEFAULT_VERSION
from headwater.toolchain import machine
from headwater.toolchain.cache import Cache, fingerprint
from headwater.toolchain.commands import Progress, run_logged
from headwater.toolchain.kafka import KAFKA_VERSION
from headwater.toolchain.streams_library import ensure_streams_library
from tests.broker_version import BROKER_VERSION, has_streams_groups
from tests.oracle.kept_answers import KeptAnswers, kept_answers
from tests.quick_java import QUICK_JAVAC, QUICK_PROGRAM

_SOURCE = Path(__file__).parent / "java"
_POM = _SOURCE / "pom.xml"
_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
_MAIN = "headwater.oracle.Oracle"
VERSION = str(DEFAULT_VERSION)
"""The version that most tests compare with."""
OF_THE_BROKER = BROKER_VERSION if has_streams_groups() else KAFKA_VERSION
"""The version of programs that run on the broker of the tests: that of the broker, 4.1.1 with older ones.

Applications of 3.9 cannot start with the version of Jackson that the program uses.
"""
RECORDED = "4.1.1"
"""The version of recorded cases."""
Protocol = Literal["classic", "streams"]
PROTOCOLS: tuple[Protocol, ...] = ("classic", "streams")
_CHANGED_APIS = ("3.8", "4.0", "4.1")
"""The releases with other APIs: of read-only stores, of offset resets, of the streams protocol."""
_GROUP_COORDINATORS = ("4.1", "4.2", "4.3")
"""The releases whose group coordinator has another API than the previous release."""
_IN_MEMORY = Path("/dev/shm")  # noqa: S108 - stores on a disk are ten times slower
_OF_THE_MACHINE = re.compile(
    r"\w(?:Error|Timeout|Interrupted)\b|\w*(?:Timeout|Interrupt|IO|File\w*|RocksDB|ProcessorState|Lock)Exception"
)
"""Exceptions, also in messages, that depend on the machine and not on the request alone."""


class OracleDiedError(Exception):
    """The JVM ended or did not respond in time; the next request starts a new one."""


@attrs.frozen
class Run:
    """One start of an application, for the partition counts of its internal topics."""

    application_id: str
    partitions: Mapping[str, int]
    protocol: Protocol = "classic"


@attrs.frozen
class Refusal:
    """An exception of Kafka Streams; `stage` is `build`, `start` (KafkaStreams' constructor) or `assign`."""

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


def built_program(version: str = VERSION, cache: Cache | None = None) -> tuple[Path, Path]:
    """Return the `java` executable and the folder with classes and jars of a version of Kafka Streams.

    The first use downloads the jars with Maven, and compiles the classes.
    """
    cache = cache or Cache()
    sources = sorted(path for name in _sources(version) for path in (_SOURCE / "src" / name).rglob("*.java"))
    entry = f"oracle-{version}-{fingerprint(*(path.read_bytes() for path in sources), _POM.read_bytes())}"
    java = machine.require_programs((machine.JAVA,))[machine.JAVA]

    def compile_program(folder: Path, _: Progress) -> None:
        jars = _jars(version, cache)
        quick = (*QUICK_JAVAC, "-proc:none", "-XDsuppressNotes")
        where = ("-cp", f"{jars}/*", "-d", folder / "classes")
        subprocess.run(["javac", *quick, "--release", "17", *where, *sources], check=True)
        shutil.copytree(jars, folder / "jars", copy_function=os.link)

    return java, cache.ensure(entry, compile_program, Progress())


def _jars(version: str, cache: Cache) -> Path:
    """Return the folder with the jars of a version of Kafka Streams and of its dependencies."""
    programs = machine.require_programs((machine.JAVA, machine.MAVEN))

    def copy_jars(folder: Path, progress: Progress) -> None:
        with progress.step(f"test oracle {version}: downloading with Maven", expected="10 seconds") as show:
            run_logged(
                [
                    *(programs[machine.MAVEN], "--batch-mode", "--no-transfer-progress", "--file", _POM),
                    *(f"-Dkafka.version={version}", "-DincludeScope=runtime", f"-DoutputDirectory={folder}"),
                    *(("-Pcoordinator-common",) if _has(version, "4.1") else ()),
                    _COPY,
                ],
                log=cache.root / "logs" / f"oracle-{version}.log",
                environment=os.environ,
                show=show,
                failure=f"Maven could not download Kafka Streams {version}",
            )

    return cache.ensure(f"oracle-jars-{version}-{fingerprint(_POM.read_bytes())}", copy_jars, Progress())


def _sources(version: str) -> tuple[str, ...]:
    """Return the folders of `java/src` that contain the APIs of a version."""
    coordinator = next((since for since in reversed(_GROUP_COORDINATORS) if _has(version, since)), None)
    return (
        "main",
        *(f"{'since' if _has(version, since) else 'before'}-{since}" for since in _CHANGED_APIS),
        *((coordinator,) if coordinator is not None else ()),
    )


def _has(version: str, since: str) -> bool:
    return tuple(map(int, version.split("."))) >= tuple(map(int, since.split(".")))


class KafkaStreams:
    """Send requests to the JVM, which the first one starts; `close` ends it.

    With `keeps_answers`, a request that this machine has sent before gets the answer that it got then.
    """

    def __init__(
        self, version: str = VERSION, timeout_seconds: float = 600, *, keeps_answers: bool = False
    ) -> None:
        self.version = version
        self._timeout = timeout_seconds
        self._keeps_answers = keeps_answers
        self._process: subprocess.Popen[str] | None = None
        self._folder: TemporaryDirectory[str] | None = None
        self._answers: queue.Queue[str | None] = queue.Queue()

    @property
    def protocols(self) -> tuple[Protocol, ...]:
        """The group protocols of the version: `streams` exists since 4.1 (KIP-1071)."""
        return PROTOCOLS if _has(self.version, "4.1") else PROTOCOLS[:1]

    def ask(
        self, document: Mapping[str, Any], runs: Sequence[Run] = (), topics: Mapping[str, int] | None = None
    ) -> Answer:
        """Build a topology; `topics` are the topics of the cluster, which patterns match."""
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
        return answer_of(json.loads(self._exchange(json.dumps(request))))

    def stores(
        self, document: Mapping[str, Any], topics: Mapping[str, int] | None = None
    ) -> Mapping[str, Mapping[str, Any]] | Refusal:
        """Return the layers and settings of each store by name, as they are built for a task."""
        request = {"document": document, "topics": dict(topics or {}), "stores": True}
        response = json.loads(self._exchange(json.dumps(request)))
        return _refusal(response) or response["stores"]

    def exported(self, document: Mapping[str, Any]) -> str | Refusal:
        """Return the document that the library for applications writes of the built topology."""
        response = json.loads(self._exchange(json.dumps({"document": document, "export": True})))
        return _refusal(response) or response["exported"]

    def call_library(self, method: str, document: Mapping[str, Any], file: Path) -> str | None:
        """Call `write` or `verify` of the library; return the message of what it throws, None if nothing."""
        response = json.loads(self._send(json.dumps({"document": document, method: str(file)})))
        assert "error" not in response, response
        thrown: str | None = response.get("thrown")
        return thrown

    def run(
        self, document: Mapping[str, Any], data: Sequence[Mapping[str, Any]]
    ) -> list[Mapping[str, Any]] | Refusal:
        """Process records (topic, key, value, timestamp) with `TopologyTestDriver`.

        Return the records of every topic as (after, topic, key, value, timestamp), bytes in base 64.
        """
        return self._records({"document": document, "data": list(data)})

    def run_batches(
        self, document: Mapping[str, Any], batches: Sequence[Sequence[Mapping[str, Any]]], cache_bytes: int
    ) -> list[Mapping[str, Any]] | Refusal:
        """Process batches of records with record caches of `cache_bytes`; each batch is committed at once.

        The caches are empty when a batch begins. Return records as `run` does; `after` counts batches.
        """
        return self._records(
            {"document": document, "batches": list(map(list, batches)), "cacheBytes": cache_bytes}
        )

    def run_rounds(
        self,
        document: Mapping[str, Any],
        batches: Sequence[Sequence[Mapping[str, Any]]],
        groups: Sequence[Sequence[str]],
        cache_bytes: int,
    ) -> list[Mapping[str, Any]] | Refusal:
        """Process batches as `run_batches` does, but each sub-topology with a batch and a commit of its own.

        `groups` are the source topics of each sub-topology, in the order in which they process. What one of
        them writes is in the next batch of the ones that read it.
        """
        return self._records(
            {
                "document": document,
                "batches": list(map(list, batches)),
                "groups": list(map(list, groups)),
                "cacheBytes": cache_bytes,
            }
        )

    def _records(self, request: Mapping[str, Any]) -> list[Mapping[str, Any]] | Refusal:
        response = json.loads(self._exchange(json.dumps(request)))
        refusal = _refusal(response)
        if refusal is not None:
            return refusal
        records: list[Mapping[str, Any]] = response["records"]
        return records

    def topic_configs(
        self, configs: Sequence[Mapping[str, str]] = ()
    ) -> tuple[list[Mapping[str, str | None]], list[str | None]]:
        """Return Kafka's table of topic configs, and for each of `configs` why a broker refuses it."""
        response = json.loads(self._exchange(json.dumps({"topicConfigs": list(configs)})))
        return response["table"], response["refusals"]

    def config_keys(self) -> frozenset[str]:
        """Return the keys of `StreamsConfig`, internal ones included."""
        return frozenset(json.loads(self._exchange(json.dumps({"configKeys": True})))["keys"])

    def config_tables(self) -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
        """Return Kafka's tables of configs: `streams`, `consumer`, `producer` and `admin` → config → row."""
        tables: Mapping[str, Mapping[str, Mapping[str, Any]]] = json.loads(
            self._exchange(json.dumps({"configTables": True}))
        )
        return tables

    def config_refusals(self, configs: Sequence[Mapping[str, str]]) -> list[tuple[str, str] | None]:
        """Return for each of `configs` class and message of the exception at the start of an application."""
        response = json.loads(self._exchange(json.dumps({"configs": list(configs)})))
        return [None if refusal is None else tuple(refusal) for refusal in response["refusals"]]

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
        """Return the answer to a request without side effects."""
        if self._answers_kept is not None and (known := self._answers_kept.find(line)) is not None:
            return known
        answer = self._send(line)
        if self._answers_kept is not None and not may_differ(json.loads(answer)):
            self._answers_kept.keep(line, answer)
        return answer

    @cached_property
    def _answers_kept(self) -> KeptAnswers | None:
        if not self._keeps_answers:
            return None
        java, folder = built_program(self.version)
        return kept_answers(java, folder, ensure_streams_library().parent)

    def _send(self, line: str) -> str:
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
        java, folder = built_program(self.version)
        class_path = os.pathsep.join(
            (str(folder / "classes"), str(folder / "jars" / "*"), str(ensure_streams_library()))
        )
        self._folder = TemporaryDirectory(
            prefix="headwater-oracle-", dir=_IN_MEMORY if _IN_MEMORY.is_dir() else None
        )
        flags = ["-Xmx256m", *QUICK_PROGRAM]
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


def may_differ(response: Mapping[str, Any]) -> bool:
    """Return whether the JVM may answer otherwise next time: memory, time or a disk was the reason."""
    thrown = (each.get("error") for each in (response, *response.get("runs", ())))
    return any(_OF_THE_MACHINE.search(f"{each['class']}: {each['message']}") for each in thrown if each)


def answer_of(response: Mapping[str, Any]) -> Answer:
    """Return the typed answer of the JVM."""
    return Answer(
        response.get("describe"),
        response.get("insides"),
        tuple(_counts(run) for run in response["runs"]),
        _refusal(response),
    )


def _counts(response: Mapping[str, Any]) -> Counts:
    counts, tasks = response.get("counts", {}), response.get("tasks", {})
    return Counts(counts, tasks, response.get("status"), response.get("detail"), _refusal(response))


def _refusal(response: Mapping[str, Any]) -> Refusal | None:
    error = response.get("error")
    return Refusal(error["class"], error["message"] or "", error["stage"]) if error else None
