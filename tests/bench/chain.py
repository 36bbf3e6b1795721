"""A chain of maps that `headwater run` executes, and single records that pass through it."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs
from confluent_kafka import Consumer, Producer, TopicPartition

from headwater.toolchain.broker.readiness import until
from headwater_spark.driver.states import ClientState
from tests.pulumi.cluster import Cluster

_PARTITIONS = 2
_TIMEOUT_SECONDS = 120
_MAP = '  - mapValues: {value: "upper(value)"}\n'
_REPARTITION = "  - repartition: {serdes: {key: string, value: string}}\n"


@attrs.frozen
class Chain:
    """An application of `subtopologies` maps in a row, connected by repartition topics of two partitions."""

    id: str
    subtopologies: int
    servers: str

    @property
    def document(self) -> str:
        return (
            f"application: {{id: {self.id}}}\ntopology:\n"
            f"  - stream: {{topic: {self.id}-in, serdes: {{key: string, value: string}}}}\n"
            + _REPARTITION.join([_MAP] * self.subtopologies)
            + f"  - to: {{topic: {self.id}-out, serdes: {{key: string, value: string}}}}\n"
        )

    def create_topics(self) -> None:
        for topic in (f"{self.id}-in", f"{self.id}-out"):
            Cluster(self.servers).create(topic, _PARTITIONS)

    @contextmanager
    def running(self, folder: Path) -> Iterator["subprocess.Popen[bytes]"]:
        """Yield the process of the application once it is RUNNING."""
        document, log = folder / f"{self.id}.yaml", folder / f"{self.id}.log"
        document.write_text(self.document)
        command = [sys.executable, "-m", "headwater.cli", "run", str(document)]
        command += ["--bootstrap-server", self.servers]
        command += ["--checkpoint", str(folder / "checkpoint"), "--state-dir", str(folder / "state")]
        command += ["--log-format", "json", "--master", "local[2]"]
        with (
            log.open("wb") as lines,
            subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=lines) as process,
        ):
            try:
                assert until(lambda: _is_running(log), _TIMEOUT_SECONDS), log.read_text()
                yield process
            finally:
                process.terminate()
                process.wait(_TIMEOUT_SECONDS)

    @contextmanager
    def records(self) -> Iterator["SingleRecords"]:
        consumer = Consumer(
            {
                "bootstrap.servers": self.servers,
                "group.id": f"{self.id}-sink",
                "fetch.wait.max.ms": 5_000,
            }
        )
        consumer.assign([TopicPartition(f"{self.id}-out", each, 0) for each in range(_PARTITIONS)])
        producer = Producer({"bootstrap.servers": self.servers, "linger.ms": 0})
        try:
            yield SingleRecords(f"{self.id}-in", producer, consumer)
        finally:
            consumer.close()


@attrs.frozen
class SingleRecords:
    """Writes records to the topic of a chain, one after the other, and reads their results."""

    topic: str
    producer: Producer
    sink: Consumer

    def warm_up(self) -> None:
        """Send a record through each partition."""
        for number in range(_PARTITIONS):
            self.seconds(number)

    def seconds(self, number: int) -> float:
        """Write a record; return how long it took until its result was read."""
        started = time.perf_counter()
        self.producer.produce(self.topic, b"value", b"key", partition=number % _PARTITIONS)
        self.producer.flush()
        result = self.sink.poll(_TIMEOUT_SECONDS)
        assert result is not None, "no result"
        assert result.error() is None, result.error()
        return time.perf_counter() - started


def _is_running(log: Path) -> bool:
    lines = [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]
    return any(fields.get("new") == ClientState.RUNNING.value for fields in lines)
