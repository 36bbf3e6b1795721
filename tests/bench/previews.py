"""Compare previews of Headwater with those of a plain pulumi-kafka program for the same topics."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import attrs

from headwater.toolchain import PulumiToolchain
from headwater.toolchain.broker import Broker
from tests.bench.figures import Figure
from tests.bench.timing import compared, take_turns
from tests.bench.topologies import SOURCE, internal_topics, make_topics, write_documents
from tests.pulumi.cluster import Cluster
from tests.pulumi.driver import Stack

# Number of topics → number of runs of each program.
ROUNDS = {1_000: 3, 5_000: 2}
GOALS = {1_000: 1.0, 5_000: 0.4}
GOAL_WITHOUT_CHANGE = 0.5
# The plain program imports existing topics; the state is written once, at the end.
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


def run(folder: Path, toolchain: PulumiToolchain, broker: Broker) -> Iterator[Figure]:
    Cluster(broker.bootstrap_servers).create(SOURCE, 1)
    for topics in (1_000, 5_000):
        ours, plain = _stacks(folder / str(topics), toolchain, broker, topics)
        yield from _compare(f"create preview, {topics:,} topics", ours, plain, topics, GOALS[topics])
    ours, plain = _stacks(folder / "no-change", toolchain, broker, 1_000, "kept")
    make_topics(broker.bootstrap_servers, internal_topics(ours.folder / "documents"))
    for stack in (ours, plain):
        outcome = attrs.evolve(stack, environment={**stack.environment, **SETTING_UP}).up()
        assert outcome.succeeded, str(outcome)
    what = "preview without change, 1,000 topics"
    yield from _compare(what, ours, plain, 1_000, GOAL_WITHOUT_CHANGE, "--expect-no-changes")


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


def _compare(
    what: str, ours: Stack, plain: Stack, topics: int, wall_goal: float, *flags: str
) -> tuple[Figure, ...]:
    programs = {"ours": partial(_preview, ours, *flags), "plain": partial(_preview, plain, *flags)}
    taken = take_turns(programs, ROUNDS[topics])
    return compared(what, taken["ours"], taken["plain"], "a plain Pulumi program", wall_goal)


def _preview(stack: Stack, *flags: str) -> None:
    outcome = stack.preview(*flags)
    assert outcome.succeeded, str(outcome)
