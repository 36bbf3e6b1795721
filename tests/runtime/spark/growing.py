"""An application whose topics get more partitions, and the results that it must have (KIP-287)."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import attrs
from pyspark.sql import SparkSession

from headwater.kafka import Connection
from headwater.spec import load_text
from headwater.toolchain.broker.readiness import until
from headwater_spark.driver.application import StreamsApplication
from headwater_spark.driver.preflight import check_runnable
from headwater_spark.driver.processor_move.state_move import move_state
from headwater_spark.driver.run_settings import RunSettings
from headwater_spark.driver.states import ClientState
from headwater_spark.partitioners import linear_partition
from tests.runtime.spark.kafka_topics import Topics

TIMEOUT_SECONDS = 240.0
_EPOCH_MS = 1_700_000_000_000
_ORDER_SECONDS = 0.5
"""Each batch takes CPU time, with few records, too."""
KEYS = 16
SOURCES, SINKS = ("orders", "customers"), ("counted", "joined", "regions")
DOCUMENT = """
application:
  id: APP
  processors: 2
  config:
    partition.autoscaling.enabled: true
    processing.guarantee: exactly_once_v2
    repartition.purge.interval.ms: 3600000
    statestore.cache.max.bytes: 0
topology:
  - stream: {topic: orders-APP, serdes: TEXTS, as: orders}
  - groupByKey:
  - count: {materialized: counts}
  - toStream:
  - mapValues: {value: "string(value)", serdes: {value: string}}
  - to: {topic: counted-APP}
  - table: {topic: customers-APP, serdes: TEXTS, as: customers, materialized: customers}
  - join: {from: orders, with: customers, value: "concat(left, '+', right)"}
  - to: {topic: joined-APP}
  - selectKey: {from: orders, key: "substring_index(value, '|', 1)"}
  - groupByKey:
  - count: {materialized: regions}
  - toStream:
  - mapValues: {value: "string(value)", serdes: {value: string}}
  - to: {topic: regions-APP}
""".replace("TEXTS", "{key: string, value: string}")


@attrs.define
class Growing:
    """The application, its topics with `initial` partitions at first, and all records produced to them."""

    spark: SparkSession
    servers: str
    id: str
    folder: Path
    topics: Topics
    initial: int = 2
    orders: list[tuple[str, str]] = attrs.field(factory=list)
    customers: dict[str, str] = attrs.field(factory=dict)
    joined: dict[str, list[str]] = attrs.field(factory=lambda: defaultdict(list))
    _time: int = _EPOCH_MS

    def name(self, topic: str) -> str:
        return f"{topic}-{self.id}"

    def another_client(self, name: str, **settings: object) -> StreamsApplication:
        """Return a second client, with its own checkpoint and state; names of queries need a session."""
        other = attrs.evolve(self, spark=self.spark.newSession(), folder=self.folder / name)
        return other._client(DOCUMENT, settings)

    def _client(self, document: str, settings: Mapping[str, object]) -> StreamsApplication:
        loaded = load_text(document.replace("APP", self.id), "growing.yaml")
        assert not loaded.problems, loaded.problems
        return StreamsApplication(
            self.spark,
            loaded.documents[0],
            check_runnable(loaded.documents[0]).programs,
            RunSettings(
                connection=Connection(bootstrap_servers=(self.servers,)),
                checkpoint=str(self.folder / "checkpoint"),
                state_folder=self.folder / "state",
                **{"check_interval_seconds": 1, **settings},  # type: ignore[arg-type]
            ),
        )

    @contextmanager
    def run(self, document: str = DOCUMENT, **settings: object) -> Iterator[StreamsApplication]:
        client = self._client(document, settings)
        client.start()
        try:
            yield client
            is_running = until(lambda: client.state is ClientState.RUNNING, TIMEOUT_SECONDS)
            assert is_running, (client.state, client.problems, list(client.subtopology_status()))
        finally:
            client.close()

    def move(self, processors: int) -> int:
        """Move the state while no client runs; return the number of processors before."""
        text = DOCUMENT.replace("APP", self.id).replace("processors: 2", f"processors: {processors}")
        document = load_text(text, "growing.yaml").documents[0]
        result = move_state(document, Connection(bootstrap_servers=(self.servers,)), lambda *_: None)
        assert result.after == processors
        return result.before

    def name_customers(self, word: str) -> None:
        self.put("customers", [(f"k{each}", f"{word} {each}") for each in range(KEYS)])
        self.customers = {f"k{each}": f"{word} {each}" for each in range(KEYS)}

    def order(self, rounds: int) -> None:
        """Produce an order of each key in each round; regions take turns."""
        first = len(self.orders)
        new = [(f"k{each % KEYS}", f"r{each * 7 % 5}|{each}") for each in range(first, first + rounds * KEYS)]
        self.put("orders", new)
        self.orders += new
        for key, value in new:
            self.joined[key].append(f"{value}+{self.customers[key]}")

    def put(self, topic: str, records: Sequence[tuple[str, str]]) -> None:
        rows = [(key.encode(), value.encode(), self._time + at) for at, (key, value) in enumerate(records)]
        self._time += len(records)
        name = self.name(topic)
        count = self.topics.partitions(name)
        self.topics.send(
            (name, linear_partition(key, self.initial, count), key, value, time, ())
            for key, value, time in rows
        )

    def go_back(self) -> None:
        """Give the next records earlier times than those that were produced."""
        self._time = _EPOCH_MS // 2

    def expand(self, partitions: int, topics: Sequence[str] = (*SINKS, *SOURCES)) -> None:
        """Add partitions to external topics, sinks first."""
        for topic in topics:
            self.topics.expand(self.name(topic), partitions)

    def expand_repartition_topic(self, partitions: int) -> None:
        self.topics.expand(f"{self.id}-regions-repartition", partitions)

    def written(self, sink: str) -> Mapping[str, Sequence[str]]:
        """Return key → values in the order in which they were written; each key is in one partition."""
        found: dict[str, list[str]] = defaultdict(list)
        for record in self.topics.get(self.name(sink)):
            found[(record[4] or b"").decode()].append((record[5] or b"").decode())
        return found

    def await_results(self, client: StreamsApplication) -> None:
        """Wait until all orders are processed, then compare the results with those of one processor."""
        results: dict[str, Mapping[str, Sequence[str]]] = {}

        def is_done() -> bool:
            for sink in SINKS:
                if sink not in results and self.topics.written(self.name(sink)) >= len(self.orders):
                    found = self.written(sink)
                    if sum(map(len, found.values())) >= len(self.orders):
                        # A key is in several partitions of a sink that was expanded.
                        results[sink] = {key: sorted(values) for key, values in found.items()}
            return len(results) == len(SINKS)

        done = until(lambda: client.state.is_final or is_done(), TIMEOUT_SECONDS)
        status = (client.state, client.problems, list(client.subtopology_status()))
        assert done, (results.keys(), len(self.orders), status)
        assert not client.state.is_final, status
        orders: dict[str, int] = defaultdict(int)
        regions: dict[str, int] = defaultdict(int)
        for key, value in self.orders:
            orders[key] += 1
            regions[value.partition("|")[0]] += 1
        expected = {
            "counted": _counts(orders),
            "regions": _counts(regions),
            "joined": {key: sorted(values) for key, values in self.joined.items()},
        }
        for sink, values in expected.items():
            found = results[sink]
            different = {key: (values.get(key), found.get(key)) for key in values.keys() | found.keys()}
            assert found == values, (
                sink,
                {key: each for key, each in different.items() if each[0] != each[1]},
            )


@attrs.define
class SteadyOrders:
    """Orders of all keys at a steady rate."""

    growing: Growing
    _written_at: float = 0.0

    def write(self) -> None:
        """Write orders, unless that was done just now."""
        if time.monotonic() - self._written_at >= _ORDER_SECONDS:
            self.growing.order(1)
            self._written_at = time.monotonic()

    def write_until(self, client: StreamsApplication, is_reached: Callable[[], bool]) -> None:
        """Write orders until `is_reached`; fail if the client ends before."""

        def is_done() -> bool:
            self.write()
            return client.state.is_final or is_reached()

        assert until(is_done, TIMEOUT_SECONDS), (client.state, client.processors())
        assert not client.state.is_final, client.problems


def _counts(totals: Mapping[str, int]) -> Mapping[str, Sequence[str]]:
    return {key: sorted(str(each + 1) for each in range(total)) for key, total in totals.items()}


def new_growing(spark: SparkSession, servers: str, id_: str, folder: Path, initial: int = 2) -> Growing:
    """Return an application whose sources and sinks have `initial` partitions."""
    topics = Topics(servers, keeps_producer=True)
    growing = Growing(spark, servers, id_, folder, topics, initial)
    topics.create({growing.name(topic): initial for topic in (*SOURCES, *SINKS)})
    return growing
