"""Status and metrics of real `headwater agent run` processes during expansions, failures and switches."""

import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from headwater.kafka.expansion_journal import coordination_topic
from headwater.toolchain.broker import Broker
from headwater.toolchain.broker.local import LocalBroker
from headwater.toolchain.broker.readiness import until
from tests.agent.live_documents import texts, unique_documents
from tests.agent.running import await_counts, make_topics
from tests.control.agent_process import ROOT, SECONDS, AgentProcess
from tests.groups import describe_group
from tests.listening_sockets import is_loopback, listening_addresses
from tests.preloaded import headwater
from tests.pulumi.cluster import Cluster

pytestmark = pytest.mark.broker

SESSION_SECONDS = 6


class Deployment:
    """Two connected applications whose sources have 2 and 3 partitions, and their agents."""

    def __init__(self, servers: str, suffix: str, folder: Path) -> None:
        self.servers, self.suffix, self.folder = servers, suffix, folder
        self.totals_app, self.orders = f"totals-app-{suffix}", f"orders-{suffix}"
        self._cluster = Cluster(servers)
        self._agents: list[AgentProcess] = []
        for number, text in enumerate(texts(suffix)):
            (folder / f"{number}.yaml").write_text(text)
        make_topics(self._cluster, unique_documents(suffix), self._sources(2))

    def start(self, client_id: str, follow_up_ms: int = 300) -> AgentProcess:
        self._agents.append(AgentProcess(client_id, self.folder, self.servers, self.suffix, follow_up_ms))
        return self._agents[-1]

    def leader(self, *agents: AgentProcess) -> AgentProcess:
        assert until(lambda: _leaders(agents) == 1, SECONDS)
        # While an agent joins, the leader rejoins, and does not notice then that its session expires.
        assert until(lambda: self._members() == len(agents), SECONDS)
        for agent in agents:
            assert all(map(is_loopback, listening_addresses(agent.process.pid)))
        [leader] = [agent for agent in agents if agent.value("headwater_agent_leader")]
        assert until(lambda: leader.application(self.totals_app).get("phase") == "steady", SECONDS)
        return leader

    def _members(self) -> int:
        """Return the number of agents in the group; 0 while it rebalances."""
        group = describe_group(self.servers, coordination_topic(self.suffix))
        return len(group.members) if group.state == "Stable" else 0

    def expand_orders(self, orders: int) -> None:
        self._cluster.expand(self.orders, orders)

    def await_counts(self, orders: int) -> None:
        await_counts(self._cluster, unique_documents(self.suffix), self._sources(orders), SECONDS)

    def run(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [headwater(), "agent", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
        )

    def history(self) -> list[Mapping[str, Any]]:
        done = self.run(
            *("history", "--bootstrap-server", self.servers, "--group", self.suffix, "--format", "json")
        )
        expansions: list[Mapping[str, Any]] = json.loads(done.stdout)["expansions"]
        return expansions

    def close(self) -> None:
        for agent in self._agents:
            agent.process.kill()
            agent.process.wait()

    def _sources(self, orders: int) -> dict[str, int]:
        return {self.orders: orders, f"returns-{self.suffix}": 3}


@pytest.fixture
def deployment(kafka: LocalBroker, unique: Callable[[str], str], tmp_path: Path) -> Iterator[Deployment]:
    deployment = Deployment(kafka.bootstrap_servers, unique("x").removeprefix("x-"), tmp_path)
    yield deployment
    deployment.close()


def test_metrics_status_and_history_show_expansion(deployment: Deployment) -> None:
    one, two = deployment.start("agent-1"), deployment.start("agent-2")
    leader = deployment.leader(one, two)
    other = two if leader is one else one
    deployment.expand_orders(6)
    tasks = {"application_id": deployment.totals_app, "subtopology_id": "1"}
    for agent in (leader, other):  # both agents see the expansion by the leader
        agent.await_value(6, "current_subtopology_parallelism", **tasks)
        agent.await_value(6, "expected_subtopology_parallelism", **tasks)
        assert agent.value("num_autoscaling_failures_total", client_id=agent.client_id) == 0
        assert agent.endpoint.get("/health/ready").status == agent.endpoint.get("/health/live").status == 200
    deployment.await_counts(6)
    assert until(lambda: _is_over(deployment), SECONDS)
    leader.await_line("callback called")
    # The count is higher if brokers take longer to distribute metadata than the agents wait.
    assert leader.value("headwater_agent_convergence_seconds_count", application_id=deployment.totals_app)
    assert other.value("headwater_agent_convergence_seconds_count") is None
    assert leader.value("headwater_agent_admin_request_seconds_count", operation="metadata")

    table = deployment.run("status", one.url, two.url)
    assert table.returncode == 0
    assert table.stdout.count(" leader ") == table.stdout.count(" standby ") == 1
    assert deployment.totals_app in table.stdout

    [expansion] = [each for each in deployment.history() if each["application"] == deployment.totals_app]
    assert expansion["sources"] == [{"topic": deployment.orders, "from": 2, "to": 6}]
    assert [stage["stage"] for stage in expansion["stages"]] == ["started", "expanded", "notified"]
    assert {topic["by"] for topic in expansion["topics"]} == {leader.client_id}
    assert (one.end(), two.end()) == (0, 0)


@pytest.mark.soak  # `agent/test_fault_series` kills and pauses leaders, too
def test_another_agent_finishes_expansion_of_killed_leader(deployment: Deployment) -> None:
    one, two = deployment.start("agent-1", 5_000), deployment.start("agent-2", 5_000)
    leader = deployment.leader(one, two)
    next_leader = two if leader is one else one
    deployment.expand_orders(7)
    while leader.await_line("attempt ended")["application"] != deployment.totals_app:
        pass
    leader.end(signal.SIGKILL)
    deployment.await_counts(7)
    next_leader.await_line("leadership gained")
    next_leader.await_value(1, "headwater_agent_leader")
    assert until(lambda: _is_over(deployment), SECONDS)
    [expansion] = [each for each in deployment.history() if each["application"] == deployment.totals_app]
    assert expansion["stages"][0]["clientId"] == leader.client_id
    assert expansion["stages"][-1]["clientId"] == next_leader.client_id


@pytest.mark.soak  # as above
def test_paused_leader_does_not_overwrite_new_leader(deployment: Deployment) -> None:
    one, two = deployment.start("agent-1"), deployment.start("agent-2")
    paused = deployment.leader(one, two)
    next_leader = two if paused is one else one
    paused.process.send_signal(signal.SIGSTOP)
    deployment.expand_orders(8)
    deployment.await_counts(8)
    assert until(lambda: _is_over(deployment), SECONDS)
    paused.process.send_signal(signal.SIGCONT)
    paused.await_line("leadership lost")
    paused.await_value(0, "headwater_agent_leader")
    next_leader.await_value(1, "headwater_agent_leader")
    paused.await_value(
        8, "current_subtopology_parallelism", application_id=deployment.totals_app, subtopology_id="1"
    )
    stages = [stage for expansion in deployment.history() for stage in expansion["stages"]]
    assert {stage["clientId"] for stage in stages} == {next_leader.client_id}
    assert len({stage["term"] for stage in stages}) == 1


@pytest.mark.slow
def test_broker_that_hangs_for_several_sessions_causes_no_second_leader(
    own_broker: Callable[[], Broker], tmp_path: Path
) -> None:
    with own_broker() as broker:
        deployment = Deployment(broker.bootstrap_servers, "hanging", tmp_path)
        try:
            agents = deployment.start("agent-1"), deployment.start("agent-2")
            before = deployment.leader(*agents)
            deployment.expand_orders(9)
            before.await_line("expansion started")
            broker.pause()
            before.await_line("leadership lost")
            # The log line is written shortly before the metric changes.
            before.await_value(0, "headwater_agent_leader")
            assert _leaders(agents) == 0
            assert _statuses(agents, "/health/live") == {200}
            time.sleep(2 * SESSION_SECONDS)  # not a wait: so long the broker hangs
            broker.resume()
            deployment.await_counts(9)
            assert until(lambda: _is_over(deployment), SECONDS)
            assert until(lambda: _leaders(agents) == 1, SECONDS)
            terms: dict[int, set[str]] = {}
            for expansion in deployment.history():
                for stage in expansion["stages"]:
                    terms.setdefault(stage["term"], set()).add(stage["clientId"])
            assert all(len(clients) == 1 for clients in terms.values())
            # Each agent pauses a little longer after each failed topic check.
            assert until(lambda: _statuses(agents, "/health/ready") == {200}, SECONDS)
        finally:
            deployment.close()


def test_autoscaling_is_switched_while_agent_runs(deployment: Deployment) -> None:
    agent = deployment.start("agent-1")
    deployment.leader(agent)
    off = deployment.run("autoscaling", "off", agent.url, "--application", deployment.totals_app)
    assert off.stdout == f"{agent.url}: autoscaling is off for {deployment.totals_app}.\n"
    assert until(lambda: agent.application(deployment.totals_app)["autoscaling"] is False, SECONDS)
    deployment.expand_orders(5)
    assert until(lambda: agent.application(deployment.totals_app)["phase"] == "stopped", SECONDS)
    assert agent.application(deployment.totals_app)["errorCode"] == "INCOMPLETE_SOURCE_TOPIC_METADATA"
    stopped = {"application_id": deployment.totals_app}
    assert agent.value("headwater_agent_application_phase", **stopped, phase="stopped") == 1
    assert agent.value("expected_subtopology_parallelism", **stopped) is None
    assert agent.value("headwater_agent_missing_partitions", **stopped)
    assert deployment.run("autoscaling", "on", agent.url).returncode == 0
    deployment.await_counts(5)
    assert until(lambda: agent.application(deployment.totals_app)["phase"] == "steady", SECONDS)
    assert agent.end() == 0


def _leaders(agents: Iterable[AgentProcess]) -> float:
    return sum(agent.value("headwater_agent_leader") or 0 for agent in agents)


def _statuses(agents: Iterable[AgentProcess], path: str) -> set[int]:
    return {agent.endpoint.get(path).status for agent in agents}


def _is_over(deployment: Deployment) -> bool:
    return any(
        each["application"] == deployment.totals_app and each["outcome"] == "notified"
        for each in deployment.history()
    )
