"""Time, CPU and memory of commands for 1,000 and 10,000 internal topics, of 10 per application."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile

import attrs

from headwater.cli.console import ExitCode
from headwater.toolchain import PulumiToolchain
from headwater.toolchain.broker import Broker
from headwater.toolchain.broker.readiness import until
from tests.bench.figures import Figure
from tests.bench.timing import succeeds
from tests.bench.topologies import SOURCE, document, internal_topics, make_topics
from tests.pulumi.cluster import Cluster
from tests.pulumi.driver import STACK, Stack

_APPLICATIONS = (100, 1_000)
TOPICS_EACH = 10
_BUSY_SECONDS = 300.0
_AT_A_TIME = 500
_AGENT_SECONDS = 30.0
HEADWATER = (sys.executable, "-m", "headwater.cli")


@attrs.frozen
class Cost:
    """Wall and CPU seconds, and peak memory in megabytes, of a process."""

    wall: float
    cpu: float
    memory: float

    def figures(self, what: str) -> tuple[Figure, ...]:
        return (
            Figure(what=what, unit="s", ours=self.wall),
            Figure(what=f"{what}: CPU time", unit="s", ours=self.cpu),
            Figure(what=f"{what}: memory", unit="MB", ours=self.memory),
        )


def run(folder: Path, toolchain: PulumiToolchain, broker: Broker) -> Iterator[Figure]:
    servers = broker.bootstrap_servers
    Cluster(servers).create(SOURCE, 1)
    for applications in _APPLICATIONS:
        documents = folder / f"scale-{applications}"
        write_applications(documents, applications)
        size = f"{applications * TOPICS_EACH:,} topics"
        on_cluster = (str(documents), "--bootstrap-server", servers)
        yield from cost([*HEADWATER, "validate", str(documents)]).figures(f"{size}, validate")
        yield from cost([*HEADWATER, "plan", *on_cluster]).figures(f"{size}, plan, all to create")
        preview = _preview(folder / f"stack-{applications}", toolchain, on_cluster)
        yield from preview.figures(f"{size}, pulumi preview, all to create")
        drift = [*HEADWATER, "drift", *on_cluster]
        create_topics(servers, documents, drift)
        yield from cost(drift).figures(f"{size}, drift, none")
        agent = [*HEADWATER, "agent", "run", *on_cluster, "--group", f"scale-{applications}"]
        idle = cost(agent, stop_after=_AGENT_SECONDS)
        yield from idle.figures(f"{size}, agent for {_AGENT_SECONDS:.0f} s")


def write_applications(documents: Path, applications: int) -> None:
    """Write a document of `TOPICS_EACH` internal topics for each application."""
    documents.mkdir(parents=True)
    for number in range(applications):
        id_ = f"{documents.name}-{number}"
        (documents / f"{id_}.json").write_text(json.dumps(document(id_, TOPICS_EACH)))


def create_topics(servers: str, documents: Path, drift: list[str]) -> None:
    """Create the internal topics of documents; wait until the command `drift` finds all of them."""
    topics = internal_topics(documents)
    for start in range(0, len(topics), _AT_A_TIME):
        make_topics(servers, topics[start : start + _AT_A_TIME])
    # A broker is busy for some time after the creation of thousands of topics.
    assert until(partial(succeeds, drift), _BUSY_SECONDS)


def _preview(folder: Path, toolchain: PulumiToolchain, on_cluster: tuple[str, str, str]) -> Cost:
    documents, _, servers = on_cluster
    stack = Stack.create(folder, toolchain, {"bootstrapServers": servers, "documents": documents})
    command = [str(toolchain.cli), "preview", "--non-interactive", "--stack", STACK]
    return cost(command, {**os.environ, **stack._environment()}, stack.folder)


def cost(
    command: list[str],
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    stop_after: float | None = None,
) -> Cost:
    """Run a command and its children; `memory` is that of its largest process."""
    start = time.monotonic()
    with TemporaryFile() as errors:
        process = subprocess.Popen(
            command, env=environment, cwd=folder, stdout=subprocess.DEVNULL, stderr=errors
        )
        if stop_after is not None:
            with suppress(subprocess.TimeoutExpired):
                process.wait(stop_after)
            process.terminate()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        assert process.returncode == ExitCode.DONE, errors.read(2_000).decode()
    return Cost(time.monotonic() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1_024)
