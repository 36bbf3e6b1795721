"""The agent and `pulumi up` expand the same topics, in either order; the next preview has no changes."""

from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

from headwater.agent.documents import DocumentFiles
from headwater.agent.events import AttemptEnded, Notified
from headwater.agent.run import AgentSettings
from headwater.agent.state import Phase
from headwater.model.problems import ProblemCode
from headwater.toolchain import PulumiToolchain
from headwater.toolchain.broker.local import LocalBroker
from tests.agent.running import await_true, running, settings
from tests.pulumi.cluster import Cluster
from tests.pulumi.conftest import Deployment, finished_stacks, make_deployment
from tests.pulumi.finished_stacks import FinishedStacks

pytestmark = [pytest.mark.pulumi, pytest.mark.slow]
__all__ = ["finished_stacks"]  # a fixture

GROWING = {"partition.autoscaling.enabled": True}


@pytest.fixture
def new(
    tmp_path: Path,
    pulumi_toolchain: PulumiToolchain,
    kafka: LocalBroker,
    unique: Callable[[str], str],
    finished_stacks: FinishedStacks,
) -> Deployment:
    cluster = Cluster(kafka.bootstrap_servers)
    return make_deployment(tmp_path / "stack", pulumi_toolchain, cluster, unique, finished=finished_stacks)


@pytest.fixture
def deployment(new: Deployment) -> Deployment:
    new.set_up(GROWING, setup={"allowUnsafeExpansion": True})
    return new


def agent_of(deployment: Deployment) -> AgentSettings:
    files = DocumentFiles([deployment.stack.folder / "documents"])
    return attrs.evolve(settings(deployment.cluster.bootstrap_servers, (), deployment.id), documents=files)


def test_agent_expands_before_pulumi(deployment: Deployment) -> None:
    with running(agent_of(deployment)) as agent:
        deployment.cluster.expand(deployment.source, 6)
        deployment.settles_at(6, 6)
        deployment.is_clean()
        shown = deployment.stack.preview("--refresh", "--expect-no-changes").text
        note = "4 partitions at the last complete run of the stack, expanded by agent agent-1"
        assert shown.count(note) == 2
        await_true(lambda: agent.phase(deployment.id) is Phase.STEADY)
    deployment.cluster.expand(deployment.source, 8)
    deployment.up()
    deployment.settles_at(8, 8)
    deployment.is_clean()


def test_pulumi_expands_before_agent(deployment: Deployment) -> None:
    with running(agent_of(deployment)) as agent:
        await_true(lambda: agent.state.is_recovered and agent.phase(deployment.id) is Phase.STEADY)
    deployment.cluster.expand(deployment.source, 6)
    deployment.up()
    with running(agent_of(deployment)) as agent:
        await_true(lambda: agent.state.is_recovered and agent.phase(deployment.id) is Phase.STEADY)
        assert not agent.of(AttemptEnded)
        deployment.settles_at(6, 6)
        deployment.is_clean()


def test_agent_and_pulumi_expand_at_the_same_time(deployment: Deployment) -> None:
    """A topic may be expanded after `up` has read it; the next run shows no changes."""
    with running(agent_of(deployment)) as agent:
        await_true(lambda: agent.state.is_recovered and agent.phase(deployment.id) is Phase.STEADY)
        up = deployment.stack.start("up", "--yes", "--skip-preview")
        deployment.cluster.expand(deployment.source, 6)
        up.communicate(timeout=120)
        deployment.settles_at(6, 6)
        await_true(lambda: agent.of(Notified))
        clean_after(deployment, up.returncode)


@pytest.mark.soak  # the test before, and `pulumi/test_overtaken`
def test_agent_expands_between_plan_and_up(deployment: Deployment) -> None:
    """The agent checks the topics again just after `up` has begun to apply."""
    deployment.cluster.expand(deployment.source, 6)
    up = deployment.stack.start("up", "--yes", "--skip-preview")
    with running(agent_of(deployment)) as agent:
        up.communicate(timeout=120)
        await_true(lambda: agent.state.is_recovered and agent.phase(deployment.id) is Phase.STEADY)
        deployment.settles_at(6, 6)
        clean_after(deployment, up.returncode)


def clean_after(deployment: Deployment, returncode: int) -> None:
    """`up` fails if the agent was faster; the next `up` clears the recorded failure and changes nothing."""
    if returncode != 0:
        deployment.up()
        deployment.settles_at(6, 6)
    deployment.is_clean()


def test_agent_leaves_the_changelogs_of_processors_as_they_are(new: Deployment) -> None:
    deployment, exactly_once = new, {**GROWING, "processing.guarantee": "exactly_once_v2"}
    deployment.declare(exactly_once, processors=4)
    deployment.up()
    with running(agent_of(deployment)) as agent:
        deployment.cluster.expand(deployment.source, 8)
        deployment.settles_at(8, 4)
        deployment.is_clean()
        await_true(lambda: agent.phase(deployment.id) is Phase.STEADY)
        deployment.cluster.expand(deployment.source, 9)
        await_true(lambda: bool(agent.state.applications[deployment.id].problems))
        (problem,) = agent.state.applications[deployment.id].problems
        assert problem.code is ProblemCode.UNSAFE_EXPANSION
        deployment.settles_at(8, 4)
