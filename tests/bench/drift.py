"""`headwater drift` beside the least that any such tool must do: list the topics and read their settings."""

import statistics
import subprocess
import sys
import time
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # public all the same

from tests.bench.topologies import SOURCE, internal_topics, make_topics, write_documents
from toolchain import PulumiToolchain
from toolchain.broker import Broker

ROUNDS = {1_000: 5, 10_000: 3}
_AT_A_TIME = 500
"""Topics in one creation: a controller refuses batches of more than 10,000 records."""
FLOOR = """
import sys
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

admin = AdminClient({"bootstrap.servers": sys.argv[1]})
names = [name for name in sorted(admin.list_topics(timeout=60).topics) if name.startswith("bench-")]
read = 0
for start in range(0, len(names), 1_000):
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in names[start : start + 1_000]]
    for future in admin.describe_configs(resources, request_timeout=60).values():
        read += bool(future.result())
assert read == len(names) >= int(sys.argv[2]), read
"""


def run(folder: Path, _: PulumiToolchain, broker: Broker) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    if SOURCE not in admin.list_topics(timeout=30).topics:
        admin.create_topics([NewTopic(SOURCE, num_partitions=1, replication_factor=1)])[SOURCE].result()
    for topics, rounds in ROUNDS.items():
        documents = folder / f"drift-{topics}"
        write_documents(documents, topics)
        wanted = internal_topics(documents)
        for start in range(0, topics, _AT_A_TIME):
            make_topics(broker.bootstrap_servers, wanted[start : start + _AT_A_TIME])
        ours = [sys.executable, "-m", "infra.cli", "drift", str(documents)]
        ours += ["--bootstrap-server", broker.bootstrap_servers]
        floor = [sys.executable, "-c", FLOOR, broker.bootstrap_servers, str(topics)]
        _compare(f"drift, {topics:,} topics (reach: at most 1.3)", ours, floor, rounds)


def _compare(title: str, ours: list[str], floor: list[str], rounds: int) -> None:
    """Take turns, so that whatever else the machine does hits both."""
    taken: dict[str, list[float]] = {"ours": [], "floor": []}
    for _ in range(rounds):
        for name, command in (("ours", ours), ("floor", floor)):
            start = time.monotonic()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            taken[name].append(time.monotonic() - start)
    mine, least = (statistics.median(taken[name]) for name in ("ours", "floor"))
    print(f"{title}: {mine:.1f} s, list and describe-configs {least:.1f} s, ratio {mine / least:.2f}")  # noqa: T201
