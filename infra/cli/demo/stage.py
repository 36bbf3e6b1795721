"""The world of the demo: a broker, a folder with a Pulumi project and documents, and ways to meddle."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
import yaml
from confluent_kafka import Consumer
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # names that are public there all the same
    AdminClient,
    NewPartitions,
    NewTopic,
)
from tenacity import retry, retry_if_result, stop_after_delay, wait_fixed

from infra.cli.demo.traffic import first_hour, revenue
from infra.cli.pulumi_project import Finished, PulumiProject
from infra.model.cluster import LiveTopic
from infra.observe import Connection, KafkaClusterReader, SnapshotRequest
from infra.observe.client_log import client_log
from toolchain import KafkaDistribution, PulumiToolchain
from toolchain.broker import Broker

STACK = "demo"
DOCUMENTS = "topologies"
_ROOT = Path(__file__).parents[3]
_MATERIAL = Path(__file__).parent / "material"
_SECONDS = 30
_PERSONAL = ("HEADWATER_", "KAFKA_", "PULUMI_")  # settings of clusters and stacks that are not the story's
_patiently = retry(
    retry=retry_if_result(lambda done: not done), wait=wait_fixed(0.1), stop=stop_after_delay(_SECONDS)
)


class NotACloneError(Exception):
    """The demo runs the repository's own program and examples."""


@attrs.frozen
class Stage:
    """`folder` is where the person of the story works, `first_hour` when payments began (milliseconds)."""

    folder: Path
    broker: Broker
    project: PulumiProject
    admin: AdminClient
    reader: KafkaClusterReader
    spark_jars: Sequence[str]
    first_hour: int = attrs.field(factory=first_hour)

    def pulumi(self, *arguments: str) -> Finished:
        return self.project.run(*arguments, "--stack", STACK)

    def headwater(self, *arguments: str) -> Finished:
        finished = subprocess.run(
            [sys.executable, "-m", "infra.cli", *arguments],
            cwd=self.folder,
            env=self.project.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return Finished(finished.returncode, finished.stdout)

    def topics(self) -> Mapping[str, LiveTopic]:
        """Read all topics but Kafka's own."""
        topics = self.reader.read(SnapshotRequest(patterns=(r"(?!__).*",))).topics
        return {name: topic for name, topic in topics.items() if not name.startswith("__")}

    def create(self, topics: Mapping[str, int], config: Mapping[str, str]) -> None:
        new = [NewTopic(name, count, 1, config=dict(config)) for name, count in topics.items()]
        _all(self.admin.create_topics(new))
        self._until(lambda live: topics.keys() <= live.keys())

    def expand(self, topic: str, partitions: int) -> None:
        _all(self.admin.create_partitions([NewPartitions(topic, partitions)]))
        self._until(lambda live: live[topic].partitions == partitions)

    def delete(self, topic: str) -> None:
        _all(self.admin.delete_topics([topic]))
        self._until(lambda live: topic not in live)

    @contextmanager
    def member(self, group: str, topic: str) -> Iterator[None]:
        """Be a running instance of an application: a member of its consumer group."""
        consumer = Consumer(
            {"bootstrap.servers": self.broker.bootstrap_servers, "group.id": group}, logger=client_log()
        )
        consumer.subscribe([topic])
        try:
            _patiently(lambda: consumer.poll(0.1) is None and consumer.assignment())()
            yield
        finally:
            consumer.close()

    def documents(self) -> list[str]:
        return [file.name for file in (self.folder / DOCUMENTS).iterdir()]

    def document(self, name: str) -> Path:
        return self.folder / DOCUMENTS / f"{name}.yaml"

    def material(self, name: str) -> Path:
        """Return a file of the story."""
        return _MATERIAL / name

    def revenue(self, topic: str) -> Mapping[str, float]:
        """Read what came of the payments."""
        count = self.topics()[topic].partitions
        return revenue(self.broker.bootstrap_servers, topic, count, self.first_hour)

    def _until(self, is_so: Callable[[Mapping[str, LiveTopic]], bool]) -> None:
        _patiently(lambda: is_so(self.topics()))()


@contextmanager
def stage(
    folder: Path,
    kafka: KafkaDistribution,
    pulumi: PulumiToolchain,
    spark_jars: Sequence[str],
    source_topics: Mapping[str, int],
) -> Iterator[Stage]:
    """Start the broker and make the project; in the end the broker is stopped. Raises `NotACloneError`."""
    _lay_out(folder / "work")
    with Broker(kafka, folder / "kafka") as broker:
        project = PulumiProject(
            folder / "work",
            pulumi,
            {"PULUMI_BACKEND_URL": f"file://{folder / 'state'}", "PULUMI_CONFIG_PASSPHRASE": "demo"},
            base={name: value for name, value in os.environ.items() if not name.startswith(_PERSONAL)},
            home=folder / "pulumi-home",
        )
        connection = Connection(bootstrap_servers=(broker.bootstrap_servers,))
        admin = AdminClient(connection.confluent(), logger=client_log())
        prepared = Stage(folder / "work", broker, project, admin, KafkaClusterReader(connection), spark_jars)
        _configure(prepared)
        prepared.create(source_topics, {})
        yield prepared


def _lay_out(folder: Path) -> None:
    """Make the repository that the person of the story has: the program and the three example documents."""
    examples = _ROOT / "topology_schemas" / "examples"
    if not ((_ROOT / "__main__.py").exists() and examples.exists()):
        raise NotACloneError(
            "The demo runs the repository's program and examples, and this is an installed package.\n"
            "  Clone the repository and run: make demo"
        )
    (folder / DOCUMENTS).mkdir(parents=True)
    shutil.copy(_ROOT / "__main__.py", folder)
    (folder / "Pulumi.yaml").write_text(yaml.safe_dump({"name": "headwater", "runtime": "python"}))
    for example in sorted(examples.glob("*.yaml")):
        shutil.copy(example, folder / DOCUMENTS)


def _configure(prepared: Stage) -> None:
    (prepared.folder.parent / "state").mkdir()
    made = prepared.project.run("stack", "init", STACK)
    if made.code:
        raise RuntimeError(f"pulumi stack init: {made.text}")
    settings_file = prepared.folder / f"Pulumi.{STACK}.yaml"
    settings: dict[str, Any] = yaml.safe_load(settings_file.read_text()) or {}
    settings["config"] = {
        "headwater:bootstrapServers": prepared.broker.bootstrap_servers,
        "headwater:documents": [DOCUMENTS],
    }
    settings_file.write_text(yaml.safe_dump(settings))


def _all(futures: Mapping[str, Any]) -> None:
    for future in futures.values():
        future.result()
