"""Compare the agent with the minimum: one metadata request each interval, and one createPartitions call.

Measures the time from the expansion of a source topic, just after a topic check, to the expansion of its last
internal topic; then the cost of an idle agent.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from uuid import uuid4

import attrs
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # public, but not exported explicitly
    AdminClient,
    NewPartitions,
    NewTopic,
)

from headwater.agent.documents import DocumentFiles
from headwater.agent.events import AgentEvent, Expanded
from headwater.agent.run import Agent, AgentSettings
from headwater.agent.state import AgentState
from headwater.compiler import compile_documents
from headwater.kafka import Connection
from headwater.spec import load_documents
from headwater.toolchain import PulumiToolchain
from headwater.toolchain.broker import Broker
from headwater.toolchain.broker.readiness import until
from tests.bench.figures import Figure
from tests.bench.topologies import SOURCE, document, make_topics

INTERVAL_SECONDS = 5.0
_TOPICS = (10, 100, 1_000)
_GOAL = 1.2
_PER_APPLICATION = 100
_AT_A_TIME = 500
_TIMEOUT_SECONDS = 300
_IDLE_SECONDS = 30


def run(folder: Path, _: PulumiToolchain, broker: Broker) -> Iterator[Figure]:
    for topics in _TOPICS:
        yield _expansion(folder / f"agent-{topics}", topics, broker.bootstrap_servers)
    yield from _idle(folder / f"agent-{_TOPICS[-1]}", broker.bootstrap_servers)


@attrs.define
class _Watch:
    """Instruments that only record the time of events."""

    state: AgentState = attrs.field(factory=AgentState)
    expanded_at: list[float] = attrs.field(factory=list)

    def record_state(self, state: AgentState) -> None:
        self.state = state

    def record_event(self, event: AgentEvent) -> None:
        if isinstance(event, Expanded):
            self.expanded_at.append(time.monotonic())

    def record_request(self, operation: str, seconds: float, *, succeeded: bool) -> None:
        """Requests are not counted."""


def _expansion(folder: Path, topics: int, servers: str) -> Figure:
    source = _documents(folder, topics)
    documents = load_documents([folder]).documents
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(source, num_partitions=1, replication_factor=1)])[source].result()
    compiled = compile_documents(documents, {source: 1})
    internal = [topic for application in compiled for topic in application.internal_topics]
    for start in range(0, len(internal), _AT_A_TIME):
        make_topics(servers, internal[start : start + _AT_A_TIME])
    minimum = _minimum(admin, topics)
    watch = _Watch()
    agent = Agent(
        AgentSettings(
            connection=Connection(bootstrap_servers=(servers,)),
            documents=DocumentFiles([folder]),
            client_id="bench",
            group=uuid4().hex,
            metadata_max_age_ms=int(INTERVAL_SECONDS * 1000),
            request_timeout_ms=60_000,
        ),
        watch,
    )
    thread = Thread(target=agent.run, daemon=True)
    thread.start()
    try:
        assert until(lambda: watch.state.is_recovered, _TIMEOUT_SECONDS)
        reads = watch.state.reads
        assert until(lambda: watch.state.reads > reads, _TIMEOUT_SECONDS)
        admin.create_partitions([NewPartitions(source, 2)])[source].result()
        grown_at = time.monotonic()
        assert until(lambda: len(watch.expanded_at) == len(documents), _TIMEOUT_SECONDS)
        took = watch.expanded_at[-1] - grown_at
    finally:
        agent.stop()
        thread.join()
    assert until(lambda: _grown(admin) >= {topic.name for topic in internal}, _TIMEOUT_SECONDS)
    return Figure(
        what=f"expansion of {topics:,} internal topics",
        unit="s",
        ours=took,
        peer="check interval and one request",
        theirs=INTERVAL_SECONDS + minimum,
        goal=_GOAL,
    )


def _grown(admin: AdminClient) -> set[str]:
    return {
        name for name, topic in admin.list_topics(timeout=60).topics.items() if len(topic.partitions) == 2
    }


def _documents(folder: Path, topics: int) -> str:
    """Write the documents and return the name of their source."""
    folder.mkdir(parents=True, exist_ok=True)
    source = f"{SOURCE}-agent-{topics}"
    own = min(topics, _PER_APPLICATION)
    for number in range(topics // own):
        text = json.dumps(document(f"agent-{topics}-{number}", own)).replace(f'"{SOURCE}"', f'"{source}"')
        content = json.loads(text)
        content["application"]["config"] = {"partition.autoscaling.enabled": True}
        content["application"]["setup"] = {"allowUnsafeExpansion": True}
        (folder / f"{number}.json").write_text(json.dumps(content))
    return source


def _minimum(admin: AdminClient, topics: int) -> float:
    """Return the seconds of one createPartitions call for the same number of topics."""
    names = [f"bench-floor-{topics}-{number}" for number in range(topics)]
    for start in range(0, topics, _AT_A_TIME):
        new = [
            NewTopic(name, num_partitions=1, replication_factor=1)
            for name in names[start : start + _AT_A_TIME]
        ]
        for future in admin.create_topics(new, operation_timeout=120, request_timeout=120).values():
            future.result()
    asked_at = time.monotonic()
    asked = admin.create_partitions([NewPartitions(name, 2) for name in names], request_timeout=60)
    for future in asked.values():
        future.result()
    return time.monotonic() - asked_at


def _idle(folder: Path, servers: str) -> Iterator[Figure]:
    """Measure CPU time and memory of the idle command with all topics."""
    command = [
        sys.executable,
        "-m",
        "headwater.cli",
        "agent",
        "run",
        str(folder),
        "--bootstrap-server",
        servers,
    ]
    command += ["--group", uuid4().hex, "--metadata-max-age-ms", str(int(INTERVAL_SECONDS * 1000))]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        time.sleep(_IDLE_SECONDS / 2)  # time to start and to become leader
        before = _processor_seconds(process.pid)
        time.sleep(_IDLE_SECONDS)
        used = (_processor_seconds(process.pid) - before) / _IDLE_SECONDS
        what = f"idle, {_TOPICS[-1]:,} internal topics, a check every {INTERVAL_SECONDS:g} s"
        yield Figure(what=f"{what}: CPU", unit="% of a core", ours=used * 100, goal=1)
        yield Figure(what=f"{what}: memory", unit="MB", ours=_resident_mb(process.pid), goal=120)
    finally:
        process.terminate()
        process.wait()


def _processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _resident_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))
