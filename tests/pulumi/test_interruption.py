"""Runs that are killed, lose the broker, or run at the same time."""

import json
import os
import signal
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from headwater.toolchain import PulumiToolchain
from headwater.toolchain.broker import Broker
from headwater.toolchain.broker.readiness import until
from headwater.toolchain.pulumi_cli import PulumiProject
from tests.pulumi.cluster import Cluster
from tests.pulumi.conftest import Deployment, make_deployment
from tests.pulumi.driver import STACK, Stack, end, kill, wait_for_lines

pytestmark = [pytest.mark.pulumi, pytest.mark.slow]

STORES = 8
"""One after the other, the provider takes a second for each: enough time to kill it before the last one."""
SLOWLY = ("up", "--yes", "--skip-preview", "--parallel", "1")
SECONDS = 300
# A line for each topic, as soon as it is done: a request to a busy broker could see them all at once.
CREATED, UPDATED = "changelog created", "changelog updated"
PLUGIN = "pulumi-resource-kafka"


def many(
    deployment: Deployment, setup: str = "manual", config: Mapping[str, object] | None = None
) -> list[str]:
    """Declare an application with many changelogs and return their names."""
    topology: list[dict[str, object]] = [{"stream": {"topic": deployment.source, "as": "orders"}}]
    for number in range(STORES):
        store = {"name": f"store-{number}", "kind": "keyValue"}
        topology.append({"process": {"from": "orders", "name": f"worker-{number}", "stores": [store]}})
    deployment.write(topology, {"internal.topics.setup": setup, **(config or {})})
    return [f"{deployment.id}-store-{number}-changelog" for number in range(STORES)]


@pytest.mark.soak  # at random times: `test_kills`; `test_doctor` shows the lock
@pytest.mark.parametrize("setup", ["manual", "automatic"])
def test_a_killed_up_is_finished_by_the_next(deployment: Deployment, setup: str) -> None:
    names = many(deployment, setup)
    process = deployment.stack.start(*SLOWLY)
    wait_for_lines(process, CREATED, count=3, seconds=SECONDS)
    kill(process)
    assert not _processes_of(deployment.stack)
    made = {name: deployment.cluster.topic_id(name) for name in deployment.cluster.existing(names)}
    assert 3 <= len(made) < STORES
    locked = deployment.stack.up()
    assert "currently locked" in locked.text, str(locked)
    deployment.stack.succeed("cancel", "--yes")
    deployment.up()
    assert deployment.cluster.existing(names) == set(names)
    assert {name: deployment.cluster.topic_id(name) for name in made} == made
    deployment.is_clean()


def _processes_of(stack: Stack) -> set[int]:
    """Return the processes whose environment names the folder of the stack: CLI, language host, plugins."""
    found = set()
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit() and str(stack.folder).encode() in (entry / "environ").read_bytes():
                found.add(int(entry.name))
    return found - {os.getpid()}


def _process_of(stack: Stack, program: str) -> int | None:
    for pid in _processes_of(stack):
        with suppress(OSError):
            if Path(f"/proc/{pid}/exe").readlink().name == program:
                return pid
    return None


def test_no_process_outlives_a_cli_that_is_killed_alone(deployment: Deployment) -> None:
    many(deployment)
    stack = deployment.stack
    project = PulumiProject(stack.folder, stack.toolchain, stack.variables, home=stack.folder / "home")
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(project.run, *SLOWLY, "--stack", STACK)
        # The topics are created in a moment: a request for them may see none first, and then all.
        assert until(lambda: _process_of(stack, PLUGIN) is not None, SECONDS)
        assert len(_processes_of(stack)) >= 4, "CLI, language host, program and plugin"
        cli = _process_of(stack, stack.toolchain.cli.resolve().name)
        assert cli is not None
        os.kill(cli, signal.SIGKILL)
        assert running.result(SECONDS).code == -signal.SIGKILL
    assert not _processes_of(stack)


@pytest.mark.soak  # `test_adoption` completes the same setup, of which the state has nothing
def test_a_killed_up_without_checkpoints_is_finished_by_adoption(deployment: Deployment) -> None:
    names = many(deployment)
    hurried = deployment.with_environment(PULUMI_SKIP_CHECKPOINTS="1", PULUMI_EXPERIMENTAL="1")
    process = hurried.stack.start(*SLOWLY)
    wait_for_lines(process, CREATED, count=3, seconds=SECONDS)
    kill(process)
    deployment.stack.succeed("cancel", "--yes")
    assert not deployment.stack.topics()
    deployment.refused("MissingInternalTopics")
    deployment.stack.configure({"setup": {deployment.id: {"adopt": True, "ifIncomplete": True}}})
    deployment.up()
    deployment.stack.configure({"setup": None})
    assert deployment.cluster.existing(names) == set(names)
    deployment.is_clean()


@pytest.mark.soak  # `test_kills` adds stores and kills `up`
def test_topics_added_to_an_application_survive_a_killed_up(deployment: Deployment) -> None:
    deployment.set_up({"internal.topics.setup": "manual"})
    names = many(deployment)
    process = deployment.stack.start(*SLOWLY)
    wait_for_lines(process, CREATED, count=3, seconds=SECONDS)
    kill(process)
    deployment.stack.succeed("cancel", "--yes")
    deployment.up()
    assert deployment.cluster.existing(names) == set(names)
    deployment.is_clean()


def test_a_killed_expansion_is_finished_by_the_next(deployment: Deployment) -> None:
    static = {"partition.autoscaling.enabled": True, "static.partitioner.class": "com.example.ByTenant"}
    names = many(deployment, config=static)
    deployment.up()
    deployment.cluster.expand(deployment.source, 6)
    process = deployment.stack.start(*SLOWLY)
    wait_for_lines(process, UPDATED, count=3, seconds=SECONDS)
    kill(process)
    assert {deployment.cluster.partitions(name) for name in names} == {4, 6}
    deployment.stack.succeed("cancel", "--yes")
    deployment.up()
    assert {deployment.cluster.partitions(name) for name in names} == {6}


def test_a_broker_that_dies_during_up_is_reported_and_the_next_up_finishes(
    tmp_path: Path, pulumi_toolchain: PulumiToolchain, broker: Broker, unique: Callable[[str], str]
) -> None:
    deployment = make_deployment(
        tmp_path / "stack", pulumi_toolchain, Cluster(broker.bootstrap_servers), unique
    )
    names = many(deployment)
    # The provider retries for up to two minutes; a user presses Ctrl-C twice.
    process = deployment.stack.start(*SLOWLY)
    wait_for_lines(process, CREATED, count=3, seconds=SECONDS)
    broker.kill()
    outcome = end(process, seconds=5)
    assert not outcome.succeeded, str(outcome)
    unreachable = deployment.stack.up()
    assert "error[ClusterUnreachable]" in unreachable.text, str(unreachable)
    broker.start()
    deployment.stack.run("cancel", "--yes")
    deployment.up()
    assert deployment.cluster.existing(names) == set(names)


def test_a_second_up_at_the_same_time_is_refused(deployment: Deployment) -> None:
    many(deployment)
    first = deployment.stack.start("up", "--yes", "--skip-preview")
    locks = deployment.stack.folder / "state" / ".pulumi" / "locks"
    assert until(lambda: any(locks.rglob("*.json")), SECONDS)
    os.killpg(first.pid, signal.SIGSTOP)
    try:
        second = deployment.stack.up()
    finally:
        os.killpg(first.pid, signal.SIGCONT)
    assert not second.succeeded, str(second)
    assert "currently locked" in second.text, str(second)
    outcome = end(first, seconds=SECONDS)
    assert outcome.succeeded, str(outcome)
    deployment.is_clean()


def test_pending_operations_are_cleared_by_the_documented_command(deployment: Deployment) -> None:
    """The state is that after a kill while the changelog was created: it exists, and is not in the state."""
    deployment.set_up()
    before = deployment.facts()
    [file] = (deployment.stack.folder / "state").rglob(f"{STACK}.json")
    content = json.loads(file.read_text(encoding="utf-8"))
    latest = content["checkpoint"]["latest"]
    [created] = [each for each in latest["resources"] if each["urn"].endswith(deployment.changelog)]
    latest["resources"].remove(created)
    latest["pending_operations"] = [{"resource": created, "type": "creating"}]
    for resource in latest["resources"]:
        if resource["type"] == "headwater:kafka:InternalTopics":
            del resource["outputs"]
    file.write_text(json.dumps(content), encoding="utf-8")
    assert deployment.stack.pending_operations()
    up = deployment.up()
    assert "with 1 pending operations" in up.text, str(up)
    assert f"are added to the state now: {deployment.changelog}" in " ".join(up.text.split()), str(up)
    assert "pulumi refresh --clear-pending-creates" in up.text, str(up)
    assert deployment.changelog in deployment.stack.topics()
    deployment.stack.succeed("refresh", "--yes", "--clear-pending-creates")
    assert not deployment.stack.pending_operations()
    assert deployment.facts() == before
    deployment.is_clean()
