"""Random kills of Kafka Streams applications with state, exactly once, while their topics are expanded.

Each instance is a process. The producer and the application use the same static partitioner, so each key
stays on its partition, and no count is lost or repeated.
"""

import random
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import attrs
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from headwater.toolchain.broker import Broker, Settings
from headwater_spark.engine.partitioners.hashing import default_partition
from tests.streams_library.application import TestedApplication
from tests.streams_library.applications import NEWEST, Applications, jvm

pytestmark = [pytest.mark.broker, pytest.mark.oracle]

_INITIAL = 2
_MOST_PARTITIONS = 6
_KEYS = 23
_CONFIG = {
    "internal_topics_setup": "manual",
    "partition_autoscaling_enabled": "true",
    "processing_guarantee": "exactly_once_v2",
    "producer_partitioner_class": "io.headwater.streams.partitioning.StaticPartitioner",
    "producer_static_partitioner_class": "initial-hash",
    "producer_static_partitioner_initial_partitions": str(_INITIAL),
    # A killed instance is noticed soon.
    "consumer_session_timeout_ms": "2000",
    "consumer_heartbeat_interval_ms": "300",
    "transaction_timeout_ms": "10000",
}
_BROKER = Settings(overrides={"group.min.session.timeout.ms": "1000"})


@attrs.define
class Load:
    """Produces records in a thread. `produced` is value → number of records; values are counted."""

    application: TestedApplication
    produced: Counter[str] = attrs.field(factory=Counter)

    @contextmanager
    def running(self) -> Iterator[None]:
        stop = threading.Event()
        thread = threading.Thread(target=self._produce, args=(stop,))
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def _produce(self, stop: threading.Event) -> None:
        producer = Producer(
            {"bootstrap.servers": self.application.bootstrap_servers, "enable.idempotence": True}
        )
        number = 0
        while not stop.is_set():
            for _ in range(20):
                number += 1
                key, value = f"key-{number % 17}", f"value-{number % _KEYS}"
                partition = default_partition(key.encode(), _INITIAL)
                producer.produce(self.application.source, value, key, partition)
                self.produced[value] += 1
            assert producer.flush(60) == 0
            stop.wait(0.1)


@attrs.define
class Instances:
    """Instances of the application, each in its own JVM with its own state folder."""

    application: TestedApplication
    folder: Path
    stack: ExitStack
    living: dict[str, Applications] = attrs.field(factory=dict)

    def start(self, name: str, *, initializes: bool = False) -> None:
        """Start an instance; the first one `initializes` the internal topics."""
        java = self.stack.enter_context(jvm(NEWEST, self.folder / name))
        if initializes:
            java.initialize(name, self.application.topology, self.application.configs(**_CONFIG))
        java.start(name, self.application.topology, self.application.configs(**_CONFIG))
        self.living[name] = java

    def kill(self, name: str) -> None:
        self.living.pop(name).kill()

    def fail_on_errors(self) -> None:
        for java in self.living.values():
            assert java.process.poll() is None
            assert not [event for event in java.events if event.kind in ("failed", "refused")], java.events[
                -5:
            ]


@pytest.mark.parametrize("kills", [1, pytest.param(20, marks=pytest.mark.soak)])
def test_no_record_is_lost_and_no_key_is_on_two_tasks(
    own_broker: Callable[..., Broker], tmp_path: Path, kills: int
) -> None:
    random_ = random.Random(kills)  # noqa: S311 - not for secrets
    with own_broker(_BROKER) as broker, ExitStack() as stack:
        application = TestedApplication("shop", broker.bootstrap_servers)
        application.create(application.source, _INITIAL)
        application.create(application.sink, _INITIAL)
        instances = Instances(application, tmp_path, stack)
        for name in ("a", "b"):
            instances.start(name, initializes=name == "a")
        instances.living["b"].running("b")
        load = Load(application)
        partitions = _INITIAL
        with load.running():
            for number in range(kills):
                await_progress(application)
                if partitions < _MOST_PARTITIONS and number % max(1, kills // 4) == 0:
                    partitions += 1
                    application.expand(application.source, partitions)
                threading.Event().wait(random_.uniform(0, 1.5))  # when exactly it is killed is random
                killed = random_.choice(sorted(instances.living))
                instances.kill(killed)
                instances.start(killed)
        expected = dict(load.produced)
        application.await_true(lambda: application.totals() == expected, "all records are counted once", 90)
        instances.fail_on_errors()
        assert partitions > _INITIAL
        counts = application.counts(*application.internal_topics)
        assert counts == dict.fromkeys(application.internal_topics, partitions)
        for topic in application.internal_topics:
            used = partitions_by_key(application, topic)
            assert len(used) == _KEYS
            assert {key: len(found) for key, found in used.items() if len(found) > 1} == {}


def await_progress(application: TestedApplication) -> None:
    before = application.end_offsets(application.sink)
    application.await_true(lambda: application.end_offsets(application.sink) > before, "progress", 60)


def partitions_by_key(application: TestedApplication, topic: str) -> dict[bytes, set[int]]:
    """Return key → partitions with committed records of it."""
    consumer = Consumer(
        {
            "bootstrap.servers": application.bootstrap_servers,
            "group.id": "partitions",
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
    )
    count = application.counts(topic)[topic]
    consumer.assign([TopicPartition(topic, number, 0) for number in range(count)])
    found: dict[bytes, set[int]] = defaultdict(set)
    ended = 0
    while ended < count:
        message = consumer.poll(30)
        assert message is not None
        if message.error() is not None:
            ended += 1
            continue
        key, partition = message.key(), message.partition()
        assert key is not None
        assert partition is not None
        found[key].add(partition)
    consumer.close()
    return found
