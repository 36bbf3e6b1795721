"""The agent on a real broker: it sees sources grow and has internal topics follow."""

import time
from collections.abc import Callable
from itertools import takewhile
from pathlib import Path
from typing import ClassVar

import attrs
import pytest
from confluent_kafka import KafkaError, KafkaException

from infra.model.problems import ProblemsError
from infra.observe import Connection
from infra.observe.client_log import client_log
from spark_jobs.agent import kafka_cluster
from spark_jobs.agent import run as run_module
from spark_jobs.agent.documents import DocumentFiles
from spark_jobs.agent.events import (
    ApplicationRefused,
    AttemptEnded,
    DocumentsRefused,
    Expanded,
    ExpansionStarted,
    Notified,
)
from spark_jobs.agent.kafka_cluster import KafkaCluster
from spark_jobs.agent.state import (
    INCOMPLETE_SOURCE_TOPIC_METADATA,
    Outcome,
    Parallelism,
    Phase,
    Shortfall,
    TopicCounts,
)
from tests.agent.live_documents import HEARD, heard, texts, unique_documents
from tests.agent.running import SECONDS, Recorder, await_counts, await_true, make_topics, running, settings
from tests.agent.simulation import set_up
from tests.pulumi.cluster import Cluster
from toolchain.broker.local import LocalBroker

pytestmark = pytest.mark.broker

_PROMPT_SECONDS = 5.0
"""For a look and a turn, which take milliseconds, on a machine that has other work."""


@attrs.frozen
class Scene:
    """Two applications that feed each other, set up with 2 and 3 partitions of their sources."""

    servers: str
    suffix: str
    cluster: Cluster

    @property
    def totals_app(self) -> str:
        return f"totals-app-{self.suffix}"

    @property
    def ranks_app(self) -> str:
        return f"ranks-app-{self.suffix}"

    @property
    def orders(self) -> str:
        return f"orders-{self.suffix}"

    @property
    def returns(self) -> str:
        return f"returns-{self.suffix}"

    @property
    def changelog(self) -> str:
        return f"{self.totals_app}-counts-changelog"

    def sources(self, orders: int, returns: int = 3) -> dict[str, int]:
        return {self.orders: orders, self.returns: returns}

    def await_counts(self, orders: int, returns: int = 3, seconds: float = SECONDS) -> None:
        await_counts(self.cluster, unique_documents(self.suffix), self.sources(orders, returns), seconds)

    def await_steady(self, agent: Recorder) -> None:
        apps = (self.totals_app, self.ranks_app)
        await_true(lambda: agent.state.is_recovered and all(agent.phase(app) is Phase.STEADY for app in apps))


@pytest.fixture
def scene(kafka: LocalBroker, unique: Callable[[str], str]) -> Scene:
    suffix = unique("x").removeprefix("x-")
    made = Scene(kafka.bootstrap_servers, suffix, Cluster(kafka.bootstrap_servers))
    make_topics(made.cluster, unique_documents(suffix), made.sources(2))
    heard()
    return made


def test_first_expanded_source_expands_all_downstream_topics(scene: Scene) -> None:
    documents = unique_documents(scene.suffix)
    with running(settings(scene.servers, documents, scene.suffix, callback=HEARD)) as agent:
        scene.await_steady(agent)
        scene.cluster.expand(scene.orders, 6)
        scene.await_counts(6)
        await_true(lambda: len(agent.of(Notified)) == 2)
        scene.await_steady(agent)
        assert sorted(heard()) == [(3, 6), (3, 6)]
        assert agent.state.applications[scene.totals_app].parallelism[1] == Parallelism(1, 6, 6)
        scene.cluster.expand(scene.returns, 7)
        scene.await_counts(6, 7)
        await_true(lambda: len(agent.of(Notified)) == 4)
    results = [
        result for event in agent.events if isinstance(event, AttemptEnded) for result in event.results
    ]
    assert {result.outcome for result in results} == {Outcome.EXPANDED}
    assert agent.requests.count(("validate", True)) == 2


def test_expansion_begins_within_metadata_max_age(scene: Scene) -> None:
    documents = unique_documents(scene.suffix)
    age = 2.0
    hurried = attrs.evolve(
        settings(scene.servers, documents, scene.suffix), metadata_max_age_ms=int(age * 1000)
    )
    with running(hurried) as agent:
        scene.await_steady(agent)
        scene.cluster.expand(scene.orders, 6)
        start, asked = time.monotonic(), len(agent.requests)
        await_true(lambda: agent.of(ExpansionStarted))
        assert time.monotonic() - start < age + _PROMPT_SECONDS
        scene.await_counts(6)
    before = takewhile(lambda request: request[0] != "journal", agent.requests[asked:])
    assert [operation for operation, _ in before].count("metadata") <= 1, "the first look begins it"


def test_each_read_is_one_request(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted by librdkafka's own log, whatever the number of topics."""
    sent: list[str] = []
    plain = Connection.confluent
    monkeypatch.setattr(Connection, "confluent", lambda self: {**plain(self), "debug": "protocol"})
    monkeypatch.setattr(kafka_cluster, "client_log", lambda _: client_log(sent.append))
    cluster = KafkaCluster(Connection(bootstrap_servers=(scene.servers,)), "agent-1")
    for _ in range(2):
        assert cluster.partition_counts()[scene.orders] == 2
    cluster._client.poll(0)  # hands the log over
    sent.clear()
    for _ in range(5):
        cluster.partition_counts()
    cluster._client.poll(0)
    assert len([line for line in sent if "Sent MetadataRequest" in line]) == 5


class _Unanswered:
    """A client that a broker's pause has left without a connection, and that finds no way back."""

    def poll(self, _seconds: float) -> int:
        return 0

    def list_topics(self, timeout: float) -> None:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT), timeout)


def test_client_without_answers_is_replaced(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = KafkaCluster(Connection(bootstrap_servers=(scene.servers,)), "agent-1")
    monkeypatch.setattr(cluster, "_client", _Unanswered())
    with pytest.raises(ProblemsError, match="No Kafka broker can be reached"):
        cluster.partition_counts()
    assert cluster.partition_counts()[scene.orders] == 2


def test_validation_changes_nothing_and_has_result_for_each_topic(scene: Scene) -> None:
    cluster = KafkaCluster(Connection(bootstrap_servers=(scene.servers,)), "agent-1")
    lacking = [
        Shortfall("a", scene.changelog, 3, 5),
        Shortfall("a", scene.orders, 1, 2),
        Shortfall("a", scene.returns, 1, 2),
        Shortfall("a", f"nowhere-{scene.suffix}", 1, 2),
    ]
    results = cluster.expand(lacking, validate_only=True)
    assert [result.outcome for result in results] == [
        *(Outcome.EXPANDED, Outcome.ALREADY, Outcome.ALREADY, Outcome.FAILED),
    ]
    assert results[3].error == "UNKNOWN_TOPIC_OR_PART"
    assert scene.cluster.partitions(scene.changelog) == 3


def test_agent_started_late_finds_missing_partitions(scene: Scene) -> None:
    scene.cluster.expand(scene.orders, 5)
    with running(settings(scene.servers, unique_documents(scene.suffix), scene.suffix)) as agent:
        scene.await_counts(5)
        scene.await_steady(agent)


def test_expansion_without_agent_is_notified_by_next_agent(scene: Scene) -> None:
    documents = unique_documents(scene.suffix)
    with running(settings(scene.servers, documents, scene.suffix, callback=HEARD)) as agent:
        scene.await_steady(agent)
        scene.cluster.expand(scene.orders, 4)
        await_true(lambda: len(agent.of(Notified)) == 2)
    heard()
    for name in [scene.orders, *(name for name in wanted(scene, 6) if name not in scene.sources(0))]:
        scene.cluster.expand(name, 6)
    with running(settings(scene.servers, documents, scene.suffix, callback=HEARD)) as agent:
        await_true(lambda: len(agent.of(Notified)) == 2)
        assert sorted(heard()) == [(4, 6), (4, 6)]
        assert not agent.of(AttemptEnded)


def wanted(scene: Scene, orders: int) -> TopicCounts:
    return set_up(unique_documents(scene.suffix), scene.sources(orders))


def test_autoscaling_is_read_from_changed_files(scene: Scene, tmp_path: Path) -> None:
    on = texts(scene.suffix)
    files = [tmp_path / "totals.yaml", tmp_path / "ranks.yaml"]
    for file, text in zip(files, on, strict=True):
        file.write_text(text)
    files[0].write_text(on[0].replace("enabled: true", "enabled: false"))
    following = attrs.evolve(settings(scene.servers, (), scene.suffix), documents=DocumentFiles([tmp_path]))
    with running(following) as agent:
        scene.await_steady(agent)
        scene.cluster.expand(scene.orders, 6)
        await_true(lambda: agent.phase(scene.totals_app) is Phase.STOPPED)
        assert agent.state.applications[scene.totals_app].error_code == INCOMPLETE_SOURCE_TOPIC_METADATA
        files[0].write_text("topology: [")
        await_true(lambda: agent.of(DocumentsRefused))
        assert agent.phase(scene.totals_app) is Phase.STOPPED
        files[0].write_text(on[0])
        scene.await_counts(6)
        await_true(lambda: len(agent.of(Expanded)) == 2)


def test_deleted_source_is_missing_and_smaller_source_is_error_with_fix(scene: Scene) -> None:
    documents = unique_documents(scene.suffix)
    with running(settings(scene.servers, documents, scene.suffix)) as agent:
        scene.await_steady(agent)
        scene.cluster.delete(scene.orders, scene.returns)
        await_true(lambda: agent.phase(scene.totals_app) is Phase.REFUSED)
        await_true(
            lambda: (
                {problem.code for problem in agent.state.applications[scene.totals_app].problems}
                == {"MissingSourceTopic"}
            )
        )
        scene.cluster.create(scene.orders, 1)
        scene.cluster.create(scene.returns, 1)
        await_true(
            lambda: (
                {problem.code for problem in agent.state.applications[scene.totals_app].problems}
                == {"OverPartitionedInternalTopic"}
            )
        )
        problem = agent.state.applications[scene.totals_app].problems[0]
        assert "were they re-created?" in problem.summary
        assert problem.fix
        assert scene.cluster.partitions(scene.changelog) == 3
        scene.cluster.expand(scene.orders, 3)
        scene.await_steady(agent)


class _Lagging(KafkaCluster):
    """A cluster whose metadata shows, every second time, what was before."""

    looks: ClassVar[int] = 0
    old: ClassVar[TopicCounts] = {}

    def partition_counts(self) -> TopicCounts:
        counts = super().partition_counts()
        type(self).looks += 1
        if type(self).looks % 2:
            return {**counts, **{name: count for name, count in self.old.items() if name in counts}}
        return counts


def test_lagging_metadata_repeats_and_refuses_nothing(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    _Lagging.old = {name: scene.cluster.partitions(name) or 0 for name in wanted(scene, 2)}
    monkeypatch.setattr(run_module, "KafkaCluster", _Lagging)
    documents = unique_documents(scene.suffix)
    with running(settings(scene.servers, documents, scene.suffix, callback=HEARD)) as agent:
        scene.await_steady(agent)
        scene.cluster.expand(scene.orders, 6)
        scene.await_counts(6)
        await_true(lambda: len(agent.of(Notified)) == 2)
        _Lagging.old = {}
    assert len([event for event in agent.events if isinstance(event, AttemptEnded)]) == 2
    assert not agent.of(ApplicationRefused)
    assert sorted(heard()) == [(3, 6), (3, 6)]
