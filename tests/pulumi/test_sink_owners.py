"""A managed sink moves to another application of the stack, with states of this version and the one before.

`states` has states that the version before wrote: before a move, and after its `up` had failed with
`Duplicate resource URN` and had created the new internal topics. In `make test`, a sink moves once with the
state of a failed run, once with the state of this version, and once from an application that ends; a stack of
the version before keeps its topics.
"""

import json
from pathlib import Path

import attrs
import pytest

from tests.pulumi.conftest import Deployment

pytestmark = [pytest.mark.pulumi, pytest.mark.slow]

STATES = Path(__file__).parent / "states"
TOPIC = "kafka:index/topic:Topic"


@attrs.frozen
class Applications:
    """Application `former` manages the sink first, `owner` afterwards."""

    former: Deployment
    owner: Deployment

    @property
    def sink(self) -> str:
        return f"{self.former.source}-totals"

    def declare(self, application: Deployment, *, managed: bool, **options: object) -> None:
        """Write a document; each application writes to the sink, and one of them manages it."""
        application.write(
            [
                {"stream": {"topic": application.source}},
                {"groupBy": {"key": "value.customer", "name": "by-customer"}},
                {"count": {"materialized": "counts"}},
                {"toStream": None},
                {"to": {"topic": self.sink}},
            ],
            topics={self.sink: {"partitions": "follow"}} if managed else None,
            application=options,
        )

    def existing(self) -> dict[str, object]:
        """Return id, partition count and settings of each topic."""
        cluster = self.former.cluster
        names = (*self.former.topics, *self.owner.topics, self.sink)
        return {
            name: (cluster.topic_id(name), cluster.partitions(name), cluster.config(name))
            for name in sorted(cluster.existing(names))
        }

    def restore(self, state: str) -> None:
        """Write a recorded state, after creating the topics that it contains."""
        stack, cluster = self.former.stack, self.former.cluster
        text = (STATES / f"{state}.json").read_text(encoding="utf-8")
        text = text.replace("<application>", self.former.id).replace("<source>", self.former.source)
        text = text.replace("<cluster>", cluster.id()).replace("<broker>", cluster.bootstrap_servers)
        for resource in json.loads(text)["deployment"]["resources"]:
            if resource["type"] == TOPIC:
                inputs = resource["inputs"]
                cluster.create(inputs["name"], int(inputs["partitions"]), inputs.get("config"))
                text = text.replace(f"<id of {inputs['name']}>", cluster.topic_id(inputs["name"]))
        recorded = json.loads(text)
        content = json.loads(stack.state_file.read_text(encoding="utf-8"))
        content |= {key: recorded[key] for key in ("version", "features")}
        content["checkpoint"]["latest"] |= recorded["deployment"]
        stack.state_file.write_text(json.dumps(content), encoding="utf-8")

    def check_moved(self, *, is_renamed: bool = False) -> None:
        """Assert that the next `up` moves the sink, that no topic changes, and that later runs are clean."""
        before = self.existing()
        up = self.owner.up(with_preview=is_renamed)
        assert f"sink {self.sink} moves to {self.owner.id}" in up.text, str(up)
        assert f"managed by {self.former.id} until now" in up.text, str(up)
        if is_renamed:
            self.owner.up()  # removes the former topics from the state
        after = self.existing()
        assert before.items() <= after.items()
        assert {self.sink, *self.owner.topics} <= after.keys()
        [registered] = [resource for resource in self.owner.stack.state() if _name(resource) == self.sink]
        assert registered["type"] == TOPIC
        assert _name({"urn": registered["parent"]}) == self.owner.id
        assert registered["protect"]
        self.owner.is_clean()


def _name(resource: dict[str, str]) -> str:
    return resource["urn"].rpartition("::")[2]


@pytest.mark.parametrize(
    "state",
    [
        None,
        pytest.param("rename_before", marks=pytest.mark.soak),
        pytest.param("rename_stuck", marks=pytest.mark.soak),
    ],
)
def test_a_sink_moves_with_a_renamed_application(deployment: Deployment, state: str | None) -> None:
    applications = Applications(deployment, attrs.evolve(deployment, id=f"{deployment.id}-v2"))
    if state is None:
        applications.declare(deployment, managed=True)
        deployment.up()
        deployment.stack.document(deployment.id, None)
    else:
        applications.restore(state)
    applications.declare(applications.owner, managed=True, renamedFrom=deployment.id)
    applications.check_moved(is_renamed=True)
    assert set(deployment.stack.topics()) == {*applications.owner.topics, applications.sink}


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(None, marks=pytest.mark.soak),
        pytest.param("move_before", marks=pytest.mark.soak),
        "move_stuck",
    ],
)
def test_a_sink_moves_to_another_document(deployment: Deployment, state: str | None) -> None:
    applications = Applications(deployment, attrs.evolve(deployment, id=f"other-{deployment.id}"))
    if state is None:
        applications.declare(deployment, managed=True)
        applications.declare(applications.owner, managed=False)
        deployment.up()
    else:
        applications.restore(state)
    applications.declare(deployment, managed=False)
    applications.declare(applications.owner, managed=True)
    applications.check_moved()
    assert set(deployment.stack.topics()) == {
        *deployment.topics,
        *applications.owner.topics,
        applications.sink,
    }


@pytest.mark.parametrize("lifecycle", [pytest.param("released", marks=pytest.mark.soak), "retired"])
def test_a_sink_moves_from_an_application_that_ends(deployment: Deployment, lifecycle: str) -> None:
    applications = Applications(deployment, attrs.evolve(deployment, id=f"other-{deployment.id}"))
    applications.declare(deployment, managed=True)
    applications.declare(applications.owner, managed=False)
    deployment.up()
    applications.declare(deployment, managed=True, lifecycle=lifecycle)
    applications.declare(applications.owner, managed=True)
    applications.check_moved()
    deployment.stack.document(deployment.id, None)
    deployment.up()
    assert set(deployment.stack.topics()) == {*applications.owner.topics, applications.sink}
    assert applications.sink in applications.existing()


@pytest.mark.soak  # without Pulumi: `planner/test_transfers`
def test_a_released_sink_is_declared_by_another_application_in_the_next_run(deployment: Deployment) -> None:
    applications = Applications(deployment, attrs.evolve(deployment, id=f"other-{deployment.id}"))
    applications.declare(deployment, managed=True)
    deployment.up()
    applications.declare(deployment, managed=True, lifecycle="released")
    deployment.up()
    before = applications.existing()
    deployment.stack.document(deployment.id, None)
    applications.declare(applications.owner, managed=True)
    deployment.up()
    assert before.items() <= applications.existing().items()
    assert set(deployment.stack.topics()) == {*applications.owner.topics, applications.sink}
    assert all(topic["protect"] for topic in deployment.stack.topics().values())
    deployment.is_clean()


def test_a_stack_of_the_version_before_has_no_changes_and_keeps_its_guard(deployment: Deployment) -> None:
    applications = Applications(deployment, attrs.evolve(deployment, id=f"{deployment.id}-v2"))
    applications.restore("rename_before")
    applications.declare(deployment, managed=True)
    deployment.is_clean()
    before = applications.existing()
    urn = deployment.stack.topics()[applications.sink]["urn"]
    deployment.stack.succeed("state", "unprotect", "--yes", urn)
    outcome = deployment.stack.run("destroy", "--yes", "--skip-preview", "--run-program", "--target", urn)
    assert f"topic {applications.sink} is not deleted" in outcome.text, str(outcome)
    deployment.up()
    assert applications.existing() == before
