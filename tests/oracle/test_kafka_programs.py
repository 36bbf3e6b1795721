"""Kafka's own examples and system tests: an exported document has exactly the topics of the real library."""

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest

from headwater.model.versions import SUPPORTED
from headwater.toolchain import machine
from headwater.toolchain.cache import Cache
from headwater.toolchain.commands import Progress, run_logged
from headwater.toolchain.streams_library import ensure_streams_library
from tests.oracle.exported_documents import export_differences, loaded
from tests.oracle.kafka_streams import Run, answer_of, built_program, may_differ
from tests.oracle.kept_answers import kept_answers
from tests.quick_java import QUICK_PROGRAM

_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"
_MAIN = "headwater.oracle.ExportedPrograms"
_EXAMPLES = "org.apache.kafka.streams.examples"
_TESTS = "org.apache.kafka.streams.tests"
_SECONDS = 120
_CONFIGS = ",".join(
    f"{key}=1000"
    for key in (
        *("producer.retries", "producer.max.block.ms", "producer.request.timeout.ms"),
        "consumer.max.poll.interval.ms",
    )
)
_PROPERTIES = {
    "bootstrap.servers": "localhost:1",
    "application.id": "SystemTest",
    "processing.guarantee": "at_least_once",
    "input.topic": "inputTopic",
    "aggregation.topic": "aggregationTopic",
    "reduce.topic": "reduceTopic",
    "join.topic": "joinTopic",
    "add.operations": "true",
    "num.threads": "1",
    "group.instance.id": "a",
}
_OPTIMIZED = {"topology.optimization": "all"}
WITH_EXAMPLES = "4.3.1"
"""The version of `kafka-streams-examples` on Maven Central."""


@attrs.frozen
class Program:
    """A class with its arguments; PROPERTIES stands for a file with `properties`."""

    main: str
    arguments: tuple[str, ...] = ()
    properties: Mapping[str, str] = attrs.field(factory=lambda: _PROPERTIES)


EXAMPLES = {
    name.rpartition(".")[2]: Program(f"{_EXAMPLES}.{name}")
    for name in (
        *("pipe.PipeDemo", "temperature.TemperatureDemo"),
        *("pageview.PageViewUntypedDemo", "pageview.PageViewTypedDemo"),
        *("wordcount.WordCountDemo", "wordcount.WordCountProcessorDemo"),
        "wordcount.WordCountTransformerDemo",
    )
}
SYSTEM_TESTS = {
    "optimized": Program(f"{_TESTS}.StreamsOptimizedTest", ("PROPERTIES",), {**_PROPERTIES, **_OPTIMIZED}),
    "not optimized": Program(f"{_TESTS}.StreamsOptimizedTest", ("PROPERTIES",)),
    "named repartition": Program(f"{_TESTS}.StreamsNamedRepartitionTest", ("PROPERTIES",)),
    "upgrade": Program(f"{_TESTS}.StreamsUpgradeTest", ("PROPERTIES",)),
    "static member": Program(f"{_TESTS}.StaticMemberTestClient", ("PROPERTIES",)),
    "broker compatibility": Program(f"{_TESTS}.BrokerCompatibilityTest", ("PROPERTIES", "at_least_once")),
    "broker down": Program(f"{_TESTS}.StreamsBrokerDownResilienceTest", ("PROPERTIES", _CONFIGS)),
    "standby": Program(
        f"{_TESTS}.StreamsStandByReplicaTest",
        ("PROPERTIES", f"{_CONFIGS},sourceTopic=source,sinkTopic1=sink1,sinkTopic2=sink2"),
    ),
    "smoke": Program(f"{_TESTS}.StreamsSmokeTest", ("PROPERTIES", "process")),
    "relational": Program(
        f"{_TESTS}.RelationalSmokeTest",
        ("application", "localhost:1", "app", "at_least_once", "classic", "state"),
    ),
}


def program_jars(version: str, *, with_examples: bool) -> Path:
    """Return the folder with the jars of the programs, from Maven Central on first use."""
    artifacts = [f"kafka-streams:{version}:jar:test", f"kafka-clients:{version}:jar:test"]
    artifacts += [f"kafka-streams-examples:{version}"] if with_examples else []

    def copy(folder: Path, progress: Progress) -> None:
        maven = machine.require_programs([machine.MAVEN])[machine.MAVEN]
        with progress.step(f"Kafka's programs {version}: downloading with Maven") as show:
            for artifact in artifacts:
                run_logged(
                    [
                        *(maven, "--batch-mode", "--no-transfer-progress", _COPY),
                        *(f"-Dartifact=org.apache.kafka:{artifact}", f"-DoutputDirectory={folder}"),
                    ],
                    log=Cache().root / "logs" / "kafka-programs.log",
                    environment=os.environ,
                    show=show,
                    failure="Maven could not download Kafka's programs",
                )

    return Cache().ensure(f"kafka-programs-{version}", copy, Progress())


def exported_program(program: Program, version: str, folder: Path) -> Mapping[str, Any]:
    """Run a program in `folder` until it constructs KafkaStreams; return the answer of the Java program.

    An answer that was kept is returned instead.
    """
    java, built = built_program(version)
    jars = program_jars(version, with_examples=version == WITH_EXAMPLES)
    kept = kept_answers(java, built, jars, ensure_streams_library().parent)
    request = json.dumps([_MAIN, program.main, program.arguments, dict(program.properties)])
    known = None if kept is None else kept.find(request)
    command: Sequence[str | Path] = [java, *QUICK_PROGRAM, "-cp", _class_path(built, jars), _MAIN]
    answer = known or _answer(program, command, folder)
    content: Mapping[str, Any] = json.loads(answer)
    if kept is not None and known is None and not may_differ(content):
        kept.keep(request, answer)
    return content


def _class_path(built: Path, jars: Path) -> str:
    class_path = [
        *(str(built / "classes"), str(ensure_streams_library())),
        *map(str, sorted((built / "jars").glob("*.jar"))),
        *map(str, sorted(jars.glob("*.jar"))),
    ]
    return os.pathsep.join(class_path)


def _answer(program: Program, command: Sequence[str | Path], folder: Path) -> str:
    properties, answer = folder / "program.properties", folder / "answer.json"
    properties.write_text("".join(f"{key}={value}\n" for key, value in program.properties.items()))
    arguments = [str(properties) if each == "PROPERTIES" else each for each in program.arguments]
    done = subprocess.run(
        [*command, answer, program.main, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    assert answer.exists(), done.stdout + done.stderr
    return answer.read_text(encoding="utf-8")


def runs_of(content: Mapping[str, Any], application_id: str) -> tuple[Run, ...]:
    return tuple(Run(application_id, run["partitions"], run["protocol"]) for run in content["runs"])


pytestmark = [pytest.mark.oracle, pytest.mark.timeout(600)]
_OLDEST, _NEWEST = str(SUPPORTED[0]), "4.3.1"
"""Maven Central has no jar with the tests of `kafka-streams` 4.4.0."""
_WITH_OLDEST = ("optimized", "smoke", "relational")
"""Each starts a JVM; these have all kinds of internal topics. `make fuzz` runs the others, too."""
_STATELESS = {"PipeDemo", "upgrade", "static member", "broker down", "standby"}


def _compare(name: str, program: Program, version: str, folder: Path) -> None:
    content = exported_program(program, version, folder)
    document = loaded(content["exported"])
    assert not isinstance(document, str), document
    runs = runs_of(content, document.application.id)
    assert runs
    found = list(export_differences(content["exported"], answer_of(content), runs))
    assert not found, found[0]
    has_topics = any(run.get("counts") for run in content["runs"])
    assert has_topics or name in _STATELESS


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples(tmp_path: Path, name: str) -> None:
    _compare(name, EXAMPLES[name], WITH_EXAMPLES, tmp_path)


@pytest.mark.parametrize(
    ("name", "version"),
    [
        *((name, _NEWEST) for name in SYSTEM_TESTS),
        *(
            pytest.param(name, _OLDEST, marks=() if name in _WITH_OLDEST else pytest.mark.soak)
            for name in SYSTEM_TESTS
        ),
    ],
)
def test_system_tests(tmp_path: Path, name: str, version: str) -> None:
    _compare(name, SYSTEM_TESTS[name], version, tmp_path)
