"""The first `up` and later ones, while source topics are expanded."""

import re
from contextlib import suppress

import pytest
from confluent_kafka import KafkaException

from headwater.toolchain.broker.readiness import until
from tests.pulumi.conftest import Deployment
from tests.pulumi.driver import end

pytestmark = [pytest.mark.pulumi, pytest.mark.slow]

_SECONDS = 300
MANUAL = {"internal.topics.setup": "manual"}
GROWING = {"partition.autoscaling.enabled": True}
UNSAFE = {"allowUnsafeExpansion": True}


@pytest.mark.every_broker
def test_the_first_up_creates_and_later_ones_have_nothing_to_do(deployment: Deployment) -> None:
    """Until settings of the document change: they are changed in the setup record and in the topics."""
    deployment.declare(MANUAL)
    preview = deployment.stack.preview()
    assert preview.succeeded, str(preview)
    assert "first setup (manual)" in preview.text
    deployment.settles_at(None, None)
    deployment.up()
    deployment.settles_at(4, 4)
    assert all(topic["protect"] for topic in deployment.stack.topics().values())
    assert deployment.cluster.config(deployment.changelog)["cleanup.policy"] == "compact"
    deployment.stack.succeed("refresh", "--yes")
    deployment.is_clean()

    deployment.declare({"internal.topics.setup": "automatic", "topic.segment.bytes": 1048576})
    preview = deployment.stack.preview("--diff")
    assert preview.succeeded, str(preview)
    assert re.search(r"~ headwater:kafka:Setup: \(update\)", preview.text), str(preview)
    assert re.search(r'internal\.topics\.setup\s*: "manual → automatic"', preview.text), str(preview)
    assert "setting      internal.topics.setup: manual → automatic" in preview.text
    assert 'segment.bytes: "1048576"' in preview.text, str(preview)
    deployment.up()
    assert {deployment.cluster.config(name)["segment.bytes"] for name in deployment.topics} == {"1048576"}
    deployment.is_clean()


@pytest.mark.every_broker
def test_a_grown_source_is_an_error_until_autoscaling_is_enabled(deployment: Deployment) -> None:
    deployment.set_up()
    # Set by an operator: an update by the provider resets settings that it does not know.
    deployment.cluster.set_config(deployment.changelog, max_message_bytes="2000000")
    deployment.cluster.expand(deployment.source, 6)
    deployment.refused("SourceTopicsExpanded")
    deployment.declare(GROWING, setup=UNSAFE)
    up = deployment.up()
    deployment.settles_at(6, 6)
    downstream, upstream = (up.text.index(f"{name} updated") for name in reversed(deployment.topics))
    assert downstream < upstream, str(up)
    assert deployment.cluster.config(deployment.changelog)["max.message.bytes"] == "2000000"
    deployment.is_clean()


def test_a_topic_expanded_beyond_its_source_is_never_replaced(deployment: Deployment) -> None:
    deployment.set_up()
    deployment.cluster.expand(deployment.changelog, 9)
    deployment.refused("OverPartitionedInternalTopic")
    # With a refresh Pulumi alone would delete the topic and create it with fewer partitions.
    deployment.refused("OverPartitionedInternalTopic", flags=("--refresh",))


@pytest.mark.soak  # `test_overtaken` expands a topic that `up` has read
def test_an_expansion_during_an_up_leaves_nothing_to_do(deployment: Deployment) -> None:
    deployment.set_up(GROWING, setup=UNSAFE)
    deployment.cluster.expand(deployment.source, 6)
    process = deployment.stack.start("up", "--yes", "--skip-preview")
    # The provider polls each topic for a second after an expansion; the next wave comes after that.
    assert until(lambda: deployment.cluster.partitions(deployment.changelog) == 6, _SECONDS)
    with suppress(KafkaException):  # on a busy machine, the run may have expanded it already
        deployment.cluster.expand(deployment.repartition, 6)
    if not end(process, seconds=_SECONDS).succeeded:  # it had read the topic just before that
        deployment.up()
    deployment.settles_at(6, 6)
    deployment.is_clean()


def test_a_topic_that_the_topology_no_longer_has_stays(deployment: Deployment) -> None:
    deployment.set_up()
    deployment.write(
        [{"stream": {"topic": deployment.source}}, {"to": {"topic": deployment.source + "-out"}}]
    )
    deployment.cluster.create(deployment.source + "-out", 4)
    preview = deployment.stack.preview()
    assert preview.text.count("the topology no longer has it; it stays unless `leftovers` retires it") == 2, (
        str(preview)
    )
    deployment.up()
    deployment.settles_at(4, 4)
    deployment.cluster.delete(*deployment.topics)
    deployment.up()
    deployment.up()
    assert not deployment.stack.topics()
    deployment.is_clean()
