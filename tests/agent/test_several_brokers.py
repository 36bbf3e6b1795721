"""An agent expands topics with three replicas while one broker after another is killed."""

from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from headwater.agent.events import Expanded, ExpansionStarted
from headwater.agent.state import Phase
from headwater.kafka import Connection
from headwater.toolchain.kafka import KafkaDistribution
from tests.agent.live_documents import unique_documents
from tests.agent.running import await_counts, await_true, running, settings
from tests.agent.simulation import set_up
from tests.kafka.several_brokers import elect_preferred_leaders, several_brokers
from tests.pulumi.cluster import Cluster

pytestmark = [pytest.mark.broker, pytest.mark.slow, pytest.mark.soak]
_SECONDS = 180


def test_topics_get_exactly_their_partitions_while_brokers_are_killed(
    kafka_distribution: KafkaDistribution, tmp_path: Path, unique: Callable[[str], str]
) -> None:
    """`min.insync.replicas` is 2. Each expansion has begun when a broker is killed, and ends without it."""
    suffix = unique("x").removeprefix("x-")
    documents = unique_documents(suffix)
    with several_brokers(kafka_distribution, tmp_path) as brokers:
        servers = ",".join(broker.bootstrap_servers for broker in brokers)
        cluster = Cluster(servers)
        await_true(lambda: cluster.brokers() == {1, 2, 3})
        orders, returns = f"orders-{suffix}", f"returns-{suffix}"
        sources = {orders: 2, returns: 3}
        admin = AdminClient({"bootstrap.servers": servers})
        created = admin.create_topics(
            [NewTopic(name, partitions, 3) for name, partitions in set_up(documents, sources).items()]
        )
        for future in created.values():
            future.result()
        await_counts(cluster, documents, sources)
        ids = [document.application.id for document in documents]
        connection = Connection(bootstrap_servers=tuple(servers.split(",")))
        with running(settings(servers, documents, suffix, connection=connection)) as recorder:
            await_true(
                lambda: (
                    recorder.state.is_recovered and all(recorder.phase(each) is Phase.STEADY for each in ids)
                )
            )
            for number, victim in enumerate(brokers[1:], start=1):
                sources = {**sources, orders: 4 + 2 * number}
                cluster.expand(orders, sources[orders])
                await_true(lambda number=number: len(recorder.of(ExpansionStarted)) >= number)  # type: ignore[misc]
                victim.kill()
                await_counts(cluster, documents, sources, _SECONDS)
                await_true(lambda number=number: len(recorder.of(Expanded)) >= number, _SECONDS)  # type: ignore[misc]
                victim.start()
                await_true(lambda: cluster.brokers() == {1, 2, 3})
                elect_preferred_leaders(servers)
            await_counts(cluster, documents, sources, _SECONDS)
