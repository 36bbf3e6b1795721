"""`headwater reshard` and `headwater state copy` on a real broker: killed at each step, and as commands."""

import json
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import attrs
import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer, KafkaException, Producer

from headwater.cli.main import main
from headwater.kafka import Connection
from headwater.model.compiled import InternalTopic
from headwater.model.nodes import TopicKind
from headwater.model.problems import ProblemCode, ProblemsError
from headwater.spec import load_text
from headwater.toolchain import KafkaDistribution
from headwater.toolchain.broker import launch
from headwater.toolchain.broker.local import LocalBroker
from headwater.toolchain.broker.readiness import until
from headwater_spark.driver.processor_move.entry_copy import report_no_progress
from headwater_spark.driver.processor_move.kafka_cluster import KafkaMoveCluster
from headwater_spark.driver.reshard.copy_plan import TopicCopy
from headwater_spark.driver.reshard.request_failures import kafka_problem
from headwater_spark.driver.reshard.start import ReshardOptions, reshard_application
from headwater_spark.driver.reshard.state_copy import create_topics
from headwater_spark.engine.partitioners.hashing import default_partition
from tests.runtime.reshard.compared_applications import Compared, versions_and_buffer
from tests.runtime.reshard.memory_reshard import ReshardMemoryCluster
from tests.runtime.reshard.stopped_application import KEYS, StoppedApplication
from tests.runtime.spark.kafka_topics import Topics

pytestmark = [pytest.mark.broker, pytest.mark.timeout(600)]


@pytest.fixture
def app(kafka: LocalBroker, unique: Callable[[str], str]) -> StoppedApplication:
    app = StoppedApplication(kafka.bootstrap_servers, Topics(kafka.bootstrap_servers), unique("stopped"))
    app.create()
    return app


def test_new_topics_that_the_broker_refuses_are_named(
    kafka: LocalBroker, unique: Callable[[str], str]
) -> None:
    """Other new topics are created: the next run finds them empty, and uses them."""
    connection = Connection(bootstrap_servers=(kafka.bootstrap_servers,))
    kept, refused = (
        InternalTopic(unique(name), TopicKind.CHANGELOG, 1, config, 0, name)
        for name, config in (("kept", {}), ("refused", {"no.such.setting": "1"}))
    )
    copies = [TopicCopy("old", each, 1) for each in (kept, refused)]
    with pytest.raises(ProblemsError) as raised:
        create_topics(connection, copies, ReshardMemoryCluster({}))
    (problem,) = raised.value.problems
    assert problem.found is not None
    assert refused.name in problem.found
    assert kept.name not in problem.found
    assert problem.why == "No record was copied. Other new topics may have been created: they are empty."
    assert until(lambda: kept.name in Topics(kafka.bootstrap_servers).names(), 60)


def test_a_reshard_that_is_killed_at_each_step_is_completed(app: StoppedApplication) -> None:
    before, waiting = {store: app.entries(store) for store in ("kept", "totals")}, app.unprocessed()
    assert len(before["kept"]) == len(KEYS) - len(KEYS[::7])
    assert waiting
    killed = next(each for each in range(100) if not app.reshard_killed_after(3 * each))
    assert killed > 2
    app.check(before, waiting)


def test_a_source_topic_that_was_deleted_is_created_and_read_from_its_beginning(
    app: StoppedApplication, kafka_distribution: KafkaDistribution
) -> None:
    """The fix is followed. A record that is written to the new topic before the end is not skipped."""
    before, waiting = {store: app.entries(store) for store in ("kept", "totals")}, app.unprocessed()
    assert app.reshard_killed_after(6)
    app.topics.delete(app.source)
    assert until(lambda: app.source not in app.topics.names(), 90)

    (document,) = load_text(app.text(), "app.yaml").documents
    connection = Connection(bootstrap_servers=(app.servers,))
    with pytest.raises(ProblemsError) as raised:
        reshard_application(document, connection, ReshardOptions(partitions={}), report_no_progress)
    (problem,) = raised.value.problems
    assert (problem.code, problem.topic) == (ProblemCode.RESHARD_INCOMPLETE, app.source)
    commands = re.findall(r"`kafka-([a-z-]+)\.sh --bootstrap-server BROKER ([^`]+)`", problem.fix)
    assert [tool for tool, _ in commands] == ["topics", "consumer-groups"]
    for tool, words in commands:
        line = launch.broker_tool_command(kafka_distribution, tool, app.servers, shlex.split(words))
        subprocess.run(line, check=True, capture_output=True)

    staying = next(each for each in KEYS if default_partition(each, 2) == default_partition(each, 5))
    app.topics.put(app.source, [(staying, b"new", 1_760_000_000_000)], default_partition(staying, 2))
    reshard_application(document, connection, ReshardOptions(partitions={}), report_no_progress)
    assert {store: app.entries(store) for store in before} == before
    assert app.unprocessed() == waiting
    assert [each.offset for each in app.committed(app.source)] == [0] * 5


def _run(app: StoppedApplication, *words: str) -> tuple[int, str]:
    """Return the exit code and the output of a command."""
    done = CliRunner().invoke(main, [*words, "--bootstrap-server", app.servers], standalone_mode=True)
    return done.exit_code, done.output


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.soak)])
def test_a_signal_that_interrupts_a_reshard_says_how_to_complete_it(
    number: signal.Signals, kafka: LocalBroker, unique: Callable[[str], str], tmp_path: Path
) -> None:
    servers, keys = kafka.bootstrap_servers, tuple(b"key %d" % each for each in range(12_000))
    app = StoppedApplication(servers, Topics(servers), unique("signaled"), keys=keys)
    app.create()
    before, waiting = {store: app.entries(store) for store in ("kept", "totals")}, app.unprocessed()
    file = tmp_path / "orders.yaml"
    file.write_text(app.text())
    words = ["reshard", str(file), "--partitions", f"{app.source}=5", "--bootstrap-server", servers]
    command = [sys.executable, "-m", "headwater.cli", *words]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        lines, is_sent = [], False
        for line in process.stderr:
            lines.append(line)
            if f"copying entries of {app.id}-kept" in line and not is_sent:
                process.send_signal(number)
                is_sent = True
        assert process.wait(120) == 1, lines
    text = " ".join("".join(lines).split())
    assert f"The reshard of {app.id} was interrupted." in text
    assert "Run the command again. It continues where it was interrupted." in text
    code, text = _run(app, "plan", str(file))
    assert (code, f"A reshard of {app.id} has begun and is not complete" in " ".join(text.split())) == (
        3,
        True,
    )
    assert "--delete" not in text
    code, text = _run(app, *words[:4])
    assert code == 0, text
    app.check(before, waiting)


def test_a_partitioner_that_one_partition_does_not_show_is_confirmed(
    kafka: LocalBroker, unique: Callable[[str], str], tmp_path: Path
) -> None:
    servers = kafka.bootstrap_servers
    app = StoppedApplication(servers, Topics(servers), unique("single"), partitions=1)
    app.create()
    before, waiting = {store: app.entries(store) for store in ("kept", "totals")}, app.unprocessed()
    file, function = tmp_path / "orders.yaml", f"{default_partition.__module__}:{default_partition.__name__}"
    file.write_text(app.text())
    command = ["reshard", str(file), f"--partitions={app.source}=5", f"--partitioner={app.source}={function}"]
    for words in ([], ["--check"]):
        code, output = _run(app, *command, *words)
        assert code == 1
        assert f"--unchecked-partitioner {app.source}" in " ".join(output.split())
        assert app.topics.partitions(app.source) == 1
    code, output = _run(app, *command, "--unchecked-partitioner", app.source)
    assert code == 0, output
    assert {store: app.entries(store) for store in before} == before
    assert app.unprocessed() == waiting


def test_a_check_warns_of_buffered_records_that_kafka_streams_does_not_restore(
    kafka: LocalBroker, unique: Callable[[str], str], tmp_path: Path
) -> None:
    servers, topics, counts = (
        kafka.bootstrap_servers,
        Topics(kafka.bootstrap_servers),
        {"orders": 2, "prices": 2},
    )
    compared = Compared(servers, topics, unique, versions_and_buffer(), counts, {"orders": 5, "prices": 5})
    name = compared.moved
    buffer, history = f"{name}-late-Buffer-changelog", f"{name}-history-changelog"
    topics.create(dict.fromkeys((buffer, history), 2), {"cleanup.policy": "compact"})
    key, time = b"k10", (1_760_000_000_000).to_bytes(8, "big")
    topics.send([
        (buffer, default_partition(key, 2), bytes(1) + time + key + bytes(4), b"value", 1, ()),
        (history, default_partition(key, 2), key, b"value", 1, ()),
    ])  # fmt: skip
    for topic in counts:
        topics.commit(name, {f"{name}.{topic}": 0})
    file = tmp_path / "app.json"
    file.write_text(json.dumps(compared.json(name)))
    words = [word for topic in counts for word in ("--partitions", f"{name}.{topic}=5")]
    command = ["reshard", str(file), "--check", *words, "--bootstrap-server", servers]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 0, done.output
    assert f"warning: {buffer} has buffered records" in done.output
    assert f"warning: {history}" not in done.output


def test_the_commands_of_the_page(
    app: StoppedApplication, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, waiting = {store: app.entries(store) for store in ("kept", "totals")}, app.unprocessed()
    file = tmp_path / "orders.yaml"
    file.write_text(app.text())

    run = partial(_run, app)
    reshard = ("reshard", str(file), "--partitions", f"{app.source}=5")
    code, text = run(*reshard, "--check")
    assert (code, "Nothing was changed." in text) == (0, True), text
    assert app.topics.partitions(app.source) == 2
    default = "headwater_spark.engine.partitioners.hashing:default_partition"
    code, text = run(*reshard, "--check", "--partitioner", f"{app.source}={default}")
    assert (code, "Nothing was changed." in text) == (0, True), text
    (tmp_path / "state_test_parts.py").write_text(
        "def region(key, partitions):\n    return key[-1] % partitions\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    code, text = run(*reshard, "--partitioner", f"{app.source}=state_test_parts:region")
    assert (code, "MisplacedEntries" in text) == (1, True), text
    code, text = run(*reshard, "--partitioner", f"{app.source}=state_test_parts:other")
    assert (code, "cannot be imported" in text) == (64, True), text
    code, text = run("reshard", str(file), "--partitions", f"{app.source}=1")
    assert (code, "ReshardRefused" in text) == (1, True), text
    code, text = run("reshard", str(file), "--partitions", "payments=4")
    assert (code, "payments is not a source topic" in text) == (1, True), text
    policies = tmp_path / "policies.yaml"
    policies.write_text("policies: [topicPartitions: {max: 4}]")
    code, text = run(*reshard, "--policies", str(policies))
    assert (code, "PolicyViolated" in text) == (1, True), text
    on_spark = ("--spark", "--master", "spark://absent:7077")
    code, text = run(*reshard, "--policies", str(policies), *on_spark)
    assert (code, "PolicyViolated" in text, "starting Spark" in text) == (1, True, False), text
    assert app.topics.partitions(f"{app.id}-kept-changelog") == 2
    code, text = run("reshard", str(file), "--layout", "kept=round")
    assert (code, "round is no layout" in text) == (64, True), text

    code, text = run(*reshard)
    assert code == 0, text
    assert f"{app.id}-kept-changelog: 2 → 5 partitions" in text
    app.check(before, waiting)
    code, text = run(*reshard)
    assert (code, "no state has to move" in text) == (0, True), text


def test_records_are_not_written_again_if_brokers_replace_their_timestamps(
    app: StoppedApplication, tmp_path: Path
) -> None:
    file = tmp_path / "orders.yaml"
    file.write_text(app.text())
    check = ("reshard", str(file), "--partitions", f"{app.source}=5", "--check")
    app.topics.configure_and_wait(app.source, {"message.timestamp.type": "LogAppendTime"})
    code, text = _run(app, *check)
    assert code == 0, text
    code, text = _run(app, *check, "--rewrite-unprocessed", app.source)
    assert (code, "ReshardRefused" in text, "message.timestamp.type" in text) == (1, True, True), text
    app.topics.configure_and_wait(app.source, {"message.timestamp.type": "CreateTime"})  # the fix
    code, text = _run(app, *check, "--rewrite-unprocessed", app.source)
    assert code == 0, text


def test_the_commands_for_a_renamed_store(app: StoppedApplication, tmp_path: Path) -> None:
    totals = app.entries("totals")
    file, policies, run = tmp_path / "orders.yaml", tmp_path / "policies.yaml", partial(_run, app)
    policies.write_text("policies: [blastRadius: {createdTopics: 0}]")
    file.write_text(app.text("renamed"))
    copy = ("state", "copy", str(file))
    assert run(*copy)[0] == 64
    code, text = run(*copy, "--store", "missing=renamed")
    assert (code, "does not exist" in text) == (1, True), text
    renamed = f"{app.id}-renamed-changelog"
    code, text = run(*copy, "--store", "totals=renamed", "--policies", str(policies))
    assert (code, "BlastRadius" in text, renamed in app.topics.names()) == (1, True, False), text
    code, text = run(*copy, "--store", "totals=renamed")
    assert code == 0, text
    code, text = run(*copy, "--store", "totals=renamed", "--undo")
    assert (code, f"{renamed}: deleted" in text) == (0, True), text
    assert app.entries("totals") == totals
    assert until(lambda: renamed not in app.topics.names(), 90)
    code, text = run(*copy, "--store", "totals=renamed", "--undo")
    assert (code, "deleted" in text) == (0, False), text
    code, text = run(*copy, "--store", "totals=renamed")
    assert code == 0, text
    assert app.entries("renamed") == totals == app.entries("totals")
    settings = app.topics.settings(renamed)
    assert settings["cleanup.policy"] == "compact"
    code, text = run(*copy, "--store", "totals=renamed")
    assert (code, "it has records already" in text) == (1, True), text
    app.topics.send([(renamed, default_partition(KEYS[1], 2), KEYS[1], b"newer", 1_760_000_000_000, ())])
    code, text = run(*copy, "--store", "totals=renamed", "--undo")
    assert (code, "cannot be undone" in text, renamed in app.topics.names()) == (1, True, True), text


def test_records_that_are_larger_than_a_megabyte_move(app: StoppedApplication) -> None:
    topic = app.internal["kept-changelog"]
    app.topics.configure_and_wait(topic, {"max.message.bytes": "5000000"})
    values = {key: bytes((number,)) * 2_000_000 for number, key in enumerate(KEYS[1:4])}
    producer = Producer({"bootstrap.servers": app.servers, "message.max.bytes": 5_000_000})
    for key, value in values.items():
        producer.produce(topic, value, key, default_partition(key, 2), timestamp=1_760_000_000_000)
    assert producer.flush(90) == 0
    before = app.entries("kept")
    assert before.items() >= values.items()
    (document,) = load_text(app.text(), "app.yaml").documents
    options = ReshardOptions(partitions={app.source: 5})
    reshard_application(document, Connection(bootstrap_servers=(app.servers,)), options, report_no_progress)
    assert app.entries("kept") == before


def _is_assigned(member: Consumer) -> bool:
    member.poll(0.1)
    return bool(member.assignment())


def test_an_application_that_runs_is_checked_and_refused(app: StoppedApplication) -> None:
    (document,) = load_text(app.text(), "app.yaml").documents
    connection = Connection(bootstrap_servers=(app.servers,))
    wrong = 1 - default_partition(KEYS[1], 2)
    options = ReshardOptions(partitions={app.source: 5}, wait_seconds=0)
    member = Consumer({"bootstrap.servers": app.servers, "group.id": app.id})
    member.subscribe([app.source])
    try:
        assert until(lambda: _is_assigned(member), 90)
        with pytest.raises(ProblemsError) as raised:
            reshard_application(document, connection, options, report_no_progress)
        check = attrs.evolve(options, checks_only=True)
        checked = reshard_application(document, connection, check, report_no_progress)
        assert checked.is_running
        assert checked.counts[app.internal["kept-changelog"]] == (2, 5)
        with (
            closing(KafkaMoveCluster(connection, app.id)) as cluster,
            pytest.raises(KafkaException) as started,
        ):
            cluster.commit_offsets({(app.source, 0): (0, "")})
        app.topics.put(app.internal["kept-changelog"], [(KEYS[1], b"value", 1_760_000_000_000)], wrong)
        with pytest.raises(ProblemsError) as misplaced:
            reshard_application(document, connection, check, report_no_progress)
    finally:
        member.close()
    assert [problem.code.value for problem in raised.value.problems] == ["GroupActive"]
    incomplete = kafka_problem(app.id, started.value, has_begun=True)
    assert "An instance of the application has started: stop all instances." in incomplete.fix
    assert app.committed(app.source)[0].offset > 0
    assert [problem.code.value for problem in misplaced.value.problems] == ["MisplacedEntries"]
    assert app.topics.partitions(app.source) == 2
