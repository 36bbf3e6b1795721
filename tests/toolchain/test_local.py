"""`headwater local`, on a real broker in a folder of the test's own."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from headwater.cli.local import local as command
from headwater.toolchain import KafkaDistribution, ToolchainError
from headwater.toolchain.broker import Settings, local
from headwater.toolchain.broker.launch import broker_tool_command as command_line
from headwater.toolchain.broker.readiness import HOST, free_ports, until
from tests.broker_data import copy_data
from tests.listening_sockets import is_loopback, listening_addresses
from tests.quick_java import QUICK_JAVA

Run = Callable[..., Result]
_SECONDS = 120


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("JDK_JAVA_OPTIONS", " ".join(QUICK_JAVA))  # the command's broker starts slowly
    yield lambda *arguments: CliRunner().invoke(command, list(arguments))
    if (left := local.status()) is not None:
        os.kill(left.pid, signal.SIGKILL)  # an orderly stop takes longer
    local.down()


@pytest.mark.broker
def test_a_broker_is_started_once_and_keeps_topics_until_its_data_is_deleted(
    run: Run, kafka_distribution: KafkaDistribution
) -> None:
    """A second `up` finds it, and two at once share one; a killed one is reported and started again."""
    copy_data(kafka_distribution, local.default_folder(), Settings())
    port = free_ports(1)[0]
    started = run("up", "--port", str(port))
    assert started.exit_code == 0, started.output
    assert f"Kafka at {HOST}:{port}" in started.output
    result = json.loads(run("status", "--format", "json").output)
    assert result["ready"]
    assert result["bootstrapServers"] == f"{HOST}:{port}"
    addresses = listening_addresses(result["pid"])
    assert addresses
    assert all(map(is_loopback, addresses)), addresses
    assert run("up", "--port", str(port)).output == started.output, "a second up finds the first one's broker"
    other = run("up", "--port", str(port + 1))
    assert other.exit_code == 1
    assert "already runs" in other.output
    assert "headwater local down" in other.output

    first = local.up(kafka_distribution, port=0)
    client = AdminClient({"bootstrap.servers": first.bootstrap_servers})
    client.create_topics([NewTopic("kept", num_partitions=1)])["kept"].result()
    assert "is stopped" in run("down").output
    assert run("status").exit_code == 1
    assert run("down").exit_code == 0
    with ThreadPoolExecutor(2) as pool:
        second, other_second = pool.map(lambda _: local.up(kafka_distribution, port=0), range(2))
    assert second == other_second
    assert second.is_ready
    _has_kept(second, first)

    os.kill(second.pid, signal.SIGKILL)
    assert until(lambda: local.status() is None, _SECONDS)
    lost = run("status")
    assert lost.exit_code == 1
    assert f"process {second.pid}" in lost.output, "a killed broker is reported as lost"
    assert "headwater local up" in lost.output
    third = local.up(kafka_distribution, port=0)
    assert third.pid != second.pid
    _has_kept(third, first)
    assert "deleted" in run("down", "--delete-data").output
    assert not local.default_folder().exists()


def _has_kept(broker: local.LocalBroker, first: local.LocalBroker) -> None:
    """Check that a broker has the cluster and the topic of an earlier one."""
    assert broker.cluster_id == first.cluster_id
    topics = AdminClient({"bootstrap.servers": broker.bootstrap_servers}).list_topics(timeout=_SECONDS).topics
    assert "kept" in topics


@pytest.mark.broker
def test_an_up_that_is_killed_half_way_leaves_no_broker(
    run: Run, kafka_distribution: KafkaDistribution
) -> None:
    copy_data(kafka_distribution, local.default_folder(), Settings())
    with subprocess.Popen(
        [sys.executable, "-c", "from headwater.cli.local import local; local(['up', '--port', '0'])"]
    ) as up:
        log = local.default_folder() / "broker.log"
        assert until(log.exists, _SECONDS), "the broker process is there"
        up.kill()
    assert until(lambda: run("up", "--port", "0").exit_code == 0, _SECONDS)


@pytest.mark.broker
def test_kafkas_own_programs_run_on_the_local_broker(run: Run, kafka_distribution: KafkaDistribution) -> None:
    assert run("status").exit_code == 1
    without = _kafka("topics", "--list")
    assert without.returncode == 1
    assert "headwater local up" in without.stderr
    copy_data(kafka_distribution, local.default_folder(), Settings())
    server = local.up(kafka_distribution, port=0).bootstrap_servers
    made = _kafka("topics", "--create", "--topic", "orders", "--partitions", "3")
    assert (made.returncode, made.stdout.strip()) == (0, "Created topic orders.")
    sent = _kafka("console-producer", "--topic", "orders", "--property", "parse.key=true", given="k\tv\n")
    assert sent.returncode == 0, sent.stderr
    assert _record_of(server, "orders") == (b"k", b"v")
    usage = _kafka("topics", "--help")
    assert "--partitions" in usage.stderr, "the program's own help"
    assert usage.returncode == 1, "the program's own exit code"
    _check_reset_tool(server)


def _record_of(server: str, topic: str) -> tuple[object, object]:
    """Return key and value of the only record of a topic."""
    consumer = Consumer({"bootstrap.servers": server, "group.id": "reader"})
    consumer.assign([TopicPartition(topic, number, 0) for number in range(3)])
    record = consumer.poll(_SECONDS)
    consumer.close()
    assert record is not None
    assert record.error() is None
    return record.key(), record.value()


def _check_reset_tool(server: str) -> None:
    """Check that Kafka's reset tool deletes internal topics and resets offsets."""
    admin = AdminClient({"bootstrap.servers": server})
    kept, internal = {"purchases", "shop-report"}, {"shop-counts-changelog", "shop-by-city-repartition"}
    created = admin.create_topics([NewTopic(name, num_partitions=1) for name in kept | internal])
    for each in created.values():
        each.result()
    producer = Producer({"bootstrap.servers": server})
    for _ in range(3):
        producer.produce("purchases", b"an order")
    assert producer.flush(_SECONDS) == 0
    consumer = Consumer({"bootstrap.servers": server, "group.id": "shop"})
    consumer.commit(offsets=[TopicPartition("purchases", 0, 2)], asynchronous=False)

    done = _kafka("streams-application-reset", "--application-id", "shop", "--input-topics", "purchases")

    assert done.returncode == 0, done.stdout + done.stderr
    [committed] = consumer.committed([TopicPartition("purchases", 0)], timeout=_SECONDS)
    consumer.close()
    assert committed.offset == 0
    assert until(lambda: not internal & admin.list_topics(timeout=_SECONDS).topics.keys(), _SECONDS)
    assert admin.list_topics(timeout=_SECONDS).topics.keys() >= kept


def test_a_given_bootstrap_server_wins() -> None:
    distribution = KafkaDistribution(Path("java"), Path("jars"))
    named = ("--bootstrap-server=elsewhere:9092", "--list")
    assert command_line(distribution, "topics", "here:9092", named)[-2:] == named
    assert command_line(distribution, "topics", "here:9092", ["--list"])[-3:] == (
        "--bootstrap-server",
        "here:9092",
        "--list",
    )


def _kafka(*arguments: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command in a process, which it replaces by exec."""
    line = (sys.executable, "-c", "from headwater.cli.local import local; local()", "kafka", *arguments)
    return subprocess.run(line, input=given, capture_output=True, text=True, check=False, timeout=_SECONDS)


def test_an_outdated_state_file_stops_no_other_process(run: Run) -> None:
    folder = local.default_folder()
    folder.mkdir(parents=True)
    state = {"pid": os.getpid(), "port": 1, "cluster_id": "x", "folder": str(folder)}
    (folder / "state.json").write_text(json.dumps(state))
    assert run("status").exit_code == 1
    assert "No local broker was running" in run("down").output  # and we live to see it


def test_status_without_any_broker_says_how_to_start_one(run: Run) -> None:
    result = run("status")
    assert result.exit_code == 1
    assert "headwater local up" in result.output
    assert json.loads(run("status", "--format", "json").output) == {"running": False, "ready": False}


@pytest.mark.broker
def test_a_port_in_use_is_reported_with_the_fix(run: Run) -> None:
    with socket.create_server((HOST, 0)) as other:
        result = run("up", "--port", str(other.getsockname()[1]))
    assert result.exit_code == 1
    assert "is in use" in result.output
    assert "choose another port" in result.output


def test_missing_java_is_reported_with_the_installation(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    result = run("up")
    assert result.exit_code == 1
    assert "Java 17 or newer is missing" in result.output
    assert "Install it by" in result.output


@pytest.mark.broker
def test_a_broker_that_cannot_be_started_leaves_the_folder_usable(
    run: Run, tmp_path: Path, kafka_distribution: KafkaDistribution
) -> None:
    no_java = KafkaDistribution(tmp_path / "java", kafka_distribution.jars)
    with pytest.raises((ToolchainError, OSError)):
        local.up(no_java, port=0)
    assert local.status() is None
    assert run("status").exit_code == 1
