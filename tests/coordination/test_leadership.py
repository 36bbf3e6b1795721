"""Exactly one of several agents leads, also after failures of agents and of the broker."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # public, but not exported explicitly
    AdminClient,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from headwater.agent import leadership as leadership_module
from headwater.agent.leadership import committed_term, next_term
from headwater.agent.ports import NoLongerLeaderError
from headwater.agent.run import Coordination
from headwater.kafka.expansion_journal import coordination_topic
from headwater.kafka.group_messages import GroupDescription
from headwater.model.expansions import Stage
from headwater.toolchain.broker import Broker
from headwater.toolchain.broker.local import LocalBroker
from headwater.toolchain.broker.readiness import until
from tests.coordination.conftest import SESSION_MS, Group
from tests.coordination.leader_process import entry
from tests.groups import describe_group
from tests.runtime.spark.kafka_topics import Topics

_ROOT = Path(__file__).parents[2]
_LONG_SESSION_MS = 60_000
"""Long enough to distinguish an immediate hand-over from one after the session time-out."""
_RESPONSE_SECONDS = 10 * SESSION_MS / 1_000
"""Until a member notices a broker that hangs: at the latest after a session time-out without an answer."""

MakeGroup = Callable[[str], Group]


@pytest.fixture(scope="module")
def broker_of_module(own_broker: Callable[[], Broker]) -> Iterator[Broker]:
    with own_broker() as broker:
        yield broker


@pytest.fixture
def broker(broker_of_module: Broker) -> Broker:
    """Return a broker to pause and stop; a test that failed may have left it so."""
    broker_of_module.start()
    broker_of_module.resume()
    return broker_of_module


@pytest.mark.broker
@pytest.mark.every_broker
def test_one_agent_leads_and_hands_over_at_its_end(kafka: LocalBroker, group: MakeGroup) -> None:
    agents = group(kafka.bootstrap_servers)
    members = [agents.join(f"agent-{number}", _LONG_SESSION_MS) for number in range(3)]
    terms = []
    while members:
        leader, term = agents.leader(members)
        terms.append(term)
        # A member that joins later may take the partition away for a moment: then none leads.
        assert until(partial(_only_one_leads, agents, tuple(members)), 60)
        members.remove(leader)
        ended = time.monotonic()
        leader.close()
        if members:
            agents.leader(members)
            assert time.monotonic() - ended < _LONG_SESSION_MS / 1_000
    assert terms == sorted(set(terms))
    assert not agents.has_waited


def _only_one_leads(agents: Group, members: Sequence[Coordination]) -> bool:
    leaders = sum(found is not None for found in agents.terms(members))
    assert leaders <= 1
    return leaders == 1


@pytest.mark.broker
def test_leader_stays_leader_when_another_agent_joins(kafka: LocalBroker, group: MakeGroup) -> None:
    agents = group(kafka.bootstrap_servers)
    first = agents.join("first", _LONG_SESSION_MS)
    _, term = agents.leader([first])
    second = agents.join("second", _LONG_SESSION_MS)
    assert until(lambda: bool(agents.terms([first, second])) and len(_members(agents)) > 1, 60)
    leader, later = agents.leader([first, second])
    assert (leader, later) == (first, term)


@pytest.mark.broker
def test_topic_is_created_with_one_partition_and_compaction(kafka: LocalBroker, group: MakeGroup) -> None:
    agents = group(kafka.bootstrap_servers)
    agents.leader([agents.join("agent")])
    topic = coordination_topic(agents.name)
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
    assert len(admin.list_topics(topic, timeout=90).topics[topic].partitions) == 1
    resource = ConfigResource(ResourceType.TOPIC, topic)
    assert admin.describe_configs([resource])[resource].result()["cleanup.policy"].value == "compact"


@pytest.mark.broker
def test_another_agent_resumes_after_kill(kafka: LocalBroker, group: MakeGroup) -> None:
    agents = group(kafka.bootstrap_servers)
    with _running_leader(agents) as (process, term):
        successor = agents.join("successor")
        assert agents.terms([successor]) == [None]
        process.kill()
        _, later = agents.leader([successor])
        assert later > term
        found = successor.journal.latest(later)
    assert found == {"orders-app": entry("subject", Stage.STARTED)}
    successor.journal.append(entry("successor", Stage.EXPANDED), later)
    assert successor.journal.latest(later)["orders-app"].client_id == "successor"


@pytest.mark.broker
def test_paused_agent_confirms_leadership_before_acting(kafka: LocalBroker, group: MakeGroup) -> None:
    agents = group(kafka.bootstrap_servers)
    with _running_leader(agents) as (process, term):
        successor = agents.join("successor")
        process.send_signal(signal.SIGSTOP)
        _, later = agents.leader([successor])
        assert successor.journal.latest(later)["orders-app"].stage is Stage.STARTED
        process.send_signal(signal.SIGCONT)
        assert _answers(process) == ["confirmed False", "replaced"]
        # Its late entry comes after the beginning of the newer term in the log and is ignored.
        assert successor.journal.latest(later)["orders-app"].stage is Stage.STARTED
        assert later > term
        # The paused agent joins the group again; until that is done, the group accepts no commits.
        assert until(lambda: agents.terms([successor]) and successor.leadership.confirm(later), 90)


@pytest.mark.broker
def test_hanging_loop_loses_leadership(
    kafka: LocalBroker, group: MakeGroup, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its heartbeats continue; it loses leadership because the loop no longer polls it."""
    monkeypatch.setattr("headwater.agent.leadership._LONGEST_ITERATION_MS", SESSION_MS)
    agents = group(kafka.bootstrap_servers)
    hanging = agents.join("hanging")
    _, term = agents.leader([hanging])
    successor = agents.join("successor")
    _, later = agents.leader([successor])
    assert later > term
    assert not hanging.leadership.confirm(term)
    assert hanging.leadership.poll() is None


@pytest.mark.broker
def test_late_request_changes_nothing_wrongly(kafka: LocalBroker, unique: Callable[[str], str]) -> None:
    """A leader that was paused after its confirmation may still send requests; their counts are absolute."""
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
    topic = unique("orders-app-counts-changelog")
    admin.create_topics([NewTopic(topic, 3, 1)])[topic].result(90)
    admin.create_partitions([NewPartitions(topic, 6)])[topic].result(90)  # by the new leader
    for late in (6, 5, 3):
        with pytest.raises(KafkaException, match="INVALID_PARTITIONS"):
            admin.create_partitions([NewPartitions(topic, late)])[topic].result(90)
    assert until(lambda: len(admin.list_topics(topic, timeout=90).topics[topic].partitions) == 6, 60)


@pytest.mark.broker
def test_hanging_broker_leaves_one_leader(broker: Broker, group: MakeGroup) -> None:
    agents = group(broker.bootstrap_servers)
    members = [agents.join("one"), agents.join("two")]
    leader, term = agents.leader(members)
    broker.pause()
    begin = time.monotonic()
    assert not leader.leadership.confirm(term)
    assert time.monotonic() - begin < _RESPONSE_SECONDS
    # The broker hangs until no member leads, so for a session time-out at least.
    assert until(lambda: agents.terms(members) == [None, None], _RESPONSE_SECONDS)
    broker.resume()
    _, later = agents.leader(members)
    assert later >= term
    assert not leader.leadership.confirm(term) or later == term
    assert not agents.has_waited


@pytest.mark.broker
def test_leader_notices_a_hanging_broker_while_another_agent_joins(broker: Broker, group: MakeGroup) -> None:
    """librdkafka does not end the session of a member whose request to join is not answered."""
    agents = group(broker.bootstrap_servers)
    members = [agents.join("one")]
    _, term = agents.leader(members)

    def is_seen_joining(client_id: str) -> bool:
        members.append(agents.join(client_id))
        return until(lambda: bool(agents.terms(members)) and _is_rebalancing(agents), 20)

    # The group rebalances for about a second, which a busy machine may miss.
    assert any(is_seen_joining(client_id) for client_id in ("two", "three", "four"))
    broker.pause()
    assert until(lambda: not any(agents.terms(members)), _RESPONSE_SECONDS)
    broker.resume()
    _, later = agents.leader(members)
    assert later >= term
    assert not agents.has_waited


@pytest.mark.broker
def test_agents_can_start_before_broker(broker: Broker, group: MakeGroup) -> None:
    broker.stop()
    agents = group(broker.bootstrap_servers)
    agent = agents.join("early")
    assert agents.terms([agent] * 3) == [None] * 3
    broker.start()
    agents.leader([agent])
    assert not agents.has_waited


@pytest.mark.broker
def test_closed_agent_does_not_lead(kafka: LocalBroker, group: MakeGroup) -> None:
    agents = group(kafka.bootstrap_servers)
    agent = agents.join("agent")
    _, term = agents.leader([agent])
    agent.close()
    assert agent.leadership.poll() is None
    assert not agent.leadership.confirm(term)
    with pytest.raises(NoLongerLeaderError):
        agent.journal.append(entry("agent", Stage.STARTED), term)


def test_terms_increase_and_start_at_current_time() -> None:
    assert committed_term("term 41 7") == 41
    assert next_term(41, 0, 1_790_000_000) == 42
    for metadata in (None, "", "by another client"):
        assert committed_term(metadata) is None
    assert next_term(None, 0, 1_790_000_000) == 1_790_000_000
    assert next_term(None, 1_780_000_000, 1_790_000_000) == 1_790_000_000
    assert next_term(None, 1_790_000_009, 1_790_000_000) == 1_790_000_010


@pytest.mark.broker
def test_the_first_term_after_commits_were_deleted_follows_the_journal(
    kafka: LocalBroker, group: MakeGroup, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock of the next leader is behind: its lines would be skipped as those of an earlier leader."""
    agents = group(kafka.bootstrap_servers)
    first = agents.join("first")
    _, term = agents.leader([first])
    first.journal.latest(term)
    first.journal.append(entry("first", Stage.STARTED), term)
    first.close()
    topics, name = Topics(kafka.bootstrap_servers), coordination_topic(agents.name)
    assert until(lambda: _delete_commits(topics, name), 90)
    behind = time.time() - 3_600
    monkeypatch.setattr(
        leadership_module, "time", SimpleNamespace(time=lambda: behind, monotonic=time.monotonic)
    )
    second = agents.join("second")
    _, later = agents.leader([second])
    assert later == term + 1
    second.journal.latest(later)
    second.journal.append(entry("second", Stage.EXPANDED), later)
    assert second.journal.latest(later)["orders-app"].client_id == "second"


def _delete_commits(topics: Topics, group: str) -> bool:
    """Delete the commits of a group when it has no member any more, as brokers do after a week."""
    try:
        topics.delete_group(group)
    except KafkaException:
        return False
    return True


@contextmanager
def _running_leader(agents: Group) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Run an agent that leads; kill it at the end in any state."""
    [address] = agents.connection.bootstrap_servers
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.coordination.leader_process", address, agents.name, str(SESSION_MS)],
        cwd=_ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            assert process.stdout is not None
            word, term = process.stdout.readline().split()
            assert word == "leads"
            yield process, int(term)
        finally:
            process.kill()


def _answers(process: subprocess.Popen[str]) -> list[str]:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("continue\n")
    process.stdin.flush()
    return [process.stdout.readline().strip() for _ in range(2)]


def _is_rebalancing(agents: Group) -> bool:
    return _described(agents).state != "Stable"


def _members(agents: Group) -> list[object]:
    return list(_described(agents).members)


def _described(agents: Group) -> GroupDescription:
    [address] = agents.connection.bootstrap_servers
    return describe_group(address, coordination_topic(agents.name))
