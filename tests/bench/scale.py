"""Time, CPU and memory of commands for 1,000 and 10,000 internal topics, of 10 per application."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile

import attrs

from infra.cli.exit_codes import ExitCode
from tests.bench.timing import succeeds
from tests.bench.topologies import SOURCE, document, internal_topics, make_topics
from tests.pulumi.cluster import Cluster
from tests.pulumi.driver import STACK, Stack
from toolchain import PulumiToolchain
from toolchain.broker import Broker
from toolchain.broker.readiness import until

_APPLICATIONS = (100, 1_000)
_TOPICS_EACH = 10
_AT_A_TIME = 500
_AGENT_SECONDS = 30.0
_HEADWATER = (sys.executable, "-m", "infra.cli")


@attrs.frozen
class Cost:
    """Wall and CPU seconds, and peak memory in megabytes, of a process."""

    wall: float
    cpu: float
    memory: float

    def __str__(self) -> str:
        return f"{self.wall:.1f} s, {self.cpu:.1f} s of CPU, {self.memory:.0f} MB"


def run(folder: Path, toolchain: PulumiToolchain, broker: Broker) -> None:
    servers = broker.bootstrap_servers
    Cluster(servers).create(SOURCE, 1)
    for applications in _APPLICATIONS:
        documents = folder / f"scale-{applications}"
        documents.mkdir()
        for number in range(applications):
            id_ = f"scale-{applications}-{number}"
            (documents / f"{id_}.json").write_text(json.dumps(document(id_, _TOPICS_EACH)))
        print(f"{applications:,} applications, {applications * _TOPICS_EACH:,} internal topics")  # noqa: T201
        on_cluster = (str(documents), "--bootstrap-server", servers)
        _show("validate", _cost([*_HEADWATER, "validate", str(documents)]))
        _show("plan, all to create", _cost([*_HEADWATER, "plan", *on_cluster]))
        _show(
            "pulumi preview, all to create", _preview(folder / f"stack-{applications}", toolchain, on_cluster)
        )
        topics = internal_topics(documents)
        for start in range(0, len(topics), _AT_A_TIME):
            make_topics(servers, topics[start : start + _AT_A_TIME])
        drift = [*_HEADWATER, "drift", *on_cluster]
        # A broker is busy for some time after the creation of thousands of topics.
        assert until(partial(succeeds, drift), 300)
        _show("drift, none", _cost(drift))
        agent = [*_HEADWATER, "agent", "run", *on_cluster, "--group", f"scale-{applications}"]
        _show(f"agent, {_AGENT_SECONDS:.0f} s", _cost(agent, stop_after=_AGENT_SECONDS))


def _preview(folder: Path, toolchain: PulumiToolchain, on_cluster: tuple[str, str, str]) -> Cost:
    documents, _, servers = on_cluster
    stack = Stack.create(folder, toolchain, {"bootstrapServers": servers, "documents": documents})
    command = [str(toolchain.cli), "preview", "--non-interactive", "--stack", STACK]
    return _cost(command, {**os.environ, **stack._environment()}, stack.folder)


def _cost(
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


def _show(what: str, cost: Cost) -> None:
    print(f"  {what}: {cost}")  # noqa: T201
