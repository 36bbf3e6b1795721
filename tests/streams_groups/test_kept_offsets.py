"""What reports say about the offsets of a streams group is followed on brokers of Kafka 4.1 and 4.4."""

import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import pytest
from confluent_kafka import Consumer, TopicPartition

from headwater.planner.phrases import leave_streams_group, move_group_offsets
from headwater.toolchain import ensure_kafka
from headwater.toolchain.broker import Broker, Settings
from headwater.toolchain.broker.launch import broker_tool_command
from headwater.toolchain.broker.readiness import until
from headwater.toolchain.kafka import KAFKA_VERSION, KafkaDistribution
from headwater_spark.driver.reshard.input_problems import missing_offset
from tests.acls.streams_process import Run, StreamsProcess
from tests.groups import describe_group
from tests.pulumi.cluster import Cluster

pytestmark = [pytest.mark.broker, pytest.mark.oracle, pytest.mark.slow, pytest.mark.soak]

_CONVERTS = "4.4.0"
_SETTINGS = {
    "group.coordinator.rebalance.protocols": "classic,consumer,streams",
    "unstable.api.versions.enable": "true",
    "unstable.feature.versions.enable": "true",
    "group.initial.rebalance.delay.ms": "0",
}
_SECONDS = 60.0
_COPY = ({"stream": "in"}, {"to": "out"})
_REPARTITIONED = ({"stream": "in"}, {"repartition": {"name": "r", "partitions": 2}}, {"to": "out"})
"""Another topology, for which brokers refuse a streams group of the first one."""


@attrs.frozen
class _Application:
    """An application `copy` that writes each record of `in` to `out`, and its broker."""

    distribution: KafkaDistribution
    cluster: Cluster
    process: StreamsProcess
    folder: Path

    @contextmanager
    def running(self, topology: Sequence[Mapping[str, Any]], **config: str) -> Iterator[Run]:
        """Run a topology; config keys have underscores instead of dots."""
        properties = {
            "bootstrap.servers": self.cluster.bootstrap_servers,
            "auto.offset.reset": "earliest",
            "commit.interval.ms": "100",
            "session.timeout.ms": "6000",
            **{key.replace("_", "."): value for key, value in config.items()},
        }
        if config.get("group_protocol") == "streams":  # the group has its own session timeout
            del properties["session.timeout.ms"]
        document = {"application": {"id": "copy"}, "topology": list(topology)}
        is_older = self.distribution.version == KAFKA_VERSION
        enabling = {"streamsProtocolAt": self.cluster.bootstrap_servers} if is_older else {}
        with self.process.running(document, properties, **enabling) as run:
            yield run

    def copy(self, number: int, topology: Sequence[Mapping[str, Any]], **config: str) -> None:
        """Write record `number`, and run a topology until it is copied, and nothing else was."""
        self.cluster.produce("in", b"value", str(number).encode())
        with self.running(topology, **config) as run:
            run.until(lambda: bool(run.failures) or self.count() == number)
            assert run.failures == []
        assert self.count() == number

    def failures(self, topology: Sequence[Mapping[str, Any]], **config: str) -> str:
        """Run a topology until it fails; return why."""
        with self.running(topology, **config) as run:
            run.until(lambda: bool(run.failures))
            return " ".join(run.failures)

    def count(self) -> int:
        """Return how many records `out` has."""
        consumer = Consumer({"bootstrap.servers": self.cluster.bootstrap_servers, "group.id": "none"})
        try:
            return sum(consumer.get_watermark_offsets(TopicPartition("out", 0), timeout=_SECONDS))
        finally:
            consumer.close()

    def wait_until_empty(self) -> None:
        """Wait until the group has no members: classic members have a session timeout."""
        servers = self.cluster.bootstrap_servers
        assert until(lambda: describe_group(servers, "copy").state == "Empty", _SECONDS)

    def follow(self, text: str, number: int) -> None:
        """Run the commands of a text, each until it succeeds: members leave a group after a timeout."""
        commands = [line for line in re.findall("`([^`]+)`", text) if line.startswith("kafka-consumer")]
        assert len(commands) == number, text
        for line in commands:
            assert until(partial(self._succeeds, line), _SECONDS), line

    def _succeeds(self, line: str) -> bool:
        command, _, target = line.partition(" > ")
        program, option, _, *words = shlex.split(command)
        assert option == "--bootstrap-server"
        tool = program.removeprefix("kafka-").removesuffix(".sh")
        done = subprocess.run(
            broker_tool_command(self.distribution, tool, self.cluster.bootstrap_servers, words),
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        if target:
            (self.folder / target).write_text(done.stdout)
        return done.returncode == 0 and "Error" not in done.stdout + done.stderr


@contextmanager
def _application(version: str, folder: Path) -> Iterator[_Application]:
    with ExitStack() as stack:
        distribution = ensure_kafka(version=version)
        broker = stack.enter_context(Broker(distribution, folder / "broker", Settings(overrides=_SETTINGS)))
        cluster = Cluster(broker.bootstrap_servers)
        for topic in ("in", "out"):
            cluster.create(topic, 1)
        process = StreamsProcess(version)
        stack.callback(process.close)
        application = _Application(distribution, cluster, process, folder)
        application.copy(1, _COPY, group_protocol="streams")
        application.follow(missing_offset("copy", "in", 0).fix, 1)
        application.copy(2, _COPY, group_protocol="streams")
        assert "Topology updates are not supported" in application.failures(
            _REPARTITIONED, group_protocol="streams"
        )
        yield application


def test_brokers_since_4_2_keep_the_offsets_of_an_empty_group_for_the_other_protocol(tmp_path: Path) -> None:
    assert "Brokers of Kafka 4.2 or later keep the committed offsets of copy" in leave_streams_group("copy")
    with _application(_CONVERTS, tmp_path) as application:
        application.copy(3, _REPARTITIONED, group_protocol="classic")
        application.wait_until_empty()
        application.copy(4, _REPARTITIONED, group_protocol="streams")


def test_with_4_1_the_offsets_are_set_for_a_classic_group(tmp_path: Path) -> None:
    with _application(KAFKA_VERSION, tmp_path) as application:
        assert "Inconsistent" in application.failures(_REPARTITIONED, group_protocol="classic")
        application.follow(move_group_offsets("copy"), 3)
        assert "is not a streams group" in application.failures(_REPARTITIONED, group_protocol="streams")
        application.copy(3, _REPARTITIONED, group_protocol="classic")
