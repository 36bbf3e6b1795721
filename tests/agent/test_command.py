"""`headwater agent run` and `agent_main.py` as processes."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

from headwater.command_line import RESTART
from headwater.toolchain.broker.local import LocalBroker
from tests.agent.live_documents import WRITING_PARTITIONER, texts, unique_documents
from tests.agent.running import await_counts, make_topics
from tests.preloaded import headwater
from tests.pulumi.cluster import Cluster

pytestmark = pytest.mark.broker

ROOT = Path(__file__).parents[2]
RUN = ("agent", "run")
CLI = (sys.executable, "-m", "headwater.cli")
PROGRAM = (sys.executable, str(ROOT / "spark_jobs" / "agent_main.py"))
SECONDS = 60


@attrs.frozen
class AgentCommand:
    servers: str
    cluster: Cluster
    suffix: str
    folder: Path

    @property
    def changelog(self) -> str:
        return f"totals-app-{self.suffix}-counts-changelog"

    def expand_orders(self, orders: int) -> None:
        self.cluster.expand(f"orders-{self.suffix}", orders)

    def await_counts(self, orders: int) -> None:
        sources = {f"orders-{self.suffix}": orders, f"returns-{self.suffix}": 3}
        await_counts(self.cluster, unique_documents(self.suffix), sources, SECONDS)

    def start(self, *command: str | Path, age_ms: int = 500) -> "subprocess.Popen[str]":
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "HEADWATER_BOOTSTRAP_SERVERS": self.servers,
            "CALLS_FILE": str(self.folder / "calls.txt"),
        }
        return subprocess.Popen(
            [
                *command,
                "--group",
                self.suffix,
                "--metadata-max-age-ms",
                str(age_ms),
                "--callback",
                WRITING_PARTITIONER,
            ],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )


@pytest.fixture
def command(kafka: LocalBroker, unique: Callable[[str], str], tmp_path: Path) -> AgentCommand:
    suffix = unique("x").removeprefix("x-")
    for number, text in enumerate(texts(suffix)):
        (tmp_path / f"{number}.yaml").write_text(text)
    cluster = Cluster(kafka.bootstrap_servers)
    make_topics(cluster, unique_documents(suffix), {f"orders-{suffix}": 2, f"returns-{suffix}": 3})
    return AgentCommand(kafka.bootstrap_servers, cluster, suffix, tmp_path)


def test_once_expands_everything_and_ends(command: AgentCommand) -> None:
    command.expand_orders(5)
    agent = command.start(headwater(), *RUN, str(command.folder), "--once", "--follow-up-ms", "300")
    output, _ = agent.communicate(timeout=SECONDS)
    assert agent.returncode == 0, output
    command.await_counts(5)
    assert sorted((command.folder / "calls.txt").read_text().splitlines()) == ["3 5", "3 5"]


def test_once_reports_problems_that_block_expansion(command: AgentCommand) -> None:
    command.cluster.expand(command.changelog, 9)
    agent = command.start(headwater(), *RUN, str(command.folder), "--once", "--log-format", "json")
    output, _ = agent.communicate(timeout=SECONDS)
    assert agent.returncode == 1, output
    lines = [json.loads(line) for line in output.splitlines()]
    assert any("OverPartitionedInternalTopic" in json.dumps(line) for line in lines)


def test_once_fails_if_an_internal_topic_is_missing(command: AgentCommand) -> None:
    command.cluster.delete(command.changelog)
    agent = command.start(headwater(), *RUN, str(command.folder), "--once", "--log-format", "json")
    output, _ = agent.communicate(timeout=2 * SECONDS)
    assert agent.returncode == 1, output
    assert "MissingInternalTopics" in output
    assert not command.cluster.existing([command.changelog])


def test_program_for_spark_submit_runs_with_manifest_until_stopped(command: AgentCommand) -> None:
    manifest = command.folder / "manifest.json"
    subprocess.run(
        [
            *(headwater(), "agent", "manifest", str(command.folder)),
            *("--bootstrap-server", command.servers, "-o", str(manifest)),
        ],
        check=True,
        cwd=ROOT,
    )
    agent = command.start(*PROGRAM, "--manifest", str(manifest))
    try:
        command.expand_orders(4)
        command.await_counts(4)
    finally:
        agent.send_signal(signal.SIGTERM)
        output, _ = agent.communicate(timeout=SECONDS)
    assert agent.returncode == 0, output
    assert '"agent ended"' in output


def test_sighup_reads_cluster_at_once(command: AgentCommand) -> None:
    """Without the signal, the next topic check would be ten minutes later."""
    agent = command.start(*CLI, *RUN, str(command.folder), age_ms=600_000)
    assert agent.stdout is not None
    try:
        assert any("leadership gained" in line for line in agent.stdout)
        command.expand_orders(4)
        agent.send_signal(signal.SIGHUP)
        command.await_counts(4)
    finally:
        agent.kill()
        agent.communicate()


def test_program_ends_with_a_problem_when_the_jvm_of_spark_submit_ends(tmp_path: Path) -> None:
    """A socket stands for the gateway of the JVM. No broker answers, so the agent has no work to complete."""
    (tmp_path / "0.yaml").write_text(texts("gateway")[0])
    with socket.create_server(("127.0.0.1", 0)) as gateway:
        agent = subprocess.Popen(
            [
                *(*PROGRAM, str(tmp_path), "--bootstrap-server", "127.0.0.1:1"),
                *("--group", "gateway", "--stop-timeout-ms", "50000"),
            ],
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "PYSPARK_GATEWAY_PORT": str(gateway.getsockname()[1]),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            gateway.settimeout(SECONDS)
            connection, _ = gateway.accept()
            assert agent.stdout is not None
            assert any("agent started" in line for line in agent.stdout)
            assert agent.poll() is None
            connection.close()
            output, _ = agent.communicate(timeout=SECONDS)
        finally:
            agent.kill()
            agent.communicate()
    assert agent.returncode == RESTART, output
    assert "error[SparkEnded] Spark's JVM has ended." in output
