"""The environment of the demo: a broker with payments, and a folder with a Pulumi project and documents."""

import json
import os
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
import yaml
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # public, but not exported explicitly
    AdminClient,
    NewPartitions,
    NewTopic,
)
from tenacity import retry, retry_if_result, stop_after_delay, wait_fixed

from headwater.cli.new.project import read_template
from headwater.kafka import Connection, KafkaClusterReader, SnapshotRequest
from headwater.kafka.client_settings import client_log
from headwater.model.cluster import LiveTopic
from headwater.model.records import OWNERSHIP_TOPIC
from headwater.spec.schema import topology_schemas
from headwater.toolchain import KafkaDistribution, PulumiToolchain, file_backend
from headwater.toolchain.broker import Broker
from headwater.toolchain.machine import JAVA
from headwater.toolchain.pulumi_cli import Finished, PulumiProject
from headwater.toolchain.sessions import run_in_session

STACK = "demo"
DOCUMENTS = "topologies"
_FILES = Path(__file__).parent / "files"
_HOUR_MS = 3_600_000
_POLL_SECONDS = 10.0
_RETRY_SECONDS = 30
_PROGRAM_SECONDS = 180
_EXCLUDED = ("HEADWATER_", "KAFKA_", "PULUMI_")  # variables that name clusters and stacks of the user
_retry_until_true = retry(
    retry=retry_if_result(lambda done: not done), wait=wait_fixed(0.1), stop=stop_after_delay(_RETRY_SECONDS)
)


@attrs.frozen
class Payment:
    """A payment; `at` is in milliseconds since the start of the first hour."""

    at: int
    category: str
    amount: float


def read_payments(file: Path) -> Iterator[Payment]:
    """Yield the payments of a file, one in each line: `H:MM CATEGORY AMOUNT`."""
    for line in file.read_text(encoding="utf-8").splitlines():
        clock, category, amount = line.split()
        hours, minutes = map(int, clock.split(":"))
        yield Payment((hours * 60 + minutes) * 60_000, category, float(amount))


def first_hour() -> int:
    """Return the start of the first hour, in ms since the epoch; brokers refuse records from the future."""
    return (time.time_ns() // 1_000_000 // _HOUR_MS - 3) * _HOUR_MS


def produce_payments(servers: str, topic: str, records: Iterable[Payment], start: int) -> None:
    """Produce payments to partition 0, to keep their order; `start` is the start of the first hour.

    Raises `RuntimeError` if the broker did not accept all of them in time.
    """
    producer = Producer({"bootstrap.servers": servers}, logger=client_log())
    for record in records:
        value = json.dumps({"category": record.category, "amount": record.amount})
        producer.produce(topic, value, partition=0, timestamp=start + record.at)
    if producer.flush(_POLL_SECONDS):
        raise RuntimeError(f"{topic}: the broker did not accept the payments")


def _read_revenue(servers: str, topic: str, partitions: int, start: int) -> Mapping[str, float]:
    """Return `CATEGORY, hour N` → revenue, from committed records; raises `RuntimeError` without answer."""
    settings = {"bootstrap.servers": servers, "group.id": "demo", "isolation.level": "read_committed"}
    consumer = Consumer({**settings, "enable.partition.eof": True}, logger=client_log())
    found = {}
    try:
        consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
        unread = partitions
        while unread:
            message = consumer.poll(_POLL_SECONDS)
            if message is None:
                raise RuntimeError(f"{topic}: the broker does not answer")
            if message.error():
                unread -= 1
                continue
            key, value = message.key() or b"", message.value() or b""
            (window,), (amount,) = struct.unpack(">q", key[-8:]), struct.unpack(">d", value)
            found[f"{key[:-8].decode()}, hour {(window - start) // _HOUR_MS}"] = amount
    finally:
        consumer.close()
    return found


@attrs.frozen
class Jars:
    """What applications have on their class path: `spark` are paths, `streams` may be patterns of Java."""

    spark: Sequence[str]
    streams: Sequence[Path]


@attrs.frozen
class Environment:
    """A running broker, and a Pulumi project in `folder` that manages its topics.

    `first_hour` is the start of the first hour of payments, in ms since the epoch.
    """

    folder: Path
    broker: Broker
    project: PulumiProject
    admin: AdminClient
    reader: KafkaClusterReader
    jars: Jars
    first_hour: int = attrs.field(factory=first_hour)

    def pulumi(self, *arguments: str) -> Finished:
        return self.project.run(*arguments, "--stack", STACK)

    def headwater(self, *arguments: str) -> Finished:
        finished = run_in_session(
            [sys.executable, "-m", "headwater.cli", *arguments],
            folder=self.folder,
            environment=self.project.environment,
            is_error_in_output=True,
        )
        return Finished(finished.code, finished.output)

    def java(self, program: str, *arguments: str) -> Finished:
        """Run a Java program of the demo, with Kafka Streams and Headwater's library on its class path."""
        command: list[str | Path] = [
            *(JAVA.locate() or "java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
            f"-Djava.io.tmpdir={self.folder}",  # RocksDB leaves its library there
            *("-cp", os.pathsep.join(map(str, self.jars.streams)), self.file(program)),
        ]
        try:
            done = subprocess.run(
                [*command, *arguments], capture_output=True, text=True, check=False, timeout=_PROGRAM_SECONDS
            )
        except subprocess.TimeoutExpired:
            return Finished(1, f"{program} did not end within {_PROGRAM_SECONDS} seconds.\n")
        return Finished(done.returncode, done.stdout + done.stderr)

    def topics(self) -> Mapping[str, LiveTopic]:
        """Return all topics except Kafka's and Headwater's own, by name."""
        topics = self.reader.read(SnapshotRequest(patterns=(r"(?!__).*",))).topics
        return {name: topic for name, topic in topics.items() if not name.startswith(("__", OWNERSHIP_TOPIC))}

    def create(self, topics: Mapping[str, int], config: Mapping[str, str]) -> None:
        new = [NewTopic(name, count, 1, config=dict(config)) for name, count in topics.items()]
        _wait_for_all(self.admin.create_topics(new))
        self._wait_until(lambda live: topics.keys() <= live.keys())

    def expand(self, topic: str, partitions: int) -> None:
        _wait_for_all(self.admin.create_partitions([NewPartitions(topic, partitions)]))
        self._wait_until(lambda live: live[topic].partitions == partitions)

    def delete(self, topic: str) -> None:
        _wait_for_all(self.admin.delete_topics([topic]))
        self._wait_until(lambda live: topic not in live)

    @contextmanager
    def member(self, group: str, topic: str) -> Iterator[None]:
        """Join the consumer group of an application, as one of its instances would, within the block."""
        consumer = Consumer(
            {"bootstrap.servers": self.broker.bootstrap_servers, "group.id": group}, logger=client_log()
        )
        consumer.subscribe([topic])
        try:
            _retry_until_true(lambda: consumer.poll(0.1) is None and consumer.assignment())()
            yield
        finally:
            consumer.close()

    def documents(self) -> list[str]:
        return [file.name for file in (self.folder / DOCUMENTS).iterdir()]

    def document(self, name: str) -> Path:
        return self.folder / DOCUMENTS / f"{name}.yaml"

    def file(self, name: str) -> Path:
        return _FILES / name

    def revenue(self, topic: str) -> Mapping[str, float]:
        """Return `CATEGORY, hour N` → revenue that the application wrote to `topic`."""
        count = self.topics()[topic].partitions
        return _read_revenue(self.broker.bootstrap_servers, topic, count, self.first_hour)

    def _wait_until(self, condition: Callable[[Mapping[str, LiveTopic]], bool]) -> None:
        _retry_until_true(lambda: condition(self.topics()))()


@contextmanager
def start_environment(
    folder: Path,
    kafka: KafkaDistribution,
    pulumi: PulumiToolchain,
    jars: Jars,
    source_topics: Mapping[str, int],
) -> Iterator[Environment]:
    """Start a broker and create the Pulumi project; stop the broker at the end of the block."""
    _copy_project(folder / "work")
    with Broker(kafka, folder / "kafka") as broker:
        project = PulumiProject(
            folder / "work",
            pulumi,
            {"PULUMI_BACKEND_URL": file_backend(folder / "state"), "PULUMI_CONFIG_PASSPHRASE": "demo"},
            base={name: value for name, value in os.environ.items() if not name.startswith(_EXCLUDED)},
            home=folder / "pulumi-home",
        )
        connection = Connection(bootstrap_servers=(broker.bootstrap_servers,))
        admin = AdminClient(connection.librdkafka_settings(), logger=client_log())
        environment = Environment(
            folder / "work", broker, project, admin, KafkaClusterReader(connection), jars
        )
        _configure_stack(environment)
        environment.create(source_topics, {})
        yield environment


def _copy_project(folder: Path) -> None:
    """Copy the Pulumi program and the three example documents to `folder`."""
    (folder / DOCUMENTS).mkdir(parents=True)
    (folder / "__main__.py").write_text(read_template("program.txt"), encoding="utf-8")
    (folder / "Pulumi.yaml").write_text(yaml.safe_dump({"name": "headwater", "runtime": "python"}))
    for example in topology_schemas().joinpath("examples").iterdir():
        if example.name.endswith(".yaml"):
            (folder / DOCUMENTS / example.name).write_text(
                example.read_text(encoding="utf-8"), encoding="utf-8"
            )


def _configure_stack(environment: Environment) -> None:
    (environment.folder.parent / "state").mkdir()
    created = environment.project.run("stack", "init", STACK)
    if created.code:
        raise RuntimeError(f"pulumi stack init: {created.text}")
    settings_file = environment.folder / f"Pulumi.{STACK}.yaml"
    settings: dict[str, Any] = yaml.safe_load(settings_file.read_text()) or {}
    settings["config"] = {
        "headwater:bootstrapServers": environment.broker.bootstrap_servers,
        "headwater:documents": [DOCUMENTS],
    }
    settings_file.write_text(yaml.safe_dump(settings))


def _wait_for_all(futures: Mapping[str, Any]) -> None:
    for future in futures.values():
        future.result()
