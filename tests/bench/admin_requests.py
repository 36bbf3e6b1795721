"""Count the admin requests of one snapshot: at most one more per 1,000 topics."""

from collections.abc import Iterator
from pathlib import Path

from headwater.kafka import Connection, KafkaClusterReader, snapshot_request
from headwater.spec import load_documents
from headwater.toolchain import PulumiToolchain
from headwater.toolchain.broker import Broker
from tests.bench.figures import Figure
from tests.bench.topologies import internal_topics, make_topics, write_documents


def run(folder: Path, _: PulumiToolchain, broker: Broker) -> Iterator[Figure]:
    for topics in (100, 1_000):
        documents = folder / f"requests-{topics}"
        write_documents(documents, topics, "requests")
        make_topics(broker.bootstrap_servers, internal_topics(documents))
        reader = KafkaClusterReader(Connection(bootstrap_servers=(broker.bootstrap_servers,)))
        snapshot = reader.read(snapshot_request(load_documents([documents]).documents, {}))
        described = len(snapshot.described)
        yield Figure(what=f"snapshot of {described:,} topics", unit="requests", ours=reader.requests)
