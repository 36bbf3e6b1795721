"""A fixed number of processors, while partitions are added to the source topic (KIP-287)."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

from headwater.kafka import Connection
from headwater.model.offset_metadata import OffsetMetadata
from headwater.spec import load_text
from headwater.toolchain import KafkaDistribution
from headwater.toolchain.broker import launch
from headwater.toolchain.broker.readiness import until
from headwater_spark.driver.processor_move.state_move import move_state
from tests.pulumi.cluster import Cluster
from tests.pulumi.conftest import Deployment
from tests.runtime.driver.sparkless import SINKS, Sparkless
from tests.runtime.spark.kafka_topics import Topics

pytestmark = [pytest.mark.pulumi, pytest.mark.slow]

CONFIG = {"partition.autoscaling.enabled": True, "processing.guarantee": "exactly_once_v2"}


@pytest.fixture
def narrow(deployment: Deployment, cluster: Cluster, unique: Callable[[str], str]) -> Deployment:
    """A deployment whose source topic has two partitions."""
    source = unique("narrow")
    cluster.create(source, 2)
    return attrs.evolve(deployment, source=source)


def test_a_doubled_source_grows_the_repartition_topic_and_not_the_changelog(narrow: Deployment) -> None:
    narrow.declare(CONFIG, processors=2)
    up = narrow.up()
    assert "sub-topology 1: 2 processors for 2 partitions" in up.text, str(up)
    narrow.settles_at(2, 2)

    narrow.cluster.expand(narrow.source, 3)
    narrow.refused("UnsafeExpansion")

    narrow.cluster.expand(narrow.source, 4)
    up = narrow.up()
    assert "sub-topology 1: 2 processors for 4 partitions" in up.text, str(up)
    narrow.settles_at(4, 2)

    narrow.declare(CONFIG)
    narrow.refused("ProcessorCount")
    narrow.declare(CONFIG, processors=4)
    narrow.cluster.produce(narrow.changelog, key=b"key")
    up = narrow.up()
    assert "The state of" in up.text
    assert "has 2 of 4 declared processors" in up.text, str(up)
    expected = "sub-topology 1: 2 of 4 processors for 4 partitions, about 1 changelog record"
    assert expected in up.text, str(up)
    narrow.settles_at(4, 2)
    narrow.is_clean()

    # The application adds the partitions
    narrow.cluster.expand(narrow.changelog, 4)
    narrow.declare(CONFIG, processors=4)
    up = narrow.up()
    assert "sub-topology 1: 4 processors for 4 partitions" in up.text, str(up)
    narrow.settles_at(4, 4)
    narrow.is_clean()


def test_fewer_processors_keep_the_changelog_topic(narrow: Deployment) -> None:
    """2 → 1 → 2 processors: Pulumi never changes or replaces the topic with the state."""

    def move(processors: int) -> None:
        document = load_text(_declared(narrow, processors), "app.yaml").documents[0]
        servers = (narrow.cluster.bootstrap_servers,)
        result = move_state(document, Connection(bootstrap_servers=servers), lambda *_: None)
        assert (result.before, result.after) == (3 - processors, processors)

    _declared(narrow, 2)
    narrow.up()
    narrow.settles_at(2, 2)
    before = narrow.facts()

    _declared(narrow, 1)
    refused = " ".join(narrow.refused("ProcessorCount").text.split())
    assert "run `headwater processors move --offline` with the document" in refused
    move(1)
    up = narrow.up()
    assert "sub-topology 1: 1 processor for 2 partitions (changelog topics keep 2)" in up.text, str(up)

    _declared(narrow, 2)
    up = narrow.up()
    assert "sub-topology 1: 1 of 2 processors for 2 partitions" in up.text, str(up)
    move(2)
    up = narrow.up()
    assert "sub-topology 1: 2 processors for 2 partitions" in up.text, str(up)
    narrow.is_clean()
    assert narrow.facts() == before


def _declared(narrow: Deployment, processors: int) -> str:
    """Declare an application that `headwater run` can execute; return the text of its document."""
    serdes = {"key": "string", "value": "string"}
    topology: list[dict[str, object]] = [
        {"stream": {"topic": narrow.source, "serdes": serdes}},
        {"groupBy": {"key": "value", "name": "by-customer"}},
        {"count": {"materialized": "counts"}},
    ]
    return narrow.write(topology, CONFIG, application={"processors": processors})


@pytest.mark.soak  # without Pulumi: `runtime/driver/test_expanded_changelogs`
def test_changelogs_that_an_agent_has_expanded_are_restored_as_the_plan_says(
    narrow: Deployment,
    tmp_path: Path,
    kafka_distribution: KafkaDistribution,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Earlier versions did not commit the number: the plan does not know how many the state has."""
    servers, encode = narrow.cluster.bootstrap_servers, OffsetMetadata.encode
    topics = Topics(servers)
    app = Sparkless(servers, narrow.id, tmp_path, topics)
    topics.create({f"{name}-{app.id}": 2 for name in ("orders", *SINKS)})

    def declare(processors: int) -> None:
        narrow.stack.document(narrow.id, app.text(processors))

    def changelogs() -> list[str]:
        return sorted(name for name in topics.names() if name.startswith(app.id) and "changelog" in name)

    declare(2)
    narrow.up()
    with monkeypatch.context() as earlier:
        earlier.setattr(
            OffsetMetadata,
            "encode",
            lambda *values, **named: encode(*values, **{**named, "declared": None}),
        )
        app.produce(10)
        app.process(2)
        app.expand(4)
        app.produce(13)
        app.process(2)
    expanded = changelogs()
    for topic in expanded:
        topics.expand(topic, 4)
    refused = " ".join(narrow.stack.up().text.split())
    assert "error[ProcessorCount]" in refused
    assert "Then keep `processors: 2`. To keep the state, copy the records of each partition" in refused

    copies = [record for topic in expanded for record in app.records(topic)]
    assert {record[1] for record in copies} == {0, 1}
    for topic in expanded:
        assert f"`kafka-topics.sh --bootstrap-server BROKER --delete --topic {topic}`" in refused
        line = launch.broker_tool_command(
            kafka_distribution, "topics", servers, ("--delete", "--topic", topic)
        )
        subprocess.run(line, check=True, capture_output=True)
    assert until(lambda: not changelogs(), 90)
    narrow.up()
    assert until(lambda: changelogs() == expanded, 90)
    assert {topics.partitions(topic) for topic in expanded} == {2}
    topics.send(
        (topic, partition, key, value, timestamp, headers)
        for topic, partition, _, timestamp, key, value, headers in copies
    )
    shutil.rmtree(app.folder / "state")
    app.produce(1)
    app.process(2)
    app.check_results(0)
    narrow.is_clean()


@pytest.mark.soak  # without Pulumi: `planner/test_processors`
def test_processors_are_the_way_out_of_an_unsafe_expansion(narrow: Deployment) -> None:
    narrow.set_up(CONFIG)
    narrow.cluster.expand(narrow.source, 4)
    refused = narrow.refused("UnsafeExpansion")
    assert "`processors: 2`" in " ".join(refused.text.split()), str(refused)
    narrow.declare(CONFIG, processors=2)
    narrow.up()
    narrow.settles_at(4, 2)
    narrow.is_clean()
