"""Policies of a stack: what breaks one is refused before anything changes."""

import pytest

from infra.report.plan_comment import plan_comment, read_preview
from tests.pulumi.conftest import World

pytestmark = [pytest.mark.pulumi, pytest.mark.slow]


def keep_to(world: World, *policies: str) -> None:
    text = "".join(f"  - {policy}\n" for policy in policies)
    (world.stack.folder / "documents" / "headwater-policies.yaml").write_text(f"policies:\n{text}")
    world.stack.configure({"policies": "documents/headwater-policies.yaml"})


def test_a_broken_policy_is_refused_and_a_kept_one_is_not(world: World) -> None:
    world.declare()
    keep_to(world, 'storeName: {pattern: "app-.*"}', "blastRadius: {createdTopics: 1}")
    world.refused("PolicyViolated", "BlastRadius")
    keep_to(world, 'storeName: {pattern: "app-.*", severity: warning}', "replicationFactor: {min: 2}")
    # The factor is the brokers' to choose, and they have chosen one replica.
    outcome = world.refused("PolicyViolated")
    assert "warning[PolicyViolated] Store name counts" in outcome.text
    keep_to(
        world, "replicationFactor: {min: 1}", "topicPartitions: {max: 4}", "blastRadius: {createdTopics: 2}"
    )
    world.up()
    world.is_clean()
    keep_to(world, "topicPartitions: {max: 3}")
    world.refused("PolicyViolated")


def test_the_comment_on_a_pull_request_tells_them(world: World) -> None:
    world.declare()
    keep_to(world, "topicPartitions: {max: 3, message: The cluster is small.}")
    comment = plan_comment(read_preview(world.stack.preview("--json").text))
    assert "refused, 2 errors; nothing will be changed" in comment
    assert "error[PolicyViolated] Internal topic" in comment
    assert "The cluster is small." in comment


def test_policies_that_cannot_be_read_stop_the_run(world: World) -> None:
    world.declare()
    world.stack.configure({"policies": ["nowhere.yaml"]})
    world.refused("UnreadableDocument")
    keep_to(world, "topicPartitions: {maximum: 3}")
    world.refused("SchemaViolation")
