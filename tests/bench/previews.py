"""Previews of Headwater beside those of a plain pulumi-kafka program that registers the same topics."""

import json
import resource
import statistics
import time
from pathlib import Path

import attrs

from tests.bench.topologies import SOURCE, internal_topics, make_topics, write_documents
from tests.pulumi.cluster import Cluster
from tests.pulumi.driver import Stack
from toolchain import PulumiToolchain
from toolchain.broker import Broker

# Number of topics -> how often each side takes its turn.
ROUNDS = {1_000: 3, 5_000: 2}
# The plain program imports what exists; the state is written once, at the end.
SETTING_UP = {"IMPORT": "1", "PULUMI_SKIP_CHECKPOINTS": "1", "PULUMI_EXPERIMENTAL": "1"}
PLAIN = '''
"""What one writes by hand: a loop over the topics."""
import json
import os
from pathlib import Path

import pulumi
import pulumi_kafka

provider = pulumi_kafka.Provider("kafka", bootstrap_servers=[os.environ["SERVERS"]], tls_enabled=False)
for topic in json.loads(Path("topics.json").read_text()):
    pulumi_kafka.Topic(
        topic["name"],
        name=topic["name"],
        partitions=topic["partitions"],
        replication_factor=1,
        config=topic["config"],
        opts=pulumi.ResourceOptions(
            provider=provider, import_=topic["name"] if os.environ.get("IMPORT") else None
        ),
    )
'''


def run(folder: Path, toolchain: PulumiToolchain, broker: Broker) -> None:
    Cluster(broker.bootstrap_servers).create(SOURCE, 1)
    for topics in (1_000, 5_000):
        ours, plain = _stacks(folder / str(topics), toolchain, broker, topics)
        reach = "at most 1.0" if topics == 1_000 else "at most 0.67"
        _compare(f"create preview, {topics:,} topics (reach: {reach})", ours, plain, ROUNDS[topics])
    ours, plain = _stacks(folder / "no-change", toolchain, broker, 1_000, "kept")
    make_topics(broker.bootstrap_servers, internal_topics(ours.folder / "documents"))
    for stack in (ours, plain):
        outcome = attrs.evolve(stack, environment={**stack.environment, **SETTING_UP}).up()
        assert outcome.succeeded, str(outcome)
    title = "preview without change, 1,000 topics (reach: at most 1.0)"
    _compare(title, ours, plain, ROUNDS[1_000], "--expect-no-changes")


def _stacks(
    folder: Path, toolchain: PulumiToolchain, broker: Broker, topics: int, prefix: str = "bench"
) -> tuple[Stack, Stack]:
    servers = broker.bootstrap_servers
    ours = Stack.create(folder / "ours", toolchain, {"bootstrapServers": servers})
    write_documents(ours.folder / "documents", topics, prefix)
    plain = Stack.create(folder / "plain", toolchain, {}, program=PLAIN, environment={"SERVERS": servers})
    specified = [
        {"name": topic.name, "partitions": topic.partitions, "config": dict(topic.config)}
        for topic in internal_topics(ours.folder / "documents")
    ]
    assert len(specified) == topics
    (plain.folder / "topics.json").write_text(json.dumps(specified))
    return ours, plain


def _compare(title: str, ours: Stack, plain: Stack, rounds: int, *flags: str) -> None:
    """Take turns, so that whatever else the machine does hits both."""
    taken: dict[str, list[tuple[float, float]]] = {"ours": [], "plain": []}
    for _ in range(rounds):
        for name, stack in (("ours", ours), ("plain", plain)):
            taken[name].append(_preview(stack, *flags))
    mine, theirs = (tuple(map(statistics.median, zip(*taken[name], strict=True))) for name in taken)
    for what, ours_s, plain_s in zip(("", " of CPU"), mine, theirs, strict=True):
        ratio = ours_s / plain_s
        print(f"{title}: {ours_s:.1f} s{what}, plain {plain_s:.1f} s, ratio {ratio:.2f}")  # noqa: T201


def _preview(stack: Stack, *flags: str) -> tuple[float, float]:
    """Return the seconds that passed, and those that the CLI and all its processes used."""
    start, used = time.monotonic(), _cpu_seconds()
    outcome = stack.preview(*flags)
    assert outcome.succeeded, str(outcome)
    return time.monotonic() - start, _cpu_seconds() - used


def _cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
