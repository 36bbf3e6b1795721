"""Growth with the number of internal topics, of 10 per application: CPU time of commands."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from headwater.toolchain import ensure_kafka
from headwater.toolchain.broker import Broker, Settings
from tests.bench.figures import Figure
from tests.bench.growth.series import sizes
from tests.bench.scale import HEADWATER, TOPICS_EACH, cost, create_topics, write_applications
from tests.bench.topologies import SOURCE
from tests.pulumi.cluster import Cluster

_TOPICS = (10, 100, 1_000, 10_000)
_ROUNDS = 3
_BROKER = Settings(heap_mb=1024, sustained_load=True)


def run(folder: Path, _: Broker) -> Iterator[Figure]:
    """Use another broker: 10,000 topics nearly fill a heap of 512 MB, which the other series need, too."""
    chosen = sizes("TOPICS", _TOPICS)
    if chosen:
        with Broker(ensure_kafka(), folder / "kafka-of-topics", _BROKER) as broker:
            yield from _figures(folder, broker.bootstrap_servers, chosen)


def _figures(folder: Path, servers: str, chosen: Sequence[int]) -> Iterator[Figure]:
    Cluster(servers).create(SOURCE, 1)
    for size in chosen:
        applications = max(1, size // TOPICS_EACH)
        topics = applications * TOPICS_EACH
        documents = folder / f"growth-{topics}"
        write_applications(documents, applications)
        on_cluster = [str(documents), "--bootstrap-server", servers]
        drift = [*HEADWATER, "drift", *on_cluster]
        yield _figure("plan, all to create: CPU time", [*HEADWATER, "plan", *on_cluster], topics)
        create_topics(servers, documents, drift)
        yield _figure("drift, none: CPU time", drift, topics)


def _figure(what: str, command: list[str], topics: int) -> Figure:
    seconds = median(cost(command).cpu for _ in range(_ROUNDS))
    return Figure(what=what, unit="s", ours=seconds, size=topics, units="topics")
