"""Kafka Streams as the peer of `processors`: an application under load gets a second instance.

It has as many partitions as our application has processors at the end, no standby replicas, and the default
number of warm-up replicas. Its first instance has two stream threads, the second one, too.
"""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from confluent_kafka.admin import AdminClient

from tests.bench.runtime.streams import KafkaStreamsPeer
from toolchain.broker.readiness import until

_THREADS = 2
_SECONDS = 300.0
_CONFIG = {
    "processing.guarantee": "exactly_once_v2",
    "statestore.cache.max.bytes": "0",
    "num.stream.threads": str(_THREADS),
    "num.standby.replicas": "0",
    # The default is ten minutes; this is the minimum. When warm-up replicas have caught up, it decides when
    # tasks move, not how long their results pause.
    "probing.rebalance.interval.ms": "60000",
}


def requested_and_done(
    servers: str,
    folder: Path,
    id_: str,
    load: Callable[[], AbstractContextManager[None]],
    seconds: float,
) -> tuple[float, float]:
    """Return when the second instance was started, and when it had half of the tasks.

    The application reads `in-<id_>` and counts to `out-<id_>`. It runs under `load`, and for `seconds` before
    the start of the second instance and after it has its tasks.

    Raises:
        RuntimeError: An instance failed, or the tasks have not moved.
    """
    request = "count", [(f"in-{id_}", f"out-{id_}")]
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    with (
        KafkaStreamsPeer(servers, folder / "first.log") as first,
        KafkaStreamsPeer(servers, folder / "second.log") as second,
        first.application(*request, {**_CONFIG, "application.id": id_, "client.id": "first"}),
        load(),
    ):
        time.sleep(seconds)
        requested = time.monotonic()
        with second.application(*request, {**_CONFIG, "application.id": id_, "client.id": "second"}):
            if not until(lambda: _has_half(admin, id_), _SECONDS):
                reason = first.failure() or second.failure()
                raise RuntimeError(f"Kafka Streams has not moved its tasks: {reason}")
            done = time.monotonic()
            time.sleep(seconds)
    return requested, done


def _has_half(admin: AdminClient, group: str) -> bool:
    """Return whether the clients `first` and `second` read the same number of partitions, and read all."""
    members = admin.describe_consumer_groups([group])[group].result().members
    partitions = {
        client: sum(
            len(member.assignment.topic_partitions)
            for member in members
            if member.client_id.startswith(client) and member.assignment is not None
        )
        for client in ("first", "second")
    }
    return partitions["first"] == partitions["second"] > 0
