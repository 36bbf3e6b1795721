"""Two stacks with the same application on one cluster."""

from pathlib import Path

import attrs
import pytest

from headwater.toolchain import PulumiToolchain
from tests.pulumi.conftest import Deployment
from tests.pulumi.driver import Stack
from tests.pulumi.finished_stacks import ownership_records

pytestmark = [pytest.mark.pulumi, pytest.mark.slow]

REFUSED = "ManagedByAnotherStack"


@pytest.fixture
def second(deployment: Deployment, tmp_path: Path, pulumi_toolchain: PulumiToolchain) -> Deployment:
    """The same application in a stack with a state of its own. Both stacks have the same name."""
    servers = deployment.cluster.bootstrap_servers
    settings = {"bootstrapServers": servers}
    stack = Stack.create(
        tmp_path / "second", pulumi_toolchain, settings, is_preloaded=True, has_passphrase=False
    )
    return attrs.evolve(deployment, stack=stack)


def test_a_second_stack_is_refused_until_it_takes_over(deployment: Deployment, second: Deployment) -> None:
    deployment.set_up()
    (record,) = ownership_records(deployment)
    assert record.is_finished
    assert record.topics == {name: deployment.cluster.topic_id(name) for name in deployment.topics}
    second.declare()
    second.refused(REFUSED)
    assert ownership_records(deployment) == [record]

    second.declare(setup={"takeOver": True})
    taken = second.up()
    assert f"warning[{REFUSED}]" in taken.text, str(taken)
    (other,) = ownership_records(deployment)
    assert other.stack.id != record.stack.id
    second.declare()

    # The first stack still has the topics in its state, but neither changes nor deletes them.
    deployment.refused(REFUSED)
    deployment.declare(lifecycle="retired")
    deployment.refused(REFUSED)
    before = deployment.facts()
    deployment.declare(lifecycle="released")
    deployment.up()
    deployment.stack.document(deployment.id, None)
    deployment.up()
    assert not deployment.stack.topics()
    assert deployment.facts() == before
    assert ownership_records(deployment) == [other]
    second.is_clean()


@pytest.mark.soak  # without Pulumi: `planner/test_ownership`
def test_a_released_application_moves_to_another_stack(deployment: Deployment, second: Deployment) -> None:
    deployment.set_up()
    before = deployment.facts()
    deployment.declare(lifecycle="released")
    deployment.up()
    assert not ownership_records(deployment)
    second.declare()
    second.up()
    assert deployment.facts() == before
    assert len(ownership_records(deployment)) == 1


def test_the_record_of_a_retired_application_ends_with_its_topics(
    deployment: Deployment, second: Deployment
) -> None:
    deployment.set_up()
    deployment.declare(lifecycle="retired")
    deployment.up()
    second.declare()
    second.refused(REFUSED)
    deployment.stack.document(deployment.id, None)
    deployment.up()
    deployment.settles_at(None, None)
    second.up()
    second.settles_at(4, 4)
    deployment.up()
    assert len(ownership_records(deployment)) == 1


def test_a_stack_without_records_neither_writes_nor_checks_them(
    deployment: Deployment, second: Deployment
) -> None:
    deployment.stack.configure({"ownership": "none"})
    deployment.declare()
    deployment.up()
    assert not ownership_records(deployment)
    deployment.stack.configure({"ownership": None})
    deployment.up()
    assert len(ownership_records(deployment)) == 1
    second.stack.configure({"ownership": "none"})
    second.declare()
    second.up()
    assert len(ownership_records(deployment)) == 1


def test_a_state_that_moves_to_another_backend_keeps_its_applications(
    deployment: Deployment, second: Deployment
) -> None:
    deployment.set_up()
    exported = second.stack.folder / "exported.json"
    exported.write_text(deployment.stack.succeed("stack", "export"))
    second.stack.succeed("stack", "import", "--file", str(exported))
    second.declare()
    second.is_clean()
