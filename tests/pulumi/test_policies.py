"""Policies of a stack: a violation is refused before anything changes."""

import pytest

from headwater.report.plan_comment import plan_comment, read_preview
from tests.pulumi.conftest import Deployment

pytestmark = [pytest.mark.pulumi, pytest.mark.slow]


def keep_to(deployment: Deployment, *policies: str) -> None:
    text = "".join(f"  - {policy}\n" for policy in policies)
    (deployment.stack.folder / "documents" / "headwater-policies.yaml").write_text(f"policies:\n{text}")
    deployment.stack.configure({"policies": "documents/headwater-policies.yaml"})


def test_a_violated_policy_is_refused_and_a_kept_one_is_not(deployment: Deployment) -> None:
    deployment.declare()
    keep_to(deployment, 'storeName: {pattern: "app-.*"}', "blastRadius: {createdTopics: 1}")
    deployment.refused("PolicyViolated", "BlastRadius")
    keep_to(deployment, 'storeName: {pattern: "app-.*", severity: warning}', "replicationFactor: {min: 2}")
    # The brokers choose the replication factor, which is one here.
    outcome = deployment.refused("PolicyViolated")
    assert "warning[PolicyViolated] Store name counts" in outcome.text
    keep_to(
        deployment,
        "replicationFactor: {min: 1}",
        "topicPartitions: {max: 4}",
        "blastRadius: {createdTopics: 2}",
    )
    deployment.up()
    keep_to(deployment, "topicPartitions: {max: 3}")
    deployment.refused("PolicyViolated")


def test_the_comment_on_a_pull_request_lists_violations(deployment: Deployment) -> None:
    deployment.declare()
    keep_to(deployment, "topicPartitions: {max: 3, message: The cluster is small.}")
    comment = plan_comment(read_preview(deployment.stack.preview("--json").text))
    assert "refused, 2 errors; nothing will be changed" in comment
    assert "error[PolicyViolated] Internal topic" in comment
    assert "The cluster is small." in comment


def test_policies_that_cannot_be_read_stop_the_run(deployment: Deployment) -> None:
    """Invalid policies are problems, too: `policies/test_invalid_files`."""
    deployment.declare()
    deployment.stack.configure({"policies": ["nowhere.yaml"]})
    deployment.refused("UnreadableDocument")
