"""Faults of a real broker during an expansion: the failure clock starts, and the agent recovers."""

import threading
from collections.abc import Callable, Iterator, Sequence

import attrs
import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # public, but not exported explicitly
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from headwater.agent.events import (
    AttemptEnded,
    AttemptFailed,
    ClusterReadable,
    ClusterUnreadable,
    GaveUp,
    JournalAvailable,
    JournalUnavailable,
    Notified,
)
from headwater.agent.kafka_cluster import KafkaCluster
from headwater.agent.run import Agent, AgentSettings
from headwater.agent.state import Outcome, Phase, Shortfall, TopicResult
from headwater.kafka import Connection
from headwater.model.topology import TopologyDocument
from headwater.toolchain.broker import Broker, SaslUser, Settings
from tests.agent.live_documents import RECORDING_PARTITIONER, recorded_calls, texts
from tests.agent.running import Recorder, await_counts, await_true, make_topics, running, settings
from tests.agent.simulation import documents
from tests.pulumi.cluster import Cluster

pytestmark = [pytest.mark.broker, pytest.mark.slow]

AGENT = SaslUser(name="agent", password="grey-stork-0815")
QUICK = {"group.min.session.timeout.ms": "1000", "offsets.topic.num.partitions": "1"}
WINDOWS = {"controller.quota.window.num": "2", "controller.quota.window.size.seconds": "1"}


@attrs.frozen
class RunningApplication:
    broker: Broker
    cluster: Cluster
    suffix: str
    timeout_ms: int

    @property
    def documents(self) -> tuple[TopologyDocument, ...]:
        config = f"config: {{partition.autoscaling.timeout.ms: {self.timeout_ms}, "
        return documents(*(text.replace("config: {", config) for text in texts(self.suffix)))

    @property
    def app(self) -> str:
        return f"totals-app-{self.suffix}"

    @property
    def changelog(self) -> str:
        return f"{self.app}-counts-changelog"

    @property
    def repartition(self) -> str:
        return f"{self.app}-by-customer-repartition"

    def sources(self, orders: int) -> dict[str, int]:
        return {f"orders-{self.suffix}": orders, f"returns-{self.suffix}": 3}

    def expand_orders(self, orders: int) -> None:
        self.cluster.expand(f"orders-{self.suffix}", orders)

    def await_counts(self, orders: int, seconds: float = 60) -> None:
        await_counts(self.cluster, self.documents, self.sources(orders), seconds)

    def await_steady(self, agent: Recorder) -> None:
        await_true(lambda: agent.state.is_recovered and agent.phase(self.app) is Phase.STEADY, 60)


@pytest.fixture(scope="module")
def broker_of_module(own_broker: Callable[..., Broker]) -> Iterator[Broker]:
    with own_broker(Settings(sasl_users=(AGENT,), authorizer=True, overrides=QUICK | WINDOWS)) as broker:
        yield broker


@pytest.fixture
def broker(broker_of_module: Broker) -> Broker:
    """Return the broker, which a test that failed may have left killed or paused."""
    broker_of_module.start()
    broker_of_module.resume()
    return broker_of_module


@pytest.fixture
def application(broker: Broker, unique: Callable[[str], str]) -> RunningApplication:
    return set_up(broker, unique)


def set_up(broker: Broker, unique: Callable[[str], str], timeout_ms: int = 900_000) -> RunningApplication:
    application = RunningApplication(
        broker, Cluster(broker.bootstrap_servers), unique("x").removeprefix("x-"), timeout_ms
    )
    make_topics(application.cluster, application.documents, application.sources(2))
    recorded_calls()
    return application


def impatient(application: RunningApplication) -> AgentSettings:
    """Return the settings of an agent whose requests soon time out."""
    servers = application.broker.bootstrap_servers
    return settings(servers, application.documents, application.suffix, request_timeout_ms=3_000)


def outcomes(agent: Recorder) -> dict[str, list[Outcome]]:
    """Return topic → outcomes in order."""
    outcomes: dict[str, list[Outcome]] = {}
    for event in agent.events:
        if isinstance(event, AttemptEnded):
            for result in event.results:
                outcomes.setdefault(result.topic, []).append(result.outcome)
    return outcomes


def test_broker_hangs_longer_than_request_timeout(application: RunningApplication) -> None:
    with running(impatient(application)) as agent:
        application.await_steady(agent)
        application.expand_orders(6)
        application.broker.pause()
        try:
            await_true(lambda: agent.of(ClusterUnreadable) and agent.state.read_problems)
        finally:
            application.broker.resume()
        await_true(lambda: agent.of(ClusterReadable))
        application.await_counts(6)
        application.await_steady(agent)
    assert agent.state.failures == 0


@pytest.mark.soak  # a killed broker: `test_fault_series`
def test_broker_restarts_during_expansion(application: RunningApplication) -> None:
    with running(impatient(application)) as agent:
        application.await_steady(agent)
        application.expand_orders(5)
        application.broker.restart()
        application.await_counts(5)
        application.await_steady(agent)


@pytest.mark.soak  # with two agents: `test_fault_series`
def test_broker_is_killed_and_restarted(application: RunningApplication) -> None:
    with running(impatient(application)) as agent:
        application.await_steady(agent)
        application.broker.kill()
        await_true(lambda: agent.of(ClusterUnreadable))
        application.broker.start()
        application.expand_orders(7)
        application.await_counts(7)
        application.await_steady(agent)
    assert agent.state.failures == 0


@attrs.frozen
class AgentPermissions:
    """The permissions of the agent's user, which the super user grants and revokes."""

    admin: AdminClient
    suffix: str

    def allow(self, operation: AclOperation, kind: ResourceType, name: str) -> AclBinding:
        return self._set(operation, kind, name, ResourcePatternType.PREFIXED, AclPermissionType.ALLOW)

    def deny_alter(self, topic: str) -> AclBinding:
        return self.deny(AclOperation.ALTER, topic)

    def deny(self, operation: AclOperation, topic: str) -> AclBinding:
        return self._set(
            operation,
            ResourceType.TOPIC,
            topic,
            ResourcePatternType.LITERAL,
            AclPermissionType.DENY,
        )

    def revoke(self, binding: AclBinding) -> None:
        exactly = AclBindingFilter(
            binding.restype,
            binding.name,
            binding.resource_pattern_type,
            binding.principal,
            binding.host,
            binding.operation,
            binding.permission_type,
        )
        for future in self.admin.delete_acls([exactly]).values():
            assert future.result()

    def _set(
        self,
        operation: AclOperation,
        kind: ResourceType,
        name: str,
        pattern: ResourcePatternType,
        permission: AclPermissionType,
    ) -> AclBinding:
        binding = AclBinding(kind, name, pattern, f"User:{AGENT.name}", "*", operation, permission)
        for future in self.admin.create_acls([binding]).values():
            future.result()
        return binding


@pytest.fixture
def permissions(application: RunningApplication) -> Iterator[AgentPermissions]:
    """Grant all permissions that an agent needs (docs/agent-operations.md)."""
    granted = AgentPermissions(
        AdminClient({"bootstrap.servers": application.broker.bootstrap_servers}), application.suffix
    )
    group = f"headwater-agent-{application.suffix}"
    bindings = [
        granted.allow(operation, ResourceType.TOPIC, name)
        for operation, name in (
            *((AclOperation.DESCRIBE, word) for word in ("totals", "ranks", "orders", "returns")),
            *((AclOperation.ALTER, word) for word in ("totals", "ranks")),
            *(
                (operation, group)
                for operation in (AclOperation.CREATE, AclOperation.READ, AclOperation.WRITE)
            ),
        )
    ]
    bindings.append(granted.allow(AclOperation.READ, ResourceType.GROUP, group))
    bindings += [
        granted.allow(AclOperation.DESCRIBE, ResourceType.GROUP, word) for word in ("totals", "ranks")
    ]
    yield granted
    for binding in bindings:
        granted.revoke(binding)


def login(broker: Broker) -> Connection:
    return Connection(
        bootstrap_servers=(broker.address("SASL_PLAINTEXT"),),
        protocol="SASL_PLAINTEXT",
        mechanism="PLAIN",
        username=AGENT.name,
        password=AGENT.password,
    )


def test_failed_topic_holds_back_only_upstream_topics(
    application: RunningApplication, permissions: AgentPermissions
) -> None:
    """After a partial success, only the failed topics are retried, and the callback is called once."""
    refused = permissions.deny_alter(f"totals-{application.suffix}")
    secured = settings(
        "",
        application.documents,
        application.suffix,
        callback=RECORDING_PARTITIONER,
        connection=login(application.broker),
    )
    with running(secured) as agent:
        application.await_steady(agent)
        application.expand_orders(6)
        await_true(lambda: len(agent.of(AttemptFailed)) > 1)
        assert application.cluster.partitions(application.changelog) == 6
        assert application.cluster.partitions(application.repartition) == 3
        assert outcomes(agent)[f"totals-{application.suffix}"][0] is Outcome.FAILED
        assert outcomes(agent)[application.repartition][0] is Outcome.HELD_BACK
        failed = agent.of(AttemptFailed)[0]
        assert isinstance(failed, AttemptFailed)
        assert "TOPIC_AUTHORIZATION_FAILED" in failed.reasons[0]
        (problem,) = agent.state.applications[application.app].reported_problems
        assert (problem.code, problem.topic) == ("NotAuthorized", f"totals-{application.suffix}")
        assert (
            "Grant the agent's user Alter on the topic: `kafka-acls.sh --bootstrap-server BROKER --add"
            in problem.fix
        )
        permissions.revoke(refused)
        application.await_counts(6)
        await_true(lambda: not agent.state.applications[application.app].reported_problems)
        await_true(lambda: len(agent.of(Notified)) == 2)
    assert outcomes(agent)[application.changelog] == [Outcome.EXPANDED]
    assert sorted(recorded_calls()) == [(3, 6), (3, 6)]


def test_permissions_are_revoked_and_granted_again(
    application: RunningApplication, permissions: AgentPermissions
) -> None:
    secured = settings("", application.documents, application.suffix, connection=login(application.broker))
    with running(secured) as agent:
        application.await_steady(agent)
        binding = permissions.deny_alter(application.changelog)
        application.expand_orders(4)
        await_true(lambda: agent.of(AttemptFailed))
        permissions.revoke(binding)
        application.await_counts(4)
        application.await_steady(agent)
        hidden = permissions._set(
            AclOperation.DESCRIBE,
            ResourceType.TOPIC,
            f"orders-{application.suffix}",
            ResourcePatternType.LITERAL,
            AclPermissionType.DENY,
        )
        await_true(lambda: agent.phase(application.app) is Phase.REFUSED)
        (problem,) = agent.state.applications[application.app].problems
        assert problem.code == "MissingSourceTopic"
        assert "permission to describe" in problem.fix
        permissions.revoke(hidden)
        application.await_steady(agent)
        hidden = permissions.deny(AclOperation.DESCRIBE, application.changelog)
        await_true(lambda: agent.state.applications[application.app].missing_topics)
        (problem,) = agent.state.applications[application.app].problems
        assert problem.topic == application.changelog
        assert "finds the topic, grant the agent's user Describe and Alter on it." in problem.fix
        permissions.revoke(hidden)
        await_true(lambda: not agent.state.applications[application.app].problems)


def test_agent_gives_up_once_after_timeout_and_keeps_running(
    broker: Broker, unique: Callable[[str], str]
) -> None:
    application = set_up(broker, unique, timeout_ms=3_000)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    permissions = AgentPermissions(admin, application.suffix)
    everything = [
        permissions.allow(AclOperation.ALL, kind, name)
        for kind, name in (
            *((ResourceType.TOPIC, word) for word in ("totals", "ranks", "orders", "returns", "headwater")),
            *((ResourceType.GROUP, word) for word in ("totals", "ranks", "headwater")),
        )
    ]
    denied = permissions.deny_alter(application.changelog)
    secured = settings(
        "",
        application.documents,
        application.suffix,
        callback=RECORDING_PARTITIONER,
        connection=login(broker),
    )
    with running(secured) as agent:
        application.await_steady(agent)
        application.expand_orders(6)
        await_true(lambda: agent.phase(application.app) is Phase.GIVEN_UP)
        assert agent.state.failures == 1
        (gave_up,) = agent.of(GaveUp)
        assert isinstance(gave_up, GaveUp)
        assert 3_000 <= gave_up.failing_for_ms < 60_000
        assert [problem.topic for problem in gave_up.problems] == [application.changelog]
        assert agent.state.applications[application.app].reported_problems == gave_up.problems
        permissions.revoke(denied)
        reads = agent.state.reads
        await_true(lambda: agent.state.reads > reads + 2)
        assert application.cluster.partitions(application.changelog) == 3
        application.expand_orders(7)
        application.await_counts(7)
        await_true(lambda: len(agent.of(Notified)) >= 2)
        assert agent.state.failures == 1
    assert (3, 7) in recorded_calls()
    for binding in everything:
        permissions.revoke(binding)


def test_permission_to_write_the_journal_is_revoked_and_granted_again(
    application: RunningApplication, permissions: AgentPermissions
) -> None:
    journal = f"headwater-agent-{application.suffix}"
    secured = settings("", application.documents, application.suffix, connection=login(application.broker))
    with running(secured) as agent:
        application.await_steady(agent)
        denied = permissions.deny(AclOperation.WRITE, journal)
        application.expand_orders(6)
        await_true(lambda: agent.of(JournalUnavailable))
        (problem,) = agent.state.journal_problems
        assert (problem.code, problem.topic) == ("NotAuthorized", journal)
        assert f"Grant the user Write on topic {journal}" in problem.fix
        assert "--self --for agent" in problem.fix
        permissions.revoke(denied)
        application.await_counts(6)
        await_true(lambda: agent.of(JournalAvailable))


def test_a_single_run_ends_in_time_if_the_broker_stops_during_the_expansion(
    application: RunningApplication, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The expansion itself would be tried for a quarter of an hour (partition.autoscaling.timeout.ms)."""
    broker = application.broker
    application.expand_orders(6)
    expand = KafkaCluster.expand

    def stop_and_expand(
        cluster: KafkaCluster, shortfalls: Sequence[Shortfall], *, validate_only: bool
    ) -> tuple[TopicResult, ...]:
        if not validate_only:
            broker.pause()
        return expand(cluster, shortfalls, validate_only=validate_only)

    monkeypatch.setattr(KafkaCluster, "expand", stop_and_expand)
    recorder = Recorder()
    assert not Agent(impatient(application), recorder).run_once(timeout_ms=10_000)
    # After partition.autoscaling.timeout.ms it would have given up.
    assert not recorder.of(GaveUp)
    ended = [event for event in recorder.events if isinstance(event, AttemptEnded)]
    assert not any(result.is_success for event in ended for result in event.results)
    broker.resume()
    # A client that is closing when a later test kills the broker would not end.
    await_true(lambda: "leadership-close" not in [each.name for each in threading.enumerate()])


def test_controller_mutation_quota_delays_expansion(application: RunningApplication) -> None:
    """The broker mutes the connection to limit the rate: requests time out and take effect later.

    The last test of the broker: the quota stays.
    """
    with running(impatient(application)) as agent:
        application.await_steady(agent)
        application.broker.limit_topic_changes(1)
        application.expand_orders(6)
        await_true(lambda: agent.of(AttemptFailed) or agent.of(ClusterUnreadable), 100)
        application.await_counts(6, seconds=100)
        application.await_steady(agent)
    assert agent.state.failures == 0
