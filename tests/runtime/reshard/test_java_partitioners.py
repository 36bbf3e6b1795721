"""Partitioners in Java: a JVM with the code of the application returns what Kafka Streams would."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from zlib import crc32

import attrs
import click
import pytest
from click.testing import CliRunner

from headwater.cli.console import ExitCode
from headwater.cli.main import main
from headwater.model.topology import TopologyDocument
from headwater.spec import load_text
from headwater.toolchain.broker.local import LocalBroker
from headwater.toolchain.broker.readiness import until
from headwater_spark.commands import java_partitioners as module
from headwater_spark.commands.console import JavaCode
from headwater_spark.commands.java_partitioners import java_partitioners
from headwater_spark.driver.reshard.execution import ReshardExecution
from headwater_spark.engine.partitioners.hashing import (
    PartitionerEndedError,
    PartitionerError,
    UserPartitioner,
    default_partition,
)
from tests.runtime.driver.memory_move import KilledError
from tests.runtime.reshard.compared_applications import Compared, Records, all_stores, batches
from tests.runtime.reshard.java_classes import compiled_code
from tests.runtime.reshard.stopped_application import StoppedApplication
from tests.runtime.spark.kafka_topics import Topics

pytestmark = [pytest.mark.oracle, pytest.mark.timeout(600)]
_KEYS = [b"%03d %s" % (number, b"x" * (number % 7)) for number in range(500)]
_COUNTS = {"orders": 2}
_ROOT = Path(__file__).parents[3]
_NEW_COUNTS = {"orders": 5}


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> JavaCode:
    return compiled_code(tmp_path_factory.mktemp("classes"))


def _document(serdes: dict[str, str] | None = None, config: dict[str, str] | None = None) -> TopologyDocument:
    steps = [
        {"stream": {"topic": "orders", **({"serdes": serdes} if serdes else {})}},
        {"groupByKey": {}},
        {"count": {"materialized": "totals"}},
    ]
    text = json.dumps({"application": {"id": "app", "config": config or {}}, "topology": steps})
    (document,) = load_text(text, "app.yaml").documents
    return document


def _region(key: bytes) -> int:
    return int(key[:3])


def test_a_partitioner_of_kafka_streams_places_many_keys(
    code: JavaCode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MOST_KEYS", 7)  # several requests
    classes = {"orders": "com.acme.RegionPartitioner", "payments": "com.acme.RegionPartitioner"}
    with java_partitioners(
        classes, attrs.evolve(code, key_serdes={"payments": "string"}), _document()
    ) as found:
        orders, payments = found["orders"], found["payments"]
        assert orders == payments
        assert orders.of_keys(_KEYS, 2, 5) == [[_region(key) % count for key in _KEYS] for count in (2, 5)]
        assert orders(b"007", 4) == 3
        with pytest.raises(PartitionerError, match="NumberFormatException"):
            orders.of_keys([b"007", b"no number"], 2)
        assert payments.of_keys([b"008"], 3) == [[2]]
        assert orders.of_keys([], 2, 5) == [[], []]


def test_a_partitioner_of_producers_gets_the_properties(code: JavaCode, tmp_path: Path) -> None:
    properties = tmp_path / "producer.properties"
    properties.write_text("region.length = 3\n")
    configured = attrs.evolve(code, properties=properties)
    with java_partitioners({"orders": "com.acme.ProducerPartitioner"}, configured, _document()) as found:
        assert found["orders"].of_keys(_KEYS, 5) == [[_region(key) % 5 for key in _KEYS]]


@pytest.mark.parametrize(
    ("document", "serde"),
    [
        (_document({"key": "bytes"}), None),
        (
            _document(
                config={"default.key.serde": "org.apache.kafka.common.serialization.Serdes$BytesSerde"}
            ),
            None,
        ),
        (_document({"key": "json"}), "string"),
        (_document({"key": "json"}), "org.apache.kafka.common.serialization.StringDeserializer"),
    ],
)
def test_a_partitioner_may_leave_keys_to_the_default_partitioner(
    code: JavaCode, document: TopologyDocument, serde: str | None
) -> None:
    chosen = attrs.evolve(code, key_serdes={} if serde is None else {"orders": serde})
    with java_partitioners({"orders": "com.acme.Broken$LeavesItToKafka"}, chosen, document) as found:
        assert found["orders"].of_keys(_KEYS, 5) == [[default_partition(key, 5) for key in _KEYS]]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("com.acme.Missing", "class com.acme.Missing is not on the class path"),
        (
            "com.acme.Broken$OfAnotherType",
            "is neither a StreamPartitioner of Kafka Streams nor a Partitioner",
        ),
        ("com.acme.Broken$NeedsArguments", "has no constructor without parameters"),
        ("com.acme.ProducerPartitioner", "NumberFormatException"),  # not configured
    ],
)
def test_a_class_that_is_no_partitioner_is_refused(code: JavaCode, name: str, reason: str) -> None:
    """Also by the second request: it is not taken for keys that do not fit."""
    with java_partitioners({"orders": name}, code, _document()) as found:
        for _ in range(2):
            with pytest.raises(PartitionerEndedError, match=reason):
                found["orders"].of_keys(_KEYS, 5)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ("", "static.partitioner.class must be initial-hash, linear-hash, key-prefix or range"),
        (
            "static.partitioner.class=initial-hash\nstatic.partitioner.initial.partitions=hidden\n",
            "static.partitioner.initial.partitions must be a whole number of at least 1",
        ),
        (
            "static.partitioner.class=range\nstatic.partitioner.bounds=hidden,b\n",
            "static.partitioner.bounds must be ascending texts, separated by commas",
        ),
    ],
)
def test_settings_of_a_static_partitioner_are_named_without_their_values(
    code: JavaCode, tmp_path: Path, settings: str, reason: str
) -> None:
    properties = tmp_path / "producer.properties"
    properties.write_text(settings)
    configured = attrs.evolve(code, properties=properties)
    name = "io.headwater.streams.partitioning.StaticPartitioner"
    with (
        java_partitioners({"orders": name}, configured, _document()) as found,
        pytest.raises(PartitionerEndedError, match=re.escape(reason)) as raised,
    ):
        found["orders"].of_keys(_KEYS, 5)
    assert "hidden" not in str(raised.value)


def test_java_that_cannot_be_started_is_reported(code: JavaCode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "JAVA", SimpleNamespace(locate=lambda: Path("/absent/java")))
    with (
        java_partitioners({"orders": "com.acme.RegionPartitioner"}, code, _document()) as found,
        pytest.raises(PartitionerEndedError, match=r"Java cannot be started: .*/absent/java"),
    ):
        found["orders"].of_keys(_KEYS, 5)


def test_java_and_native_code_may_print(code: JavaCode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Xlog:class+load=info:stdout")
    with java_partitioners({"orders": "com.acme.Broken$PrintsToDescriptor"}, code, _document()) as found:
        assert found["orders"].of_keys(_KEYS, 5) == [[0] * len(_KEYS)]


def test_a_serde_may_create_its_deserializer_when_it_is_configured(code: JavaCode, tmp_path: Path) -> None:
    properties = tmp_path / "app.properties"
    properties.write_text("charset = UTF-16BE\n")
    serdes = {"orders": "com.acme.ConfiguredSerde"}
    chosen = attrs.evolve(code, properties=properties, key_serdes=serdes)
    with java_partitioners({"orders": "com.acme.RegionPartitioner"}, chosen, _document()) as found:
        assert found["orders"].of_keys(["007".encode("utf-16be")], 5) == [[2]]


def test_a_class_of_the_config_is_the_serde_of_the_keys(code: JavaCode) -> None:
    """In Python, the keys of `ByteArraySerde` and of `BytesSerde` are the same, in Java not."""
    serde = "org.apache.kafka.common.serialization.Serdes$BytesSerde"
    document = _document(config={"default.key.serde": serde})
    with java_partitioners({"orders": "com.acme.BytesPartitioner"}, code, document) as found:
        assert found["orders"].serde == serde
        assert found["orders"].of_keys([b"\x07", b"\x09"], 5) == [[2, 4]]


def test_a_document_from_code_does_not_show_the_serde(code: JavaCode) -> None:
    lines = (
        "Topologies:",
        "   Sub-topology: 0",
        "    Source: source (topics: [orders])",
        "      --> none",
        "",
        "",
    )
    text = json.dumps({"application": {"id": "app"}, "describe": {"text": "\n".join(lines)}})
    (document,) = load_text(text, "app.yaml").documents
    with (
        pytest.raises(click.UsageError, match="Add --key-serde orders=SERDE"),
        java_partitioners({"orders": "com.acme.RegionPartitioner"}, code, document),
    ):
        pass


def test_the_serde_belongs_to_the_checksum_of_a_partitioner() -> None:
    function = UserPartitioner("app.parts:region", default_partition)
    assert function.checksum == crc32(b"app.parts:region")
    texts, numbers = (attrs.evolve(function, serde=serde) for serde in ("string", "long"))
    assert len({each.checksum for each in (function, texts, numbers)}) == 3
    assert texts == numbers


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("ReadsValue", "NullPointerException"),
        ("Several", "returned 2 partitions for a key"),
        ("Outside", "returned 5 for a key and 5 partitions"),
        (
            "FailsWithSecret",
            r"java.lang.AssertionError at com.acme.Broken\$FailsWithSecret.partitions\(Broken.java:\d+\)$",
        ),
        ("Exits", "Java ended with exit code 3: no license"),
    ],
)
def test_a_partitioner_that_fails_is_reported(code: JavaCode, name: str, reason: str) -> None:
    classes = {"orders": f"com.acme.Broken${name}"}
    with (
        java_partitioners(classes, code, _document()) as found,
        pytest.raises(PartitionerError, match=reason),
    ):
        found["orders"].of_keys(_KEYS, 5)


def test_a_partitioner_that_does_not_return_is_killed(code: JavaCode) -> None:
    """Java may also be killed before it has started, with the same message."""
    impatient = attrs.evolve(code, timeout_seconds=3)
    with (
        pytest.raises(PartitionerEndedError, match="has not returned within 3 s, and Java was"),
        java_partitioners({"orders": "com.acme.Broken$Hangs"}, impatient, _document()) as found,
    ):
        found["orders"].of_keys(_KEYS, 5)


def test_a_jvm_that_is_killed_is_reported_by_each_request(code: JavaCode) -> None:
    with java_partitioners({"orders": "com.acme.RegionPartitioner"}, code, _document()) as found:
        program = found["orders"].of_many.func.__self__  # type: ignore[union-attr]
        assert found["orders"].of_keys([b"007"], 5) == [[2]]
        os.kill(program._started.process.pid, signal.SIGKILL)
        for _ in range(2):
            with pytest.raises(PartitionerEndedError, match="Java was ended by signal SIGKILL"):
                found["orders"].of_keys(_KEYS, 5)


_HANGING = """
import sys, time
from pathlib import Path
from threading import Thread
from headwater_spark.commands.console import JavaCode
from headwater_spark.commands.java_partitioners import java_partitioners
from tests.runtime.reshard.test_java_partitioners import _document
code = JavaCode(jar=Path(sys.argv[1]), class_path=[sys.argv[2]], timeout_seconds=600)
with java_partitioners({"orders": "com.acme.Broken$Hangs"}, code, _document()) as found:
    Thread(target=lambda: found["orders"].of_keys([b"007"], 5), daemon=True).start()
    program = found["orders"].of_many.func.__self__
    while "waiting for a service" not in program._lines:
        time.sleep(0.05)
    print(program._started.process.pid, flush=True)
    time.sleep(600)
"""


def test_no_jvm_remains_if_the_command_is_killed_while_a_partitioner_hangs(code: JavaCode) -> None:
    command = [sys.executable, "-c", _HANGING, str(code.jar), code.class_path[0]]
    with subprocess.Popen(command, cwd=_ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            java = int(process.stdout.readline())
            assert _runs(java)
        finally:
            process.kill()
    assert until(lambda: not _runs(java), 60)


def _runs(pid: int) -> bool:
    """Return whether a process runs; an ended one may be listed until its parent has noticed."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--partitioner", "orders=com.acme.Region"], "A class of Java requires --jar"),
        (["--jar", "."], "--jar requires --partitioner TOPIC=CLASS"),
        (["--timeout", "60"], "--timeout requires --partitioner TOPIC=CLASS"),
        (
            ["--unchecked-partitioner", "orders"],
            "--unchecked-partitioner orders requires --partitioner orders=PARTITIONER",
        ),
        (["--key-serde", "orders=string"], "--key-serde requires --partitioner TOPIC=CLASS"),
        (
            ["--jar", ".", "--partitioner", "orders=com.acme.Region", "--key-serde", "other=string"],
            "--key-serde other=… requires --partitioner other=CLASS",
        ),
        (
            ["--jar", ".", "--partitioner", "orders=com.acme.Region"],
            "does not name a serde of Kafka for the keys of orders. Add --key-serde orders=SERDE",
        ),
    ],
)
def test_options_that_do_not_fit_are_refused(words: list[str], text: str, tmp_path: Path) -> None:
    file = tmp_path / "app.yaml"
    steps = [{"stream": {"topic": "orders", "serdes": {"key": "json"}}}, {"to": {"topic": "out"}}]
    file.write_text(json.dumps({"application": {"id": "app"}, "topology": steps}))
    done = CliRunner().invoke(main, ["reshard", str(file), *words, "--bootstrap-server", "localhost:1"])
    assert done.exit_code == ExitCode.USAGE
    assert text in " ".join(done.output.split())


@pytest.mark.broker
def test_the_command_moves_entries_as_the_class_places_them(
    kafka: LocalBroker,
    unique: Callable[[str], str],
    code: JavaCode,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    servers, id_ = kafka.bootstrap_servers, unique("stopped")
    app = StoppedApplication(servers, Topics(servers), id_, lambda key, count: int(key[4:]) % count)
    app.create()
    before, waiting = {store: app.entries(store) for store in ("kept", "totals")}, app.unprocessed()
    file, properties = tmp_path / "app.yaml", tmp_path / "app.properties"
    file.write_text(app.text())
    properties.write_text("password = quail\n")
    internal, jars = app.internal["by-value-repartition"], code.class_path[0]

    def run(name: str, *, folder: Path | None = code.jar) -> tuple[int, str]:
        options = [f"--partitioner={topic}=com.acme.{name}" for topic in (app.source, internal)]
        command = ["reshard", str(file), "--partitions", f"{app.source}=5", *options, "--jar", str(folder)]
        used = ["--classpath", jars, "--properties", str(properties), "--bootstrap-server", servers]
        done = CliRunner().invoke(main, [*command, *used])
        return done.exit_code, " ".join(done.output.split())

    for name, text in (
        ("Broken$NamesConfigs", "ConfigException"),
        ("Broken$LeavesItToKafka", "belongs to partition"),
        ("Missing", "class com.acme.Missing is not on the class path"),
    ):
        exit_code, output = run(name)
        assert (exit_code, text in output, "quail" in output) == (ExitCode.PROBLEMS, True, False), output
        assert "Nothing was changed" in output
        assert app.topics.partitions(internal) == 2

    with monkeypatch.context() as patched:
        patched.setattr(ReshardExecution, "_move_entries", _interrupt)
        with pytest.raises(KilledError):
            run("RegionPartitioner")
    assert 5 in {app.topics.partitions(topic) for topic in app.internal.values()}
    exit_code, output = run("RegionPartitioner", folder=tmp_path)
    assert (exit_code, "is not on the class path" in output) == (ExitCode.PROBLEMS, True), output
    assert "Nothing was changed" not in output
    assert "The application must not start before all have" in output

    exit_code, output = run("RegionPartitioner")
    assert exit_code == ExitCode.DONE, output
    app.check(before, waiting)


def _interrupt(*_: object) -> None:
    raise KilledError


@attrs.frozen
class _ComparedRegions(Compared):
    """Applications whose producers place records by region."""

    def put(self, name: str, records: Records) -> None:
        for topic, found in records.items():
            full = f"{name}.{topic}"
            count = self.topics.partitions(full)
            self.topics.send(
                (full, int(key[1:]) % count, key, value, timestamp, ()) for key, value, timestamp in found
            )


@pytest.mark.soak
@pytest.mark.broker
def test_entries_are_where_the_class_places_them_as_if_they_had_the_new_count_from_the_start(
    kafka: LocalBroker, unique: Callable[[str], str], code: JavaCode, tmp_path: Path
) -> None:
    servers, steps = kafka.bootstrap_servers, all_stores()
    steps = [steps[0], *steps[2:10]]  # a table, windows and sessions of one topic
    compared = _ComparedRegions(servers, Topics(servers), unique, steps, _COUNTS, _NEW_COUNTS)
    first, second = islice(batches(_COUNTS, keys=60, size=200, seed=8), 2)
    compared.process(first)
    topic, file = f"{compared.moved}.orders", tmp_path / "app.yaml"
    file.write_text(json.dumps(compared.json(compared.moved)))
    command = [
        *("reshard", str(file), "--partitions", f"{topic}=5", "--jar", str(code.jar)),
        *("--classpath", code.class_path[0], "--partitioner", f"{topic}=com.acme.RegionPartitioner"),
        *("--key-serde", f"{topic}=string", "--bootstrap-server", servers),
    ]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == ExitCode.DONE, done.output
    entries = compared.entries(compared.moved)
    assert {store for store, _ in entries} == {"totals", "minutes", "visits"}
    assert entries == compared.entries(compared.fresh)

    written = {name: compared.written(name) for name in compared.names}
    compared.process(second)
    moved, fresh = (compared.outputs(name, written[name]) for name in compared.names)
    assert moved == fresh
    assert compared.entries(compared.moved) == compared.entries(compared.fresh)
