"""The next agent finishes an expansion after SIGKILL at a random time."""

import os
import random
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from threading import Event

import attrs
import pytest

from headwater.kafka import Connection
from headwater.kafka.expansion_journal import coordination_topic, read_lines
from headwater.kafka.journal_lines import JournalLine, latest_entries, valid_lines
from headwater.model.expansions import Stage
from headwater.toolchain.broker import Broker, Settings
from tests.agent.live_documents import WRITING_PARTITIONER, texts, unique_documents
from tests.agent.running import await_counts, await_true, make_topics
from tests.agent.simulation import set_up
from tests.preloaded import headwater
from tests.pulumi.cluster import Cluster

pytestmark = [pytest.mark.broker, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
QUICK = {"group.min.session.timeout.ms": "1000", "offsets.topic.num.partitions": "1"}
LONGEST_LIFE_SECONDS = 6.0
FIRST, SECOND = 2, 3


@attrs.frozen
class Deployment:
    servers: str
    cluster: Cluster
    suffix: str
    folder: Path

    @property
    def calls_file(self) -> Path:
        return self.folder / "calls.txt"

    def sources(self, orders: int) -> dict[str, int]:
        return {f"orders-{self.suffix}": orders, f"returns-{self.suffix}": SECOND}

    def required_counts(self, orders: int) -> dict[str, int]:
        return set_up(unique_documents(self.suffix), self.sources(orders))

    @contextmanager
    def agent(self) -> Iterator["subprocess.Popen[bytes]"]:
        command = [str(headwater()), "agent", "run", str(self.folder / "documents")]
        command += [
            "--bootstrap-server",
            self.servers,
            "--group",
            self.suffix,
            "--callback",
            WRITING_PARTITIONER,
        ]
        command += ["--metadata-max-age-ms", "200", "--follow-up-ms", "300", "--session-timeout-ms", "1000"]
        with (self.folder / "agent.log").open("ab") as log:
            process = subprocess.Popen(
                command,
                cwd=ROOT,
                stdout=log,
                stderr=log,
                env={**os.environ, "CALLS_FILE": str(self.calls_file)},
            )
        try:
            yield process
        finally:
            process.kill()
            process.wait()


@pytest.fixture
def deployment(
    own_broker: Callable[..., Broker], tmp_path: Path, unique: Callable[[str], str]
) -> Iterator[Deployment]:
    suffix = unique("x").removeprefix("x-")
    (tmp_path / "documents").mkdir()
    for number, text in enumerate(texts(suffix)):
        (tmp_path / "documents" / f"{number}.yaml").write_text(text)
    with own_broker(Settings(overrides=QUICK)) as broker:
        deployment = Deployment(broker.bootstrap_servers, Cluster(broker.bootstrap_servers), suffix, tmp_path)
        make_topics(deployment.cluster, unique_documents(suffix), deployment.sources(FIRST))
        yield deployment


def test_expansion_completes_after_kills_at_few_random_times(deployment: Deployment) -> None:
    _kill_at_random(deployment, times=2)


@pytest.mark.soak
@pytest.mark.timeout(1_800)
def test_expansion_completes_after_kills_at_fifty_random_times(deployment: Deployment) -> None:
    _kill_at_random(deployment, times=50)


def _kill_at_random(deployment: Deployment, times: int) -> None:
    """Expand the source, start an agent and kill it, repeatedly; the last agent is not killed."""
    chance = random.Random(f"{times} kills")  # noqa: S311 - a repeatable choice, not for security
    orders = SECOND + 1
    with deployment.agent():
        deployment.cluster.expand(f"orders-{deployment.suffix}", orders)
        await_counts(deployment.cluster, unique_documents(deployment.suffix), deployment.sources(orders), 90)
    for _ in range(times):
        orders += 1
        with deployment.agent() as agent:
            deployment.cluster.expand(f"orders-{deployment.suffix}", orders)
            Event().wait(chance.uniform(0, LONGEST_LIFE_SECONDS))
            agent.send_signal(signal.SIGKILL)
            assert agent.wait() == -signal.SIGKILL
        for name, most in deployment.required_counts(orders).items():
            assert (deployment.cluster.partitions(name) or 0) <= most, name
    with deployment.agent():
        await_counts(deployment.cluster, unique_documents(deployment.suffix), deployment.sources(orders), 90)
        await_true(lambda: _are_over(deployment), 90)
    _check_history(deployment, orders, times)


def _lines(deployment: Deployment) -> list[JournalLine]:
    connection = Connection(bootstrap_servers=(deployment.servers,))
    return list(read_lines(connection, coordination_topic(deployment.suffix), "test"))


def _are_over(deployment: Deployment) -> bool:
    entries = latest_entries(_lines(deployment)).values()
    return len(entries) == 2 and all(entry.stage is Stage.NOTIFIED for entry in entries)


def _check_history(deployment: Deployment, orders: int, kills: int) -> None:
    """Each expansion has one callback; a kill between the call and its journal entry repeats it."""
    finished = [
        entry
        for line in valid_lines(_lines(deployment))
        if (entry := line.entry()) is not None and entry.stage is Stage.NOTIFIED
    ]
    for application in ("totals-app", "ranks-app"):
        own = [entry for entry in finished if entry.application.startswith(application)]
        assert len({entry.number for entry in own}) == len(own)
        for earlier, later in pairwise(own):
            assert earlier.after == later.before
        assert set(own[-1].after.values()) == {orders}
    calls = deployment.calls_file.read_text().splitlines()
    assert len(finished) <= len(calls) <= len(finished) + kills
