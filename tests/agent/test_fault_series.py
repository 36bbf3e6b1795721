"""Random faults of two agents and their broker while a source topic grows; the results are reconciled.

After each fault one agent leads again within a bound, and all topics get exactly the required partitions. At
the end the journal is reconciled: each expansion begins where the one before it ended, and ended once.
"""

import random
import signal
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from itertools import pairwise
from pathlib import Path
from threading import Event

import attrs
import pytest

from headwater.kafka import Connection
from headwater.kafka.expansion_journal import coordination_topic, read_lines
from headwater.kafka.journal_lines import JournalLine, valid_lines
from headwater.model.expansions import ExpansionEntry, Stage
from headwater.toolchain.broker import Broker, Settings
from tests.agent.live_documents import texts, unique_documents
from tests.agent.running import await_counts, await_true, make_topics
from tests.agent.simulation import set_up
from tests.control.agent_process import AgentProcess
from tests.pulumi.cluster import Cluster

pytestmark = [pytest.mark.broker, pytest.mark.slow, pytest.mark.timeout(1_200)]

_QUICK = {"group.min.session.timeout.ms": "1000", "offsets.topic.num.partitions": "1"}
_SESSION_MS = 3_000
_BOUND_SECONDS = 180.0
_FIRST = 2
_RETURNS = 3


class Fault(Enum):
    KILL_LEADER = "SIGKILL to the leader"
    KILL_STANDBY = "SIGKILL to the agent that does not lead"
    KILL_BOTH = "SIGKILL to both agents"
    PAUSE_LEADER = "SIGSTOP of the leader for longer than its session"
    PAUSE_BOTH = "SIGSTOP of both agents for longer than their sessions"
    PAUSE_BROKER = "SIGSTOP of the broker for up to two sessions"
    KILL_BROKER = "SIGKILL of the broker"


_IN_SHORT = (Fault.KILL_LEADER, Fault.PAUSE_LEADER, Fault.PAUSE_BROKER, Fault.KILL_BROKER)


@attrs.define
class Deployment:
    """Two agents, one broker, and the applications whose topics the agents expand."""

    broker: Broker
    cluster: Cluster
    suffix: str
    documents: Path
    agents: dict[str, AgentProcess] = attrs.field(factory=dict)

    def start_missing_agents(self) -> None:
        for client_id in ("agent-1", "agent-2"):
            if client_id not in self.agents:
                servers = self.broker.bootstrap_servers
                self.agents[client_id] = AgentProcess(
                    client_id, self.documents, servers, self.suffix, 500, session_timeout_ms=_SESSION_MS
                )

    def sources(self, orders: int) -> dict[str, int]:
        return {f"orders-{self.suffix}": orders, f"returns-{self.suffix}": _RETURNS}

    def leaders(self) -> list[str]:
        """Return the agents that report that they lead."""
        return [each.client_id for each in self.agents.values() if each.value("headwater_agent_leader")]

    def await_leader(self) -> str:
        """Return the agent that leads; right after a fault, none or the former one may report it, too."""
        found: list[str] = []

        def is_one() -> bool:
            found[:] = self.leaders()
            return len(found) == 1

        await_true(is_one, _BOUND_SECONDS)
        return found[0]

    def kill(self, client_id: str) -> None:
        agent = self.agents.pop(client_id)
        assert agent.end(signal.SIGKILL) == -signal.SIGKILL

    def send(self, number: signal.Signals) -> None:
        for agent in self.agents.values():
            agent.process.send_signal(number)

    def lines(self) -> list[JournalLine]:
        connection = Connection(bootstrap_servers=(self.broker.bootstrap_servers,))
        return list(read_lines(connection, coordination_topic(self.suffix), "test"))

    def entries(self, application: str) -> list[ExpansionEntry]:
        found = [line.entry() for line in valid_lines(self.lines())]
        return [entry for entry in found if entry is not None and entry.application.startswith(application)]

    def close(self) -> None:
        for agent in self.agents.values():
            agent.process.send_signal(signal.SIGCONT)
            agent.end(signal.SIGKILL)


@pytest.fixture
def deployment(
    own_broker: Callable[..., Broker], tmp_path: Path, unique: Callable[[str], str]
) -> Iterator[Deployment]:
    suffix = unique("x").removeprefix("x-")
    folder = tmp_path / "documents"
    folder.mkdir()
    for number, text in enumerate(texts(suffix)):
        (folder / f"{number}.yaml").write_text(text)
    with own_broker(Settings(overrides=_QUICK)) as broker:
        deployment = Deployment(broker, Cluster(broker.bootstrap_servers), suffix, folder)
        make_topics(deployment.cluster, unique_documents(suffix), deployment.sources(_FIRST))
        try:
            yield deployment
        finally:
            deployment.close()


def test_each_expansion_completes_once_after_a_few_faults(deployment: Deployment) -> None:
    _run_series(deployment, _IN_SHORT, random.Random(1))  # noqa: S311 - a repeatable choice, not for security


@pytest.mark.soak
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("seed", range(2, 5))
def test_each_expansion_completes_once_after_thirty_faults(deployment: Deployment, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - as above
    kinds = [*Fault, *chance.choices(list(Fault), k=30 - len(Fault))]
    chance.shuffle(kinds)
    _run_series(deployment, kinds, chance)


def _run_series(deployment: Deployment, kinds: Sequence[Fault], chance: random.Random) -> None:
    documents, orders = unique_documents(deployment.suffix), _FIRST
    deployment.start_missing_agents()
    deployment.await_leader()
    for kind in kinds:
        leader = deployment.await_leader()
        orders += 1
        deployment.cluster.expand(f"orders-{deployment.suffix}", orders)
        Event().wait(chance.uniform(0, 2.5))  # the moment of the fault
        _inject(deployment, kind, leader, chance)
        deployment.start_missing_agents()
        await_counts(deployment.cluster, documents, deployment.sources(orders), _BOUND_SECONDS)
        deployment.await_leader()
    for name, count in set_up(documents, deployment.sources(orders)).items():
        assert deployment.cluster.partitions(name) == count, name
    for application in ("totals-app", "ranks-app"):
        await_true(lambda app=application: _is_over(deployment, app, orders), _BOUND_SECONDS)  # type: ignore[misc]
        _reconcile(deployment.entries(application), orders)


def _inject(deployment: Deployment, kind: Fault, leader: str, chance: random.Random) -> None:
    longer_than_session = _SESSION_MS / 1_000 * chance.uniform(1.2, 2)
    match kind:
        case Fault.KILL_LEADER:
            deployment.kill(leader)
        case Fault.KILL_STANDBY:
            deployment.kill(next(each for each in deployment.agents if each != leader))
        case Fault.KILL_BOTH:
            for client_id in list(deployment.agents):
                deployment.kill(client_id)
        case Fault.PAUSE_LEADER:
            process = deployment.agents[leader].process
            process.send_signal(signal.SIGSTOP)
            Event().wait(longer_than_session)
            process.send_signal(signal.SIGCONT)
        case Fault.PAUSE_BOTH:
            deployment.send(signal.SIGSTOP)
            Event().wait(longer_than_session)
            deployment.send(signal.SIGCONT)
        case Fault.PAUSE_BROKER:
            deployment.broker.pause()
            Event().wait(chance.uniform(0.2, 2 * _SESSION_MS / 1_000))
            deployment.broker.resume()
        case Fault.KILL_BROKER:
            deployment.broker.kill()
            deployment.broker.start()


def _is_over(deployment: Deployment, application: str, orders: int) -> bool:
    entries = deployment.entries(application)
    return (
        bool(entries) and entries[-1].stage is Stage.NOTIFIED and set(entries[-1].after.values()) == {orders}
    )


def _reconcile(entries: list[ExpansionEntry], orders: int) -> None:
    """Check that no count was expanded twice: each expansion ends once, where the next one begins."""
    ended = [entry for entry in entries if entry.stage is Stage.NOTIFIED]
    assert len({entry.number for entry in ended}) == len(ended)
    for earlier, later in pairwise(ended):
        assert later.number > earlier.number
        assert earlier.after == later.before
        assert all(later.after[topic] > count for topic, count in later.before.items())
    assert set(ended[-1].after.values()) == {orders}
