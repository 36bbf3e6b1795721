"""Compare `headwater drift` with the minimum that any such tool must do, and with `pulumi refresh`.

Each program runs in its own process; the time includes Python's start.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import attrs

from headwater.toolchain import PulumiToolchain
from headwater.toolchain.broker import Broker
from headwater.toolchain.broker.readiness import until
from tests.bench.figures import Figure
from tests.bench.timing import compared, succeeds, take_turns
from tests.bench.topologies import SOURCE, internal_topics, make_topics, write_documents
from tests.pulumi.cluster import Cluster
from tests.pulumi.driver import STACK, Stack

ROUNDS = {1_000: 7, 10_000: 5}
IN_STACK = 500
_GOAL = 1.3
_STACK_ROUNDS = 3
_AT_A_TIME = 500
"""Topics per createTopics request: a controller refuses batches of more than 10,000 records."""
_SETTING_UP = {"PULUMI_SKIP_CHECKPOINTS": "1", "PULUMI_EXPERIMENTAL": "1"}
# A minimal program: names from one listing, settings in requests of 1,000 topics.
_MINIMUM = """
import json, sys
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType
names = json.load(open(sys.argv[2]))
admin = AdminClient({"bootstrap.servers": sys.argv[1]})
assert set(names) <= admin.list_topics(timeout=60).topics.keys()
for start in range(0, len(names), 1000):
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in names[start : start + 1000]]
    for future in admin.describe_configs(resources, request_timeout=60).values():
        assert future.result()
"""


def run(folder: Path, toolchain: PulumiToolchain, broker: Broker) -> Iterator[Figure]:
    servers = broker.bootstrap_servers
    Cluster(servers).create(SOURCE, 1)
    for topics, rounds in ROUNDS.items():
        documents = folder / f"drift-{topics}"
        command, minimum = _commands(documents, topics, servers)
        # A broker is busy for some time after the creation of thousands of topics.
        assert until(partial(succeeds, command), 180)
        programs = {"ours": partial(_succeed, command), "minimum": partial(_succeed, minimum)}
        taken = take_turns(programs, rounds)
        yield from compared(
            f"drift, {topics:,} topics", taken["ours"], taken["minimum"], "list and describe-configs", _GOAL
        )
    yield from _compare_with_refresh(folder / "drift-stack", toolchain, servers)


def _commands(documents: Path, topics: int, servers: str) -> tuple[list[str], list[str]]:
    """Create the topics; return our command and the minimal one."""
    write_documents(documents, topics)
    topics_to_create = internal_topics(documents)
    for start in range(0, topics, _AT_A_TIME):
        make_topics(servers, topics_to_create[start : start + _AT_A_TIME])
    names = documents.with_suffix(".names")
    names.write_text(json.dumps([SOURCE, *(topic.name for topic in topics_to_create)]))
    ours = [sys.executable, "-m", "headwater.cli", "drift", str(documents), "--bootstrap-server", servers]
    return ours, [sys.executable, "-c", _MINIMUM, servers, str(names)]


def _compare_with_refresh(folder: Path, toolchain: PulumiToolchain, servers: str) -> tuple[Figure, ...]:
    """Compare with the setup record of a real stack: `pulumi refresh` requests one topic after the other."""
    stack = Stack.create(folder, toolchain, {"bootstrapServers": servers})
    documents = stack.folder / "documents"
    write_documents(documents, IN_STACK, "refreshed")
    outcome = attrs.evolve(stack, environment=_SETTING_UP).up()
    assert outcome.succeeded, str(outcome)
    command = [sys.executable, "-m", "headwater.cli", "drift", str(documents), "--bootstrap-server", servers]
    command += ["--stack", STACK, "--project", str(stack.folder)]
    ours = partial(_succeed, command, {**os.environ, **stack._environment()})
    refresh = partial(_refresh, stack)
    taken = take_turns({"ours": ours, "refresh": refresh}, _STACK_ROUNDS)
    what = f"drift --stack, {IN_STACK:,} topics"
    return compared(what, taken["ours"], taken["refresh"], "pulumi refresh --preview-only")


def _refresh(stack: Stack) -> None:
    outcome = stack.run("refresh", "--preview-only")
    assert outcome.succeeded, str(outcome)


def _succeed(command: list[str], environment: dict[str, str] | None = None) -> None:
    subprocess.run(command, env=environment, capture_output=True, check=True)
