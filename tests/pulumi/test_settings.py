"""What a stack is told, and what it must not tell."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.pulumi.cluster import Cluster
from tests.pulumi.conftest import World, make_world
from toolchain import KafkaDistribution, PulumiToolchain
from toolchain.broker import Broker, SaslUser, Settings

pytestmark = [pytest.mark.pulumi, pytest.mark.slow]

PASSWORD = "blue-heron-4711"


def test_all_problems_are_told_at_once_before_anything_is_registered(world: World) -> None:
    world.declare()
    world.stack.document("typo", "application: {idd: other}\ntopology: []\n")
    world.stack.configure(
        {"clusterId": "another", "maxNewTopic": 1, "setup": {world.id[:-1]: {"adopt": True}}}
    )
    outcome = world.refused("WrongCluster", "SchemaViolation", "InvalidConfig")
    words = " ".join(outcome.text.split())
    assert "Did you mean maxNewTopics?" in words, str(outcome)
    assert f"Did you mean {world.id}?" in words, str(outcome)
    assert [resource["type"] for resource in world.stack.state() if resource["custom"] is False] == [
        "pulumi:pulumi:Stack"
    ]


def test_limits_hold_back_a_large_change(world: World) -> None:
    world.declare()
    world.stack.configure({"maxNewTopics": 1})
    world.refused("BlastRadius")
    world.stack.configure({"maxNewTopics": 2, "clusterId": world.cluster.id()})
    world.up()


def test_an_unreachable_cluster_is_told(world: World) -> None:
    world.declare()
    world.stack.configure({"bootstrapServers": "127.0.0.1:1"})
    outcome = world.stack.up()
    assert "error[ClusterUnreachable]" in outcome.text, str(outcome)


def test_previews_can_be_read_by_programs(world: World) -> None:
    world.declare()
    changed = world.stack.preview("--expect-no-changes")
    assert changed.code == 7, str(changed)
    answer = world.stack.preview("--json")
    steps = json.loads(answer.text)["steps"]
    created = {step["urn"].rpartition("::")[2] for step in steps if step["op"] == "create"}
    assert set(world.topics) <= created


def test_secrets_show_nowhere(
    tmp_path: Path,
    pulumi_toolchain: PulumiToolchain,
    kafka_distribution: KafkaDistribution,
    unique: Callable[[str], str],
) -> None:
    settings = Settings(sasl_users=(SaslUser(name="headwater", password=PASSWORD),))
    with Broker(kafka_distribution, tmp_path / "broker", settings) as broker:
        world = make_world(tmp_path / "stack", pulumi_toolchain, Cluster(broker.bootstrap_servers), unique)
        world.declare()
        world.stack.configure(
            {
                "bootstrapServers": broker.address("SASL_PLAINTEXT"),
                "saslMechanism": "SCRAM-SHA-512",
                "saslUsername": "headwater",
            }
        )
        world.stack.set_secret("saslPassword", PASSWORD + "-mistyped")
        refused = world.stack.up()
        assert "error[AuthenticationRefused]" in refused.text, str(refused)
        world.stack.set_secret("saslPassword", PASSWORD)
        told = [
            refused.text,
            world.stack.preview("--json").text,
            world.up("--diff").text,
            world.stack.preview("--diff", "--json").text,
            world.stack.succeed("stack", "export"),
        ]
        world.settles_at(4, 4)
        world.is_clean()
        assert [text for text in told if PASSWORD in text] == []
        files = [path for path in world.stack.folder.rglob("*") if path.is_file() and not path.is_symlink()]
        state = [path for path in files if "state" in path.parts or path.suffix == ".yaml"]
        assert state
        assert [path for path in state if PASSWORD.encode() in path.read_bytes()] == []


def test_a_secret_in_plain_text_is_warned_of(world: World) -> None:
    world.declare()
    world.stack.configure({"saslPassword": PASSWORD})
    outcome = world.stack.preview()
    assert "saslPassword is a secret and stands in Pulumi.test.yaml" in outcome.text, str(outcome)
    assert PASSWORD not in outcome.text
