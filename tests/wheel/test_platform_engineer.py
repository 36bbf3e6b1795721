"""A platform engineer: Kafka Streams applications that run already become documents and a stack."""

import shutil

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.contract.real_cluster import RealCluster
from tests.wheel.walk import Walk, blocks, command

pytestmark = [pytest.mark.pulumi, pytest.mark.broker, pytest.mark.soak]

_STREAMS = {"message.timestamp.type": "CreateTime"}
_REPARTITION = {**_STREAMS, "cleanup.policy": "delete", "retention.ms": "-1", "segment.bytes": "52428800"}
_CHANGELOG = {**_STREAMS, "cleanup.policy": "compact"}
_TEXT = """Topologies:
   Sub-topology: 0
    Source: KSTREAM-SOURCE-0000000000 (topics: [payments])
      --> KSTREAM-KEY-SELECT-0000000001
    Processor: KSTREAM-KEY-SELECT-0000000001 (stores: [])
      --> counts-repartition-filter
      <-- KSTREAM-SOURCE-0000000000
    Processor: counts-repartition-filter (stores: [])
      --> counts-repartition-sink
      <-- KSTREAM-KEY-SELECT-0000000001
    Sink: counts-repartition-sink (topic: counts-repartition)
      <-- counts-repartition-filter

  Sub-topology: 1
    Source: counts-repartition-source (topics: [counts-repartition])
      --> KSTREAM-AGGREGATE-0000000002
    Processor: KSTREAM-AGGREGATE-0000000002 (stores: [counts])
      --> none
      <-- counts-repartition-source

"""


def run_application(servers: str) -> None:
    """Leave on the cluster what a Kafka Streams application `billing` leaves there."""
    cluster = RealCluster(servers)
    cluster.create("payments", 2)
    cluster.create("billing-counts-repartition", 2, _REPARTITION)
    cluster.create("billing-counts-changelog", 2, _CHANGELOG)
    read = [
        TopicPartition(topic, partition, 0)
        for topic in ("payments", "billing-counts-repartition")
        for partition in range(2)
    ]
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "billing"})
    consumer.commit(offsets=read, asynchronous=False)
    consumer.close()


@pytest.mark.timeout(1_200)
def test_a_running_application_becomes_a_document_and_a_stack(walk: Walk) -> None:
    *_, created = blocks("own-repository.md", "Create the repository")[0].commands.splitlines()
    walk.run(created.replace("kafka-topics", "."))
    walk.run('headwater toolchain\neval "$(headwater toolchain env)"\nheadwater local up')
    local, cluster, _of_a_stack = blocks("own-repository.md", "Check that everything is ready")[
        0
    ].commands.splitlines()
    walk.run(local)
    walk.run(cluster)
    walk.run("rm topologies/orders.yaml")
    run_application(walk.as_typed("localhost:9092"))
    import_all, *_ = blocks("operations.md", "Importing a whole cluster")[0].commands.splitlines()
    walk.run(import_all)
    assert (walk.folder / "topologies" / "billing.yaml").exists()
    walk.run("headwater validate topologies/ --policies headwater-policies.yaml")

    walk.write("app.txt", _TEXT)
    describe, plan, up = blocks("operations.md", "Adopting one application")[0].commands.splitlines()
    walk.replaced = {
        **walk.replaced,
        "topologies/app.yaml": "topologies/billing.yaml",
        "--application-id app ": "--application-id billing ",
    }
    walk.run(describe)
    assert "2 to adopt" in walk.run(plan)
    walk.run(
        "mkdir -p .pulumi-state\n"
        'export PULUMI_BACKEND_URL="file://$PWD/.pulumi-state?metadata=skip" PULUMI_CONFIG_PASSPHRASE=local\n'
        "pulumi stack init local\n"
        f"pulumi config set headwater:bootstrapServers {walk.as_typed('localhost:9092')}"
    )
    assert "2 to adopt" in walk.run(up)
    assert "No drift" in walk.run(command("drift.md", "headwater drift topologies/ --bootstrap-server"))

    for start in ("--principal User:orders-app", "--self --for plan", "--self --for up"):
        walk.run(f"{command('acls.md', f'headwater acls topologies/ {start}').split(' > ')[0]} > grant.sh")
        assert "kafka-acls.sh" in walk.run("sh -n grant.sh && cat grant.sh")
    for line in blocks("upgrade.md", "See what changes")[0].commands.splitlines():
        walk.run(f"{line} || test $? = 2")  # something changes
    before, after, *_ = (block for block in blocks("changing-topologies.md", "See what an edit does"))
    walk.write("before.yaml", before.text)
    walk.write("after.yaml", after.text)
    walk.run(command("changing-topologies.md", "headwater change before.yaml after.yaml"), expected=2)
    walk.run("headwater local down --delete-data")
    shutil.rmtree(walk.folder / ".pulumi-state")
