"""Kafka Streams as the peer of `processors`: an application under load gets a second instance.

It has as many partitions as our application has processors at the end, and no standby replicas. Its first
instance has two stream threads, the second one, too.
"""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from enum import Enum
from pathlib import Path

import attrs
from confluent_kafka.admin import AdminClient

from headwater.kafka import Connection
from headwater.toolchain.broker.readiness import until
from headwater_spark.driver.offsets import GroupOffsets
from tests.bench.runtime.steady_load import Results, create
from tests.bench.runtime.streams import KafkaStreamsPeer

_THREADS = 2
_SECONDS = 300.0
_CONFIG = {
    "processing.guarantee": "exactly_once_v2",
    "statestore.cache.max.bytes": "0",
    "num.stream.threads": str(_THREADS),
    "num.standby.replicas": "0",
}


class WarmUp(Enum):
    """How the tasks move; the value is printed.

    REPLICAS: the default. At a probing rebalance, a task moves if its warm-up replica has caught up.
    NONE: each instance counts as caught up, so tasks move at once, and restore their state then.
    """

    REPLICAS = "with warm-up replicas"
    NONE = "without warm-up replicas"

    @property
    def config(self) -> dict[str, str]:
        if self is WarmUp.NONE:
            return {"acceptable.recovery.lag": str(2**63 - 1)}
        # The minimum; the default is ten minutes. It decides when tasks move, not how long results pause.
        return {"probing.rebalance.interval.ms": "60000"}


@attrs.frozen(kw_only=True)
class SecondInstance:
    """An application that reads `in-<id_>` with `partitions` partitions, and counts to `out-<id_>`.

    It has counted `keys` keys before. `load` is a context in which records are written. It runs for `seconds`
    before the start of the second instance, and after its tasks have results.
    """

    servers: str
    folder: Path
    id_: str
    keys: int
    partitions: int
    load: Callable[[], AbstractContextManager[None]]
    results: Results
    seconds: float

    def requested_and_done(self, warm_up: WarmUp) -> tuple[float, float]:
        """Return when the second instance was started, and when it had half of the tasks, with results.

        Raises:
            RuntimeError: An instance failed, or the tasks have not moved.
        """
        request = "count", [(f"in-{self.id_}", f"out-{self.id_}")]
        config = {**_CONFIG, **warm_up.config, "application.id": self.id_}
        admin = AdminClient({"bootstrap.servers": self.servers, "log_level": 0})
        create(self.servers, self.id_, self.keys, self.partitions)
        with (
            KafkaStreamsPeer(self.servers, self.folder / f"{self.id_}-first.log") as first,
            KafkaStreamsPeer(self.servers, self.folder / f"{self.id_}-second.log") as second,
            first.application(*request, {**config, "client.id": "first"}),
        ):
            peers = (first, second)
            _await("processed the keys", self._is_processed, peers)
            with self.load(), self.results.observed(self.servers, f"out-{self.id_}"):
                time.sleep(self.seconds)
                requested = time.monotonic()
                with second.application(*request, {**config, "client.id": "second"}):
                    _await("moved its tasks", lambda: _has_half(admin, self.id_), peers)
                    moved = time.monotonic()
                    _await("restored its tasks", lambda: self.results.have_arrived_since(moved), peers)
                    done = time.monotonic()
                    time.sleep(self.seconds)
        return requested, done

    def _is_processed(self) -> bool:
        partitions = [(f"in-{self.id_}", each) for each in range(self.partitions)]
        with closing(GroupOffsets(Connection(bootstrap_servers=(self.servers,)), self.id_)) as offsets:
            committed, ends = offsets.committed(partitions), offsets.end_offsets(partitions)
        return all(committed.get(each, 0) >= end for each, end in ends.items())


def _await(what: str, is_reached: Callable[[], bool], peers: tuple[KafkaStreamsPeer, ...]) -> None:
    failures: list[str] = []

    def is_over() -> bool:
        failures.extend(failure for peer in peers if (failure := peer.failure()) is not None)
        return bool(failures) or is_reached()

    if not until(is_over, _SECONDS) or failures:
        raise RuntimeError(f"Kafka Streams has not {what}: {failures or f'no failure in {_SECONDS:g} s'}")


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
