"""Real applications of the streams protocol: what brokers of Kafka 4.1 and 4.4 show of their topologies."""

import json
import shlex
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import attrs
import pytest
import yaml

from headwater.cli.console import ExitCode
from headwater.kafka import Connection, KafkaClusterReader, SnapshotRequest, streams_group_messages
from headwater.kafka.group_client import GroupClient
from headwater.model.cluster import LiveGroup
from headwater.model.streams_groups import DescriptionStatus, StreamsGroup
from headwater.planner.phrases import delete_streams_group
from headwater.toolchain import ensure_kafka
from headwater.toolchain.broker import Broker, Settings
from headwater.toolchain.broker.launch import broker_tool_command
from headwater.toolchain.broker.readiness import until
from headwater.toolchain.kafka import KAFKA_VERSION, KafkaDistribution
from tests.acls.streams_process import Run, StreamsProcess
from tests.broker_data import copy_data
from tests.oracle.kafka_streams import KafkaStreams
from tests.preloaded import headwater
from tests.pulumi.cluster import Cluster

pytestmark = [pytest.mark.broker, pytest.mark.oracle, pytest.mark.slow]

_WITH_NODES = "4.4.0"
_PLUGIN = "org.apache.kafka.server.streams.InMemoryTopologyDescriptionPlugin"
_SETTINGS = {
    "group.coordinator.rebalance.protocols": "classic,consumer,streams",
    "unstable.api.versions.enable": "true",
    "unstable.feature.versions.enable": "true",
}
_SECONDS = 60.0
_TOPICS = {"in": 3, "rates": 2, "other": 2, "out": 1}
_DOCUMENT: Mapping[str, Any] = {
    "application": {"id": "busy", "config": {"group.protocol": "streams"}},
    "topology": [
        {"stream": "in"},
        {"groupBy": {"name": "by"}},
        {"count": {"materialized": "counts"}},
        {"toStream": {}},
        {"to": "out"},
        {"globalTable": {"topic": "rates", "materialized": "rates"}},
        {"stream": "other"},
        {"repartition": {"name": "spread", "partitions": 5}},
        {"to": "out"},
    ],
}


@attrs.frozen
class RunningCluster:
    """A broker on which `busy` runs, and a folder for files of `headwater`."""

    broker: Broker
    distribution: KafkaDistribution
    run: Run
    folder: Path
    stop: Callable[[], object] = lambda: None
    """Stops `busy`."""

    @property
    def group(self) -> StreamsGroup:
        connection = Connection(bootstrap_servers=(self.broker.bootstrap_servers,))
        found = GroupClient(connection, _SECONDS).streams_groups(["busy"], with_nodes=True)["busy"]
        assert isinstance(found, StreamsGroup), found
        return found

    def headwater(self, *arguments: object) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [headwater(), *map(str, arguments), "--bootstrap-server", self.broker.bootstrap_servers],
            cwd=self.folder,
            env={"COLUMNS": "120"},
            capture_output=True,
            text=True,
            check=False,
        )

    def tool(self, *arguments: str) -> str:
        servers = self.broker.bootstrap_servers
        done = subprocess.run(
            broker_tool_command(self.distribution, "streams-groups", servers, arguments),
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout


def _started(version: str, folder: Path, stack: ExitStack) -> RunningCluster:
    distribution = ensure_kafka(version=version)
    plugin = {"group.streams.topology.description.plugin.class": _PLUGIN} if version == _WITH_NODES else {}
    settings = Settings(overrides={**_SETTINGS, **plugin})
    copy_data(distribution, folder / "broker", settings)
    broker = Broker(distribution, folder / "broker", settings)
    stack.callback(broker.kill)  # an orderly stop takes longer
    broker.start()
    servers = broker.bootstrap_servers
    for topic, partitions in _TOPICS.items():
        Cluster(servers).create(topic, partitions)
    process = StreamsProcess(version)
    stack.callback(process.close)
    enabling = {} if version == _WITH_NODES else {"streamsProtocolAt": servers}
    running = stack.enter_context(ExitStack())
    run = running.enter_context(process.running(_DOCUMENT, {"bootstrap.servers": servers}, **enabling))
    cluster = RunningCluster(broker, distribution, run, folder, running.close)
    names = Cluster(servers)
    run.until(lambda: bool(run.failures) or "busy-counts-changelog" in names.names())
    assert run.failures == []
    expected = DescriptionStatus.AVAILABLE if plugin else DescriptionStatus.NOT_REQUESTED
    assert until(lambda: cluster.group.state == "Stable" and cluster.group.status is expected, _SECONDS)
    return cluster


@pytest.fixture(scope="module")
def newest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    with ExitStack() as stack:
        yield _started(_WITH_NODES, tmp_path_factory.mktemp("newest"), stack)


def test_a_description_that_is_too_large_hides_only_its_own_group(
    newest: RunningCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams_group_messages, "_MOST_ITEMS", 0)
    reader = KafkaClusterReader(Connection(bootstrap_servers=(newest.broker.bootstrap_servers,)), _SECONDS)
    read = reader.read(SnapshotRequest(groups=("busy",), streams_groups=frozenset({"busy"})))
    assert read.groups == {"busy": LiveGroup("busy", "Unknown", None, is_streams=True)}
    assert read.streams_groups == {}


def test_the_document_is_complete_and_equals_that_of_the_application(
    newest: RunningCluster,
    kafka_streams_of: Callable[[str], KafkaStreams],
    tmp_path: Path,
    unique: Callable[[str], str],
) -> None:
    folder, file = tmp_path, tmp_path / "busy.yaml"
    printed = kafka_streams_of(_WITH_NODES).ask(_DOCUMENT, topics=_TOPICS).describe
    done = newest.headwater("import", "--all", "--kafka-streams", "4.4", "-o", folder)
    assert done.returncode == ExitCode.DONE, done.stderr
    assert "its topology was read from the brokers" in done.stdout
    document = yaml.safe_load(file.read_text(encoding="utf-8"))
    assert document["describe"]["text"] == printed
    assert document["describe"]["repartitions"] == {"spread-repartition": 5}
    assert "unknown" not in document["describe"]
    assert document["application"]["protocol"] == "streams"
    drift = newest.headwater("drift", folder)
    assert drift.returncode == ExitCode.DONE, drift.stdout

    text, more = file.read_text(encoding="utf-8"), unique("more")
    file.write_text(
        text.replace("counts", "sums").replace("topics: [other]", f"topics: [other, {more}]"),
        encoding="utf-8",
    )
    Cluster(newest.broker.bootstrap_servers).create(more, 2)
    drift = newest.headwater("drift", folder)
    assert drift.returncode == ExitCode.DRIFT
    assert "warning[topology] Another topology is running: 2 differences." in drift.stdout


def test_one_group_is_imported_by_its_id(newest: RunningCluster) -> None:
    done = newest.headwater("import", "--group", "busy", "--kafka-streams", "4.4")
    assert done.returncode == ExitCode.DONE, done.stderr
    assert yaml.safe_load(done.stdout)["describe"]["repartitions"] == {"spread-repartition": 5}
    none = newest.headwater("import", "--group", "nope")
    assert none.returncode == ExitCode.PROBLEMS
    assert "error[TopologyNotKnown] The cluster has no streams group nope." in none.stderr


def test_the_text_of_kafkas_tool_is_imported(newest: RunningCluster) -> None:
    text = newest.tool("--describe", "--group", "busy", "--topology")
    assert "topic: busy-by-repartition" in text
    (newest.folder / "tool.txt").write_text(text, encoding="utf-8")
    done = newest.headwater(
        *("import", "--describe", "tool.txt", "--application-id", "busy", "--kafka-streams", "4.4")
    )
    assert done.returncode == ExitCode.DONE, done.stderr
    assert "topic: by-repartition" in done.stdout


def test_status_shows_the_group(newest: RunningCluster) -> None:
    done = newest.headwater("status", "--group", "busy")
    assert done.returncode == ExitCode.DONE
    assert done.stdout.startswith("busy  Stable, 1 member\n")
    assert "The brokers have the nodes of the topology" in done.stdout
    status = json.loads(newest.headwater("status", "--group", "busy", "--format", "json").stdout)
    assert [part["sources"] for part in status["subtopologies"]] == [["in"], [], ["other"], []]
    assert status["description"].startswith("Topologies:")
    assert status["members"][0]["active"]["0"] == [0, 1, 2]


@pytest.mark.soak  # without a broker: `test_pushed`
def test_brokers_without_nodes_show_subtopologies(tmp_path: Path) -> None:
    with ExitStack() as stack:
        cluster = _started(KAFKA_VERSION, tmp_path, stack)
        done = cluster.headwater("import", "--all", "--kafka-streams", "4.1", "-o", "topologies")
        assert done.returncode == ExitCode.DONE, done.stderr
        text = (tmp_path / "topologies" / "busy.yaml").read_text(encoding="utf-8")
        assert "# Sub-topology 0 reads in, writes busy-by-repartition.\n" in text
        assert "# Its nodes were not imported: the brokers have no nodes of topologies" in text
        document = yaml.safe_load(text)
        assert document["observed"]["sources"] == {"in": 3, "other": 2}
        assert document["observed"]["unknown"] == ["subtopologies"]
        assert cluster.headwater("drift", "topologies").returncode == ExitCode.DONE
        status = cluster.headwater("status", "--group", "busy").stdout
        assert "busy-counts-changelog" in status
        assert "The topology cannot be imported from the brokers" in status
        refused = cluster.headwater("import", "--group", "busy")
        assert refused.returncode == ExitCode.PROBLEMS
        assert "The brokers do not have the topology of busy." in refused.stderr


@pytest.mark.soak  # real applications of two versions
@pytest.mark.parametrize("version", [KAFKA_VERSION, _WITH_NODES])
def test_the_command_that_fixes_name_deletes_a_group_and_none_of_its_topics(
    version: str, tmp_path: Path
) -> None:
    """`kafka-streams-groups.sh --delete` of Kafka 4.1 deletes the internal topics, too."""
    with ExitStack() as stack:
        cluster = _started(version, tmp_path, stack)
        names = Cluster(cluster.broker.bootstrap_servers)
        internal = {name for name in names.names() if name.startswith("busy-")}
        assert "busy-counts-changelog" in internal
        cluster.stop()
        words = shlex.split(delete_streams_group("busy").split("`")[1])[3:]

        def delete(tool: str) -> bool:
            line = broker_tool_command(cluster.distribution, tool, cluster.broker.bootstrap_servers, words)
            return subprocess.run(line, capture_output=True, check=False).returncode == 0

        assert until(lambda: delete("consumer-groups"), _SECONDS)
        assert cluster.headwater("status", "--group", "busy").returncode == ExitCode.PROBLEMS
        assert internal <= {*names.names()}
