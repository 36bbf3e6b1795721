"""Admin requests of one snapshot, which must not grow with the topics (chunks of 1,000 apart)."""

from pathlib import Path

from infra.observe import Connection, KafkaClusterReader, snapshot_request
from infra.spec import load_documents
from tests.bench.topologies import write_documents
from toolchain import PulumiToolchain
from toolchain.broker import Broker


def run(folder: Path, _: PulumiToolchain, broker: Broker) -> None:
    for topics in (100, 1_000, 5_000):
        documents = folder / f"requests-{topics}"
        write_documents(documents, topics)
        reader = KafkaClusterReader(Connection(bootstrap_servers=(broker.bootstrap_servers,)))
        reader.read(snapshot_request(load_documents([documents]).documents, {}))
        print(f"snapshot for {topics:,} topics: {reader.requests} admin requests")  # noqa: T201
