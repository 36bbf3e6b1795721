"""Real applications of both protocols, and topics that look like theirs: import and adoption."""

import json
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest
import yaml
from confluent_kafka import Consumer, TopicPartition

from headwater.toolchain import PulumiToolchain
from headwater.toolchain.broker import Broker, Settings
from headwater.toolchain.broker.readiness import until
from tests.acls.streams_process import StreamsProcess
from tests.broker_version import has_streams_groups
from tests.oracle.kafka_streams import KafkaStreams
from tests.preloaded import headwater
from tests.pulumi.cluster import Cluster
from tests.pulumi.driver import Stack

pytestmark = [
    *(pytest.mark.broker, pytest.mark.oracle, pytest.mark.slow, pytest.mark.every_broker),
    pytest.mark.skipif(not has_streams_groups(), reason="brokers have streams groups since 4.1"),
]

_STREAMS_PROTOCOL = {
    "group.coordinator.rebalance.protocols": "classic,consumer,streams",
    "unstable.feature.versions.enable": "true",
    "unstable.api.versions.enable": "true",
}
_STREAMS_CONFIG = {"cleanup.policy": "compact", "message.timestamp.type": "CreateTime"}
_SECONDS = 60
_SOURCES = {"in": 3, "facts": 4}


def document(id_: str, **config: str) -> dict[str, Any]:
    return {
        "application": {"id": id_, "config": {"auto.offset.reset": "earliest", **config}},
        "topology": [
            {"stream": {"topic": "in"}},
            {"groupBy": {"name": "by-key"}},
            {"windowedBy": {"tumbling": {"size": "1h"}}},
            {"count": {"materialized": "counts"}},
            {"table": {"topic": "facts", "materialized": "facts"}},
        ],
    }


def internal_topics(id_: str) -> list[str]:
    return [f"{id_}-by-key-repartition", f"{id_}-counts-changelog", f"{id_}-facts-changelog"]


@attrs.frozen
class Workspace:
    """A folder for the files of `headwater`, and a cluster.

    On the cluster, `orders` has stopped and `orders-eu` (streams protocol) is running.
    """

    cluster: Cluster
    folder: Path

    def headwater(self, *arguments: object) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [headwater(), *map(str, arguments)],
            cwd=self.folder,
            env={"COLUMNS": "120"},
            capture_output=True,
            text=True,
            check=False,
        )

    def import_all(self, *arguments: object) -> "subprocess.CompletedProcess[str]":
        return self.headwater(
            "import", "--all", "--bootstrap-server", self.cluster.bootstrap_servers, *arguments
        )

    def topic_states(self) -> dict[str, object]:
        """Return id, partition count and configs of each topic: what adoption could have changed."""
        names = [*internal_topics("orders"), *internal_topics("orders-eu"), "in", "facts"]
        return {
            name: (self.cluster.topic_id(name), self.cluster.partitions(name), self.cluster.config(name))
            for name in names
        }


@pytest.fixture(scope="module")
def cluster(own_broker: Callable[..., Broker]) -> Iterator[Cluster]:
    with own_broker(Settings(overrides=_STREAMS_PROTOCOL)) as broker:
        cluster = Cluster(broker.bootstrap_servers)
        for name, partitions in _SOURCES.items():
            cluster.create(name, partitions)
            cluster.produce(name)
        cluster.create("orders-cdc-changelog", 1, {"cleanup.policy": "compact"})
        cluster.create("gone-x-changelog", 2, _STREAMS_CONFIG)
        cluster.create("cdc-a-changelog", 1, _STREAMS_CONFIG)
        cluster.create("_schemas", 1, _STREAMS_CONFIG)
        reader = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "cdc"})
        reader.subscribe(["cdc-a-changelog"])
        assert until(lambda: reader.poll(0.1) is None and bool(reader.assignment()), _SECONDS)
        with closing(StreamsProcess()) as process:
            with running(process, broker, document("orders")):
                pass
            with running(process, broker, document("orders-eu", **{"group.protocol": "streams"})):
                yield cluster
        reader.close()


@contextmanager
def running(process: StreamsProcess, broker: Broker, declared: Mapping[str, Any]) -> Iterator[None]:
    """Run an application that has committed offsets of both sources."""
    servers, id_ = broker.bootstrap_servers, str(declared["application"]["id"])
    properties = {"bootstrap.servers": servers, "commit.interval.ms": "100"}
    protocol = {"streamsProtocolAt": servers} if "group.protocol" in declared["application"]["config"] else {}
    with process.running(declared, properties, **protocol) as run:
        run.until(lambda: bool(run.failures) or committed(broker, id_) >= {"in", "facts"})
        assert run.failures == []
        yield


def committed(broker: Broker, group: str) -> set[str]:
    """Return the topics that the group has offsets of. They remain when its members have left.

    A consumer that never joins reads them: an admin client fails while the coordinator is starting.
    """
    reader = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": group, "log_level": 0})
    partitions = [TopicPartition(topic, each) for topic, count in _SOURCES.items() for each in range(count)]
    try:
        return {each.topic for each in reader.committed(partitions, _SECONDS) if each.offset >= 0}
    finally:
        reader.close()


@pytest.fixture
def workspace(cluster: Cluster, tmp_path: Path) -> Workspace:
    return Workspace(cluster, tmp_path)


def documents(folder: Path) -> Mapping[str, Any]:
    return {file.stem: yaml.safe_load(file.read_text()) for file in sorted(folder.iterdir())}


def test_each_application_gets_its_document(workspace: Workspace) -> None:
    done = workspace.import_all("-o", "found")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Found 2 applications with 6 internal topics." in done.stdout
    for name in ("orders-cdc-changelog", "gone-x-changelog", "cdc-a-changelog"):
        assert f"Skipped {name}: " in done.stdout
    assert "_schemas" not in done.stdout
    written = documents(workspace.folder / "found")
    assert sorted(written) == ["orders", "orders-eu"]
    for id_, each in written.items():
        assert [f"{id_}-{name}" for name in each["observed"]["topics"]] == internal_topics(id_)
        assert each["observed"]["sources"] == {"facts": 4, "in": 3}
        assert each["observed"]["unknown"] == ["subtopologies"]
    assert written["orders-eu"]["application"]["protocol"] == "streams"
    assert "protocol" not in written["orders"]["application"]


def test_the_documents_compile_to_exactly_the_topics_that_exist(workspace: Workspace) -> None:
    workspace.import_all("-o", "found")
    done = workspace.headwater("compile", "found", "--format", "json")
    assert done.returncode == 0, done.stderr
    compiled = {
        topic["name"]: (topic["partitions"], topic["config"])
        for application in json.loads(done.stdout)["applications"]
        for topic in application["internalTopics"]
    }
    assert compiled == {
        name: (workspace.cluster.partitions(name), workspace.cluster.config(name)) for name in compiled
    }
    assert sorted(compiled) == sorted([*internal_topics("orders"), *internal_topics("orders-eu")])


def test_files_are_overwritten_only_with_force(workspace: Workspace) -> None:
    folder = workspace.folder / "found"
    folder.mkdir()
    mine = folder / "mine.yaml"
    mine.write_text(yaml.safe_dump(document("orders")))
    (folder / "orders-eu.yaml").write_text(yaml.safe_dump(document("another")))
    done = workspace.import_all("-o", folder)
    assert done.returncode == 1
    assert f"already declared in {mine}" in done.stdout
    assert "orders-eu.yaml declares another" in done.stdout
    assert sorted(documents(folder)) == ["mine", "orders-eu"]
    assert workspace.import_all("-o", folder, "--force").returncode == 1
    (folder / "orders-eu.yaml").write_text("# nothing yet\n")
    refused = workspace.import_all("-o", folder)
    assert (refused.returncode, "UnreadableDocument" in refused.stderr) == (1, True)
    declared = document("orders-eu")
    declared["application"]["setup"] = {"allowIdOverlap": True}
    (folder / "orders-eu.yaml").write_text(yaml.safe_dump(declared))
    assert "already declared in" in workspace.import_all("-o", folder).stdout
    assert workspace.import_all("-o", folder, "--force").returncode == 0
    assert "observed" in documents(folder)["orders-eu"]
    assert "topology" in documents(folder)["mine"]


def test_application_id_imports_an_application_without_a_group(workspace: Workspace) -> None:
    done = workspace.import_all("--application-id", "gone", "-o", "found")
    assert done.returncode == 0, done.stderr
    assert documents(workspace.folder / "found")["gone"]["observed"]["unknown"] == [
        "subtopologies",
        "sources",
        "protocol",
    ]


@pytest.mark.pulumi
@pytest.mark.parametrize("mode", [pytest.param("automatic", marks=pytest.mark.soak), "manual"])
def test_the_first_up_adopts_everything_and_changes_nothing(
    workspace: Workspace, pulumi_toolchain: PulumiToolchain, kafka_streams: KafkaStreams, mode: str
) -> None:
    stack = Stack.create(
        workspace.folder / "stack",
        pulumi_toolchain,
        # The stack of the other case has recorded the same applications.
        {"bootstrapServers": workspace.cluster.bootstrap_servers, "ownership": "none"},
        is_preloaded=True,
        has_passphrase=False,
    )
    folder = stack.folder / "documents"
    assert workspace.import_all("--config", f"internal.topics.setup={mode}", "-o", folder).returncode == 0
    before = workspace.topic_states()
    outcome = stack.up()
    assert outcome.succeeded, str(outcome)
    assert len(stack.topics()) == 6
    assert workspace.topic_states() == before
    assert stack.preview("--expect-no-changes").succeeded
    # Replace the observed topics by the description that the application prints: this changes nothing, too.
    (workspace.folder / "orders.txt").write_text(kafka_streams.ask(document("orders")).describe or "")
    done = workspace.headwater(
        "import", "--describe", "orders.txt", "--application-id", "orders", "-o", folder / "orders.yaml",
        "--bootstrap-server", workspace.cluster.bootstrap_servers,
        "--config", f"internal.topics.setup={mode}",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    preview = stack.preview("--expect-no-changes")
    assert preview.succeeded, str(preview)
    assert workspace.topic_states() == before
