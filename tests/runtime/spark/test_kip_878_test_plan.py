"""KIP-878's test plan: an application on Spark goes on while external, then internal topics grow."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import attrs
import pytest
from confluent_kafka import Consumer, TopicPartition
from pyspark.sql import SparkSession

from infra.observe import Connection
from infra.spec import load_text
from spark_jobs.runtime.driver.application import StreamsApplication
from spark_jobs.runtime.driver.preflight import check_runnable
from spark_jobs.runtime.driver.run_settings import RunSettings
from spark_jobs.runtime.driver.states import ClientState
from tests.control.agent_process import AgentProcess
from tests.runtime.spark.kafka_topics import Topics
from tests.runtime.spark.ledger import Entry, Ledger, round_of
from tests.runtime.spark.tenants import home
from toolchain.broker.local import LocalBroker
from toolchain.broker.readiness import until

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1800)]

_PATIENCE_SECONDS = 300.0
_FOLLOW_UP_MS = 10_000
_SOURCES = ("orders", "customers", "purchases", "clicks", "albums")
_SINKS = ("joined", "counted", "enriched", "summed")
_OLD = {**dict.fromkeys((*_SOURCES, *_SINKS), 2), "albums": 3}
_NEW = {**dict.fromkeys((*_SOURCES, *_SINKS), 4), "albums": 5}
_PARALLELISM = {"0": 4, "1": 4, "2": 4, "3": 5, "4": 4}
_INTERNAL = {
    "counts-repartition": 4,
    "counts-changelog": 4,
    "customers-changelog": 4,
    "purchases-changelog": 4,
    "albums-changelog": 5,
    "by-album-subscription-registration-topic": 5,
    "by-album-subscription-store-changelog": 5,
    "by-album-subscription-response-topic": 4,
    "sums-changelog": 4,
}
_DOCUMENT = """
application:
  id: APP
  config:
    partition.autoscaling.enabled: true
    static.partitioner.class: "tests.runtime.spark.tenants:ByTenant"
    processing.guarantee: exactly_once_v2
    statestore.cache.max.bytes: 0
    repartition.purge.interval.ms: 3600000
topology:
  - stream: {topic: orders-APP, serdes: TEXTS, as: orders}
  - table: {topic: customers-APP, serdes: TEXTS, as: customers, materialized: customers}
  - join: {from: orders, with: customers, value: "concat(left, '+', right)"}
  - to: {topic: joined-APP}
  - selectKey: {from: orders, key: "substring_index(value, '|', 1)"}
  - groupByKey:
  - count: {materialized: counts}
  - toStream:
  - mapValues: {value: "string(value)", serdes: {value: string}}
  - to: {topic: counted-APP}
  - table: {topic: purchases-APP, serdes: TEXTS, as: purchases, materialized: purchases}
  - table: {topic: albums-APP, serdes: TEXTS, as: albums, materialized: albums}
  - join:
      from: purchases
      with: albums
      foreignKey: "substring_index(value, '|', 1)"
      value: "concat(left, '+', right)"
      name: by-album
  - toStream:
  - to: {topic: enriched-APP}
  - stream: {topic: clicks-APP, serdes: TEXTS}
  - process:
      class: "tests.runtime.spark.tenants:Sums"
      stores: [{name: sums, kind: keyValue, serdes: {key: string, value: long}}]
      name: sums
  - to: {topic: summed-APP}
""".replace("TEXTS", "{key: string, value: string}")


@attrs.frozen
class Plan:
    """The application, its topics, and all that was produced to them."""

    id: str
    servers: str
    topics: Topics
    application: StreamsApplication
    ledger: Ledger

    def settle(self) -> None:
        """Wait until all that was produced has been worked off."""
        assert until(lambda: all(map(self.is_consumed, _SOURCES)), _PATIENCE_SECONDS), self.told()
        self.application.wait_until_idle()
        assert self.application.state is ClientState.RUNNING, self.told()

    def put_and_settle(self, entries: Sequence[Entry]) -> None:
        self.ledger.put(entries)
        self.settle()

    def is_consumed(self, source: str) -> bool:
        """Whether the application's group has committed all there is, on all partitions."""
        assert not self.application.state.is_final, self.told()
        name = self.ledger.name(source)
        reader = Consumer({"bootstrap.servers": self.servers, "group.id": self.id})
        try:
            places = [TopicPartition(name, each) for each in range(self.topics.partitions(name))]
            found = reader.committed(places, 30)
            ends = [reader.get_watermark_offsets(place, 30)[1] for place in places]
            return [max(each.offset, 0) for each in found] == ends
        finally:
            reader.close()

    def told(self) -> object:
        return self.application.state, self.application.problems, list(self.application.subtopology_status())

    def await_rounds(self, rounds: int) -> None:
        """Wait until so many more rounds have been produced, all within the block of `flow`."""
        wanted = len(self.ledger.entries) + rounds * len(round_of(0, 2, 3))
        assert until(lambda: len(self.ledger.entries) >= wanted, _PATIENCE_SECONDS)

    @contextmanager
    def flow(self, tenants: int, albums: int) -> Iterator[None]:
        """Produce round after round within the block."""
        stop = Event()

        def produce() -> None:
            number = 100
            while not stop.wait(0.2):
                self.ledger.put(round_of(number, tenants, albums))
                number += 1

        with ThreadPoolExecutor(1) as threads:
            producing = threads.submit(produce)
            try:
                yield
            finally:
                stop.set()
            producing.result()

    def check_results(self) -> None:
        """Reconcile all four parts with what was produced."""
        assert self._values("joined") == self.ledger.joined()
        assert self._values("counted") == self.ledger.counted()
        assert self._values("summed") == self.ledger.summed()
        enriched = self._values("enriched")
        assert {key: each[-1] for key, each in enriched.items() if each[-1]} == self.ledger.enriched()
        pairs = [(key, value) for key, values in enriched.items() for value in values if value]
        assert len(pairs) == len(set(pairs))
        assert set(pairs) <= self.ledger.possible()

    def check_places(self) -> None:
        """See that every key in internal topics has one partition, the one where it is at home."""
        for name in map(f"{self.id}-{{}}".format, self.internal()):
            for _, partition, _, _, key, *_ in self.topics.get(name):
                assert key is not None
                assert partition == home(foreign(key) if "subscription-store" in name else key.decode())

    def _values(self, sink: str) -> Mapping[str, Sequence[str | None]]:
        found: dict[str, list[str | None]] = defaultdict(list)
        for _, partition, _, _, key, value, *_ in self.topics.get(self.ledger.name(sink)):
            assert key is not None
            assert partition == home(key.decode())
            found[key.decode()].append(None if value is None else value.decode())
        return found

    def parallelism(self) -> Mapping[str, int]:
        """What the runtime reads."""
        return {part["id"]: part["parallelism"] for part in self.application.subtopology_status()}

    def internal(self) -> Mapping[str, int]:
        names = [name for name in self.topics.names() if name.startswith(f"{self.id}-")]
        return {name.removeprefix(f"{self.id}-"): self.topics.partitions(name) for name in sorted(names)}


@pytest.fixture
def plan(
    spark: SparkSession, kafka: LocalBroker, tmp_path: Path, unique: Callable[[str], str]
) -> Iterator[Plan]:
    id_, servers = unique("app"), kafka.bootstrap_servers
    (tmp_path / "documents").mkdir()
    text = _DOCUMENT.replace("APP", id_)
    (tmp_path / "documents" / "plan.yaml").write_text(text)
    loaded = load_text(text, "plan.yaml")
    assert not loaded.problems, loaded.problems
    topics = Topics(servers)
    ledger = Ledger(topics, id_)
    topics.create({ledger.name(topic): count for topic, count in _OLD.items()})
    application = StreamsApplication(
        spark,
        loaded.documents[0],
        check_runnable(loaded.documents[0]).programs,
        RunSettings(
            connection=Connection(bootstrap_servers=(servers,)),
            checkpoint=str(tmp_path / "checkpoint"),
            state_folder=tmp_path / "state",
            check_interval_seconds=1,
        ),
    )
    application.start()
    yield Plan(id_, servers, topics, application, ledger)
    application.close()


@pytest.fixture
def agent(plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AgentProcess]:
    monkeypatch.setenv("HEARD_FILE", str(tmp_path / "heard"))
    made = AgentProcess("agent-1", tmp_path / "documents", plan.servers, plan.id, _FOLLOW_UP_MS)
    yield made
    made.process.kill()
    made.process.wait()


def test_an_application_grows_with_its_topics_while_records_flow(
    plan: Plan, agent: AgentProcess, tmp_path: Path
) -> None:
    plan.put_and_settle(customers(2))
    for number in range(2):
        plan.ledger.put(round_of(number, 2, 3))
    plan.settle()
    plan.check_results()
    await_parallelism(plan, agent, {part: 3 if part == "3" else 2 for part in _PARALLELISM})
    with plan.flow(2, 3):
        for topic in (*_SINKS, *_SOURCES):  # most downstream first
            plan.topics.expand(plan.ledger.name(topic), _NEW[topic])
            plan.await_rounds(2 if topic == "orders" else 0)  # it is joined with customers, which lag behind
        plan.await_rounds(1)
        await_parallelism(plan, agent, _PARALLELISM)
        assert plan.internal() == _INTERNAL
        new = [entry for entry in customers(4) if home(entry[1]) >= 2]
        plan.ledger.put(new)
        assert until(lambda: plan.is_consumed("customers"), _PATIENCE_SECONDS), plan.told()
        plan.ledger.put(round_of(50, 4, 5))
    plan.settle()
    plan.put_and_settle(customers(4, "renamed"))
    plan.ledger.put(round_of(51, 4, 5))
    # Kafka Streams takes the answer to a deletion for outdated once the key is back, even without a partner.
    plan.put_and_settle([("albums", "t1:a0", None), ("albums", "t4:a1", None), ("purchases", "t3:p1", None)])
    plan.ledger.put(round_of(52, 4, 5))
    plan.put_and_settle([("purchases", "t0:p1", None), ("purchases", "t3:p0", None)])
    plan.check_results()
    plan.check_places()
    assert until(lambda: plan.parallelism() == _PARALLELISM, _PATIENCE_SECONDS), plan.told()
    agent.await_line("callback called")
    assert agent.value("num_autoscaling_failures_total", client_id="agent-1") == 0
    assert agent.end() == 0
    assert (tmp_path / "heard").read_text() == "3 5\n"


def customers(tenants: int, word: str = "named") -> list[Entry]:
    return [("customers", f"t{t}:c{each}", f"{word} {t}.{each}") for t in range(tenants) for each in range(2)]


def await_parallelism(plan: Plan, agent: AgentProcess, wanted: Mapping[str, int]) -> None:
    """Wait until the agent's metrics say that every sub-topology has the tasks that it should have."""

    def told() -> Mapping[str, set[float | None]]:
        return {
            part: {
                agent.value(f"{kind}_subtopology_parallelism", application_id=plan.id, subtopology_id=part)
                for kind in ("current", "expected")
            }
            for part in wanted
        }

    both = {part: {count} for part, count in wanted.items()}
    assert until(lambda: told() == both, _PATIENCE_SECONDS), told()


def foreign(key: bytes) -> str:
    """Return the first half of a subscription's key: length, foreign key, key."""
    return key[4 : 4 + int.from_bytes(key[:4], "big")].decode()
