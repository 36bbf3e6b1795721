"""Growth with the number of internal topics, of 10 per application: CPU time of commands."""

from collections.abc import Iterator
from pathlib import Path
from statistics import median

from tests.bench.figures import Figure
from tests.bench.growth.series import sizes
from tests.bench.scale import HEADWATER, TOPICS_EACH, cost, create_topics, write_applications
from tests.bench.topologies import SOURCE
from tests.pulumi.cluster import Cluster
from toolchain.broker import Broker

_TOPICS = (10, 100, 1_000, 10_000)
_ROUNDS = 3


def run(folder: Path, broker: Broker) -> Iterator[Figure]:
    servers = broker.bootstrap_servers
    Cluster(servers).create(SOURCE, 1)
    for size in sizes("TOPICS", _TOPICS):
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
