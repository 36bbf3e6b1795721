"""The Pulumi CLI, the language host and the Kafka plugin together, on a real broker."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from toolchain import PulumiToolchain
from toolchain.broker.local import LocalBroker

pytestmark = pytest.mark.pulumi

_PROGRAM = """
import pulumi
import pulumi_kafka as kafka

settings = pulumi.Config()
cluster = kafka.Provider("cluster", bootstrap_servers=[settings.require("servers")], tls_enabled=False)
topic = kafka.Topic(
    "topic",
    name=settings.require("topic"),
    partitions=3,
    replication_factor=1,
    config={"cleanup.policy": "compact"},
    opts=pulumi.ResourceOptions(provider=cluster),
)
pulumi.export("topic", topic.name)
"""


def test_up_makes_a_topic_and_destroy_removes_it(
    kafka: LocalBroker,
    pulumi_toolchain: PulumiToolchain,
    unique: Callable[[str], str],
    tmp_path: Path,
) -> None:
    name = unique("smoke")
    (tmp_path / "Pulumi.yaml").write_text("name: smoke\nruntime: python\n")
    (tmp_path / "__main__.py").write_text(_PROGRAM)
    state = tmp_path / "state"
    state.mkdir()
    environment = pulumi_toolchain.environment(home=tmp_path / "home") | {
        "PULUMI_BACKEND_URL": f"file://{state}",
        "PULUMI_CONFIG_PASSPHRASE": "secret",
    }

    def pulumi(*arguments: str) -> str:
        done = subprocess.run(
            [pulumi_toolchain.cli, *arguments, "--non-interactive"],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    pulumi("stack", "init", "test")
    pulumi("config", "set", "servers", kafka.bootstrap_servers)
    pulumi("config", "set", "topic", name)
    pulumi("up", "--yes", "--skip-preview")

    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    assert len(admin.list_topics(timeout=5).topics[name].partitions) == 3
    assert json.loads(pulumi("stack", "output", "--json")) == {"topic": name}
    pulumi("preview", "--expect-no-changes")

    pulumi("destroy", "--yes", "--skip-preview")
    assert name not in admin.list_topics(timeout=5).topics
