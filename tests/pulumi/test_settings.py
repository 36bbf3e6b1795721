"""Settings of a stack, and the secrets that it must not print."""

import json

import pytest

from tests.pulumi.conftest import Deployment

pytestmark = [pytest.mark.pulumi, pytest.mark.slow]

PASSWORD = "blue-heron-4711"


def test_all_problems_are_reported_before_anything_is_registered(deployment: Deployment) -> None:
    deployment.declare()
    deployment.stack.document("typo", "application: {idd: other}\ntopology: []\n")
    deployment.stack.configure(
        {"clusterId": "another", "maxNewTopic": 1, "setup": {deployment.id[:-1]: {"adopt": True}}}
    )
    outcome = deployment.refused("WrongCluster", "SchemaViolation", "InvalidConfig")
    words = " ".join(outcome.text.split())
    assert "Did you mean maxNewTopics?" in words, str(outcome)
    assert f"Did you mean {deployment.id}?" in words, str(outcome)
    assert [resource["type"] for resource in deployment.stack.state() if resource["custom"] is False] == [
        "pulumi:pulumi:Stack"
    ]


def test_limits_hold_back_a_large_change(deployment: Deployment) -> None:
    deployment.declare()
    deployment.stack.configure({"maxNewTopics": 1})
    deployment.refused("BlastRadius")
    deployment.stack.configure({"maxNewTopics": 2, "clusterId": deployment.cluster.id()})
    deployment.up()


def test_an_unreachable_cluster_is_reported(deployment: Deployment) -> None:
    deployment.declare()
    deployment.stack.configure({"bootstrapServers": "127.0.0.1:1"})
    outcome = deployment.stack.up()
    assert "error[ClusterUnreachable]" in outcome.text, str(outcome)


def test_previews_can_be_read_by_programs(deployment: Deployment) -> None:
    deployment.declare()
    changed = deployment.stack.preview("--expect-no-changes")
    assert changed.code == 7, str(changed)
    answer = deployment.stack.preview("--json")
    steps = json.loads(answer.text)["steps"]
    created = {step["urn"].rpartition("::")[2] for step in steps if step["op"] == "create"}
    assert set(deployment.topics) <= created


def test_a_secret_in_plain_text_causes_a_warning(deployment: Deployment) -> None:
    deployment.declare()
    deployment.stack.configure({"saslPassword": PASSWORD})
    outcome = deployment.stack.preview()
    assert "saslPassword is a secret, but Pulumi.test.yaml contains it in plain text" in outcome.text, str(
        outcome
    )
    assert PASSWORD not in outcome.text
