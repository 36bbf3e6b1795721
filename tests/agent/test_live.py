"""The agent on a real broker expands internal topics after their sources."""

import time
from collections.abc import Callable
from itertools import takewhile
from pathlib import Path
from typing import ClassVar

import attrs
import pytest
from confluent_kafka import KafkaError, KafkaException

from headwater.agent import kafka_cluster
from headwater.agent import run as run_module
from headwater.agent.documents import DocumentFiles
from headwater.agent.events import (
    ApplicationRefused,
    AttemptEnded,
    DocumentsRefused,
    Expanded,
    ExpansionStarted,
    Notified,
)
from headwater.agent.kafka_cluster import KafkaCluster
from headwater.agent.state import INCOMPLETE_SOURCE_TOPIC_METADATA, Outcome, Parallelism, Phase, Shortfall
from headwater.kafka import Connection, answering_broker
from headwater.kafka.client_settings import client_log
from headwater.model.expansions import TopicCounts
from headwater.model.offset_metadata import OffsetMetadata, decode_count, shows_processors
from headwater.model.problems import Problem, ProblemsError
from headwater.toolchain.broker.local import LocalBroker
from tests.agent.live_documents import RECORDING_PARTITIONER, recorded_calls, texts, unique_documents
from tests.agent.running import SECONDS, Recorder, await_counts, await_true, make_topics, running, settings
from tests.agent.simulation import set_up
from tests.contract.real_cluster import RealCluster
from tests.pulumi.cluster import Cluster

pytestmark = pytest.mark.broker

_REACTION_SECONDS = 90.0
"""The time for a topic check and a loop iteration, which take milliseconds on an idle machine.

It is shorter than the default interval of topic checks.
"""


@attrs.frozen
class Applications:
    """Two connected applications whose sources have 2 and 3 partitions."""

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
def applications(kafka: LocalBroker, unique: Callable[[str], str]) -> Applications:
    suffix = unique("x").removeprefix("x-")
    applications = Applications(kafka.bootstrap_servers, suffix, Cluster(kafka.bootstrap_servers))
    make_topics(applications.cluster, unique_documents(suffix), applications.sources(2))
    recorded_calls()
    return applications


@pytest.mark.every_broker
def test_first_expanded_source_expands_all_downstream_topics(applications: Applications) -> None:
    documents = unique_documents(applications.suffix)
    with running(
        settings(applications.servers, documents, applications.suffix, callback=RECORDING_PARTITIONER)
    ) as agent:
        applications.await_steady(agent)
        applications.cluster.expand(applications.orders, 6)
        applications.await_counts(6)
        await_true(lambda: len(agent.of(Notified)) == 2)
        applications.await_steady(agent)
        assert sorted(recorded_calls()) == [(3, 6), (3, 6)]
        assert agent.state.applications[applications.totals_app].parallelism[1] == Parallelism(1, 6, 6)
        applications.cluster.expand(applications.returns, 7)
        applications.await_counts(6, 7)
        await_true(lambda: len(agent.of(Notified)) == 4)
    results = [
        result for event in agent.events if isinstance(event, AttemptEnded) for result in event.results
    ]
    assert {result.outcome for result in results} == {Outcome.EXPANDED}
    assert agent.requests.count(("validate", True)) == 2


def test_expansion_begins_within_metadata_max_age(applications: Applications) -> None:
    documents = unique_documents(applications.suffix)
    age = 2.0
    fast = attrs.evolve(
        settings(applications.servers, documents, applications.suffix), metadata_max_age_ms=int(age * 1000)
    )
    with running(fast) as agent:
        applications.await_steady(agent)
        applications.cluster.expand(applications.orders, 6)
        start, requests = time.monotonic(), len(agent.requests)
        await_true(lambda: agent.of(ExpansionStarted))
        assert time.monotonic() - start < age + _REACTION_SECONDS
        applications.await_counts(6)
    operations = [operation for operation, _ in agent.requests[requests:]]
    # The first request that ended after the expansion may have been answered before it, the next one was not.
    asked = operations.index("metadata") + 1
    before = list(takewhile(lambda operation: operation != "journal", operations[asked:]))
    assert before.count("metadata") <= 1, "the first topic check after the expansion starts the expansion"


def test_each_read_is_one_request(applications: Applications, monkeypatch: pytest.MonkeyPatch) -> None:
    """librdkafka's log shows the requests; their number does not depend on the number of topics."""
    sent: list[str] = []
    plain = Connection.librdkafka_settings
    monkeypatch.setattr(Connection, "librdkafka_settings", lambda self: {**plain(self), "debug": "protocol"})
    monkeypatch.setattr(kafka_cluster, "client_log", lambda _: client_log(sent.append))
    cluster = KafkaCluster(Connection(bootstrap_servers=(applications.servers,)), "agent-1")
    for _ in range(2):
        assert cluster.partition_counts()[applications.orders] == 2
    cluster._renewed.client.poll(0)  # delivers the log
    sent.clear()
    for _ in range(5):
        cluster.partition_counts()
    cluster._renewed.client.poll(0)
    assert len([line for line in sent if "Sent MetadataRequest" in line]) == 5


def test_the_committed_number_of_processors_is_read(applications: Applications) -> None:
    group = f"counting-{applications.suffix}"
    cluster = KafkaCluster(Connection(bootstrap_servers=(applications.servers,)), "agent-1")
    topics = {group: {applications.orders: 2}}
    assert cluster.offset_metadata(topics) == {group: ()}
    for count in (None, 2):
        texts_by_partition = {0: OffsetMetadata(3).encode(0), 1: OffsetMetadata(3).encode(0, count=count)}
        RealCluster(applications.servers).commit(group, applications.orders, texts_by_partition)
        found = cluster.offset_metadata(topics)[group]
        assert not isinstance(found, Problem)
        assert decode_count(found) == count
    RealCluster(applications.servers).commit(
        group,
        applications.orders,
        {0: OffsetMetadata(3).encode(0), 1: OffsetMetadata(3).encode(0, declared=2)},
    )
    found = cluster.offset_metadata(topics)[group]
    assert not isinstance(found, Problem)
    assert shows_processors(found)


class _UnreachableClient:
    """A client that lost its connection during a broker's pause and does not reconnect."""

    def poll(self, _seconds: float) -> int:
        return 0

    def list_topics(self, timeout: float) -> None:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT), timeout)


def test_client_without_answers_is_replaced(
    applications: Applications, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = KafkaCluster(Connection(bootstrap_servers=(applications.servers,)), "agent-1", 60.0)
    monkeypatch.setattr(cluster._renewed, "client", _UnreachableClient())
    monkeypatch.setattr(answering_broker, "_MOST_SECONDS", 60.0)
    with pytest.raises(ProblemsError, match="did not answer the request to describe the topics"):
        cluster.partition_counts()
    assert cluster.partition_counts()[applications.orders] == 2


@pytest.mark.every_broker
def test_validation_changes_nothing_and_has_result_for_each_topic(applications: Applications) -> None:
    cluster = KafkaCluster(Connection(bootstrap_servers=(applications.servers,)), "agent-1")
    shortfalls = [
        Shortfall("a", applications.changelog, 3, 5),
        Shortfall("a", applications.orders, 1, 2),
        Shortfall("a", applications.returns, 1, 2),
        Shortfall("a", f"nowhere-{applications.suffix}", 1, 2),
    ]
    results = cluster.expand(shortfalls, validate_only=True)
    assert [result.outcome for result in results] == [
        *(Outcome.EXPANDED, Outcome.ALREADY, Outcome.ALREADY, Outcome.FAILED),
    ]
    assert results[3].error == "UNKNOWN_TOPIC_OR_PART"
    assert applications.cluster.partitions(applications.changelog) == 3


def test_agent_started_late_finds_missing_partitions(applications: Applications) -> None:
    applications.cluster.expand(applications.orders, 5)
    with running(
        settings(applications.servers, unique_documents(applications.suffix), applications.suffix)
    ) as agent:
        applications.await_counts(5)
        applications.await_steady(agent)


def test_expansion_without_agent_is_notified_by_next_agent(applications: Applications) -> None:
    documents = unique_documents(applications.suffix)
    with running(
        settings(applications.servers, documents, applications.suffix, callback=RECORDING_PARTITIONER)
    ) as agent:
        applications.await_steady(agent)
        applications.cluster.expand(applications.orders, 4)
        await_true(lambda: len(agent.of(Notified)) == 2)
    recorded_calls()
    for name in [
        applications.orders,
        *(name for name in required_counts(applications, 6) if name not in applications.sources(0)),
    ]:
        applications.cluster.expand(name, 6)
    with running(
        settings(applications.servers, documents, applications.suffix, callback=RECORDING_PARTITIONER)
    ) as agent:
        await_true(lambda: len(agent.of(Notified)) == 2)
        assert sorted(recorded_calls()) == [(4, 6), (4, 6)]
        assert not agent.of(AttemptEnded)


def required_counts(applications: Applications, orders: int) -> TopicCounts:
    return set_up(unique_documents(applications.suffix), applications.sources(orders))


def test_autoscaling_is_read_from_changed_files(applications: Applications, tmp_path: Path) -> None:
    on = texts(applications.suffix)
    files = [tmp_path / "totals.yaml", tmp_path / "ranks.yaml"]
    for file, text in zip(files, on, strict=True):
        file.write_text(text)
    files[0].write_text(on[0].replace("enabled: true", "enabled: false"))
    following = attrs.evolve(
        settings(applications.servers, (), applications.suffix), documents=DocumentFiles([tmp_path])
    )
    with running(following) as agent:
        applications.await_steady(agent)
        applications.cluster.expand(applications.orders, 6)
        await_true(lambda: agent.phase(applications.totals_app) is Phase.STOPPED)
        assert (
            agent.state.applications[applications.totals_app].error_code == INCOMPLETE_SOURCE_TOPIC_METADATA
        )
        files[0].write_text("topology: [")
        await_true(lambda: agent.of(DocumentsRefused))
        assert agent.phase(applications.totals_app) is Phase.STOPPED
        files[0].write_text(on[0])
        applications.await_counts(6)
        await_true(lambda: len(agent.of(Expanded)) == 2)


def test_deleted_source_is_missing_and_smaller_source_is_error_with_fix(applications: Applications) -> None:
    documents = unique_documents(applications.suffix)
    with running(settings(applications.servers, documents, applications.suffix)) as agent:
        applications.await_steady(agent)
        applications.cluster.delete(applications.orders, applications.returns)
        await_true(lambda: agent.phase(applications.totals_app) is Phase.REFUSED)
        await_true(
            lambda: (
                {problem.code for problem in agent.state.applications[applications.totals_app].problems}
                == {"MissingSourceTopic"}
            )
        )
        applications.cluster.create(applications.orders, 1)
        applications.cluster.create(applications.returns, 1)
        await_true(
            lambda: (
                {problem.code for problem in agent.state.applications[applications.totals_app].problems}
                == {"OverPartitionedInternalTopic"}
            )
        )
        problem = agent.state.applications[applications.totals_app].problems[0]
        assert "were they re-created" in problem.summary
        assert problem.fix
        assert applications.cluster.partitions(applications.changelog) == 3
        applications.cluster.expand(applications.orders, 3)
        applications.await_steady(agent)


class _Lagging(KafkaCluster):
    """A cluster whose metadata shows the old counts in every second response."""

    reads: ClassVar[int] = 0
    old: ClassVar[TopicCounts] = {}

    def partition_counts(self) -> TopicCounts:
        counts = super().partition_counts()
        type(self).reads += 1
        if type(self).reads % 2:
            return {**counts, **{name: count for name, count in self.old.items() if name in counts}}
        return counts


def test_lagging_metadata_repeats_and_refuses_nothing(
    applications: Applications, monkeypatch: pytest.MonkeyPatch
) -> None:
    _Lagging.old = {
        name: applications.cluster.partitions(name) or 0 for name in required_counts(applications, 2)
    }
    monkeypatch.setattr(run_module, "KafkaCluster", _Lagging)
    documents = unique_documents(applications.suffix)
    with running(
        settings(applications.servers, documents, applications.suffix, callback=RECORDING_PARTITIONER)
    ) as agent:
        applications.await_steady(agent)
        applications.cluster.expand(applications.orders, 6)
        applications.await_counts(6)
        await_true(lambda: len(agent.of(Notified)) == 2)
        _Lagging.old = {}
    assert len([event for event in agent.events if isinstance(event, AttemptEnded)]) == 2
    assert not agent.of(ApplicationRefused)
    assert sorted(recorded_calls()) == [(3, 6), (3, 6)]
