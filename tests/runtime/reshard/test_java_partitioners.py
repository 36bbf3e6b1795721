"""Partitioners in Java: a JVM with the code of the application returns what Kafka Streams would."""

import json
import os
import signal
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import attrs
import pytest
from click.testing import CliRunner

from headwater.cli.console import ExitCode
from headwater.cli.main import main
from headwater.model.problems import ProblemsError
from headwater.model.topology import TopologyDocument
from headwater.spec import load_text
from headwater.toolchain.broker.local import LocalBroker
from headwater_spark.commands import java_partitioners as module
from headwater_spark.commands.java_code import JavaCode
from headwater_spark.commands.java_partitioners import java_partitioners
from headwater_spark.engine.partitioners.hashing import (
    PartitionerEndedError,
    PartitionerError,
    default_partition,
)
from tests.runtime.reshard.compared_applications import Compared, Records, all_stores, batches
from tests.runtime.reshard.java_classes import compiled_code
from tests.runtime.reshard.stopped_application import StoppedApplication
from tests.runtime.spark.kafka_topics import Topics

pytestmark = [pytest.mark.oracle, pytest.mark.timeout(600)]
_KEYS = [b"%03d %s" % (number, b"x" * (number % 7)) for number in range(500)]
_COUNTS = {"orders": 2}
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
    with pytest.raises(ProblemsError) as caught, java_partitioners({"orders": name}, code, _document()):
        pass
    (problem,) = caught.value.problems
    assert reason in str(problem.found)
    assert problem.fix.startswith("Correct the class, `--classpath`, `--key-serde` or `--timeout`, and run")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("ReadsValue", "NullPointerException"),
        ("Several", "returned 2 partitions for a key"),
        ("Outside", "returned 5 for a key and 5 partitions"),
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
        pytest.raises(
            (ProblemsError, PartitionerEndedError), match="has not returned within 3 s, and Java was"
        ),
        java_partitioners({"orders": "com.acme.Broken$Hangs"}, impatient, _document()) as found,
    ):
        found["orders"].of_keys(_KEYS, 5)


def test_a_jvm_that_is_killed_is_reported_by_each_request(code: JavaCode) -> None:
    with java_partitioners({"orders": "com.acme.RegionPartitioner"}, code, _document()) as found:
        program = found["orders"].of_many.func.__self__  # type: ignore[union-attr]
        os.kill(program._process.pid, signal.SIGKILL)
        for _ in range(2):
            with pytest.raises(PartitionerEndedError, match="Java was ended by signal SIGKILL"):
                found["orders"].of_keys(_KEYS, 5)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--partitioner", "orders=com.acme.Region"], "A class of Java requires --jar"),
        (["--jar", "."], "--jar requires --partitioner TOPIC=CLASS"),
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
    kafka: LocalBroker, unique: Callable[[str], str], code: JavaCode, tmp_path: Path
) -> None:
    app = StoppedApplication(kafka.bootstrap_servers, Topics(kafka.bootstrap_servers), unique("stopped"))
    app.create()
    before, waiting = {store: app.entries(store) for store in ("kept", "totals")}, app.unprocessed()
    file = tmp_path / "app.yaml"
    file.write_text(app.text())
    command = [
        *("reshard", str(file), "--partitions", f"{app.source}=5", "--jar", str(code.jar)),
        *("--classpath", code.class_path[0], "--bootstrap-server", app.servers, "--partitioner"),
    ]
    internal = app.internal["by-value-repartition"]
    for name, text in (("Outside", "returned 2 for a key and 2 partitions"), ("ReadsValue", "NullPointer")):
        done = CliRunner().invoke(main, [*command, f"{app.source}=com.acme.Broken${name}"])
        assert (done.exit_code, text in done.output) == (ExitCode.PROBLEMS, True), done.output
        assert app.topics.partitions(internal) == 2
    default = "com.acme.Broken$LeavesItToKafka"
    others = ["--partitioner", f"{internal}={default}"]
    done = CliRunner().invoke(main, [*command, f"{app.source}={default}", *others])
    assert done.exit_code == ExitCode.DONE, done.output
    app.check(before, waiting)


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
