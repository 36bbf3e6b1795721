"""Another client expands a topic after `up` has read it and before it registers it."""

import json

import pytest

from tests.pulumi.conftest import Deployment
from tests.pulumi.driver import Outcome

pytestmark = [pytest.mark.pulumi, pytest.mark.slow]

GROWING = {"partition.autoscaling.enabled": True}
PROGRAM = """
import pulumi
from headwater.pulumi import deploy
from headwater.pulumi.program import configured_settings
from headwater.kafka import KafkaClusterReader
from tests.pulumi.cluster import Cluster

TOPIC = "{topic}"


class Read:
    def __init__(self, found):
        self.found, self.partitions = found, found.partitions

    def snapshot(self):
        return self.found


class Overtaken(KafkaClusterReader):
    def begin(self, asked):
        found = super().begin(asked).snapshot()
        self.overtake("begin")
        return Read(found)

    def partition_counts(self, names):
        counts = super().partition_counts(names)
        self.overtake("partition_counts")
        return counts

    def overtake(self, method):
        if method != "{method}" or pulumi.runtime.is_dry_run():
            return
        if super().partition_counts([TOPIC])[TOPIC] < 6:
            Cluster("{servers}").expand(TOPIC, 6)


async def main():
    await deploy(configured_settings(), reader_for=Overtaken)


pulumi.run(main)
"""


@pytest.mark.parametrize(
    "config",
    [
        pytest.param(GROWING, marks=pytest.mark.soak),
        {**GROWING, "topic.segment.bytes": 2_000_000},
    ],
)
def test_up_continues_and_the_next_preview_is_clean(
    deployment: Deployment, config: dict[str, object]
) -> None:
    unsafe = {"allowUnsafeExpansion": True}
    deployment.set_up(GROWING, setup=unsafe)
    deployment.cluster.expand(deployment.source, 6)
    deployment.declare(config, setup=unsafe)
    up = up_with_concurrent_expansion(deployment, after="begin")
    assert up.succeeded, str(up)
    assert f"expand       {deployment.changelog}" in up.text, str(up)
    deployment.settles_at(6, 6)
    assert deployment.cluster.config(deployment.changelog).get("segment.bytes") == (
        "2000000" if config != GROWING else None
    )
    deployment.is_clean()


def test_a_refresh_clears_the_state_after_a_late_concurrent_expansion(
    deployment: Deployment,
) -> None:
    """Pulumi records that an update has failed, and shows another one until the refresh."""
    deployment.set_up(GROWING, setup={"allowUnsafeExpansion": True})
    deployment.cluster.expand(deployment.source, 6)
    up = up_with_concurrent_expansion(deployment, after="partition_counts")
    assert "Number of partitions is invalid" in up.text, str(up)
    assert shown(deployment).get(deployment.changelog) == "update"
    deployment.stack.succeed("refresh", "--yes")
    assert deployment.changelog not in shown(deployment)
    deployment.up()
    deployment.settles_at(6, 6)


def shown(deployment: Deployment) -> dict[str, str]:
    """Return resource name → operation of a preview."""
    steps = json.loads(deployment.stack.preview("--json").text)["steps"]
    return {step["urn"].rpartition("::")[2]: step["op"] for step in steps if step["op"] != "same"}


def up_with_concurrent_expansion(deployment: Deployment, *, after: str) -> Outcome:
    """Run an `up` during which the changelog topic is expanded right after this request to the cluster."""
    program = deployment.stack.folder / "__main__.py"
    usual = program.read_text()
    servers = deployment.cluster.bootstrap_servers
    program.write_text(PROGRAM.format(topic=deployment.changelog, servers=servers, method=after))
    up = deployment.stack.up()
    program.write_text(usual)
    return up
