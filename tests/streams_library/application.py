"""One application of a test: its topics on the broker, and its configs."""

from collections.abc import Callable, Mapping

import attrs
from confluent_kafka import Consumer, Producer, TopicCollection, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # public, but not exported explicitly
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from headwater.toolchain.broker.readiness import until
from headwater_spark.engine.partitioners.hashing import default_partition

_SECONDS = 90


@attrs.frozen
class TestedApplication:
    """`topology` is a name of `Topologies.java`."""

    __test__ = False

    id: str
    bootstrap_servers: str
    kind: str = "counts"
    admin: AdminClient = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "admin", AdminClient({"bootstrap.servers": self.bootstrap_servers}))

    @property
    def topology(self) -> str:
        return f"{self.kind}:{self.source}:{self.sink}"

    @property
    def source(self) -> str:
        return f"{self.id}-orders"

    @property
    def sink(self) -> str:
        return f"{self.id}-totals"

    @property
    def changelog(self) -> str:
        return f"{self.id}-{self.kind}-changelog"

    @property
    def repartition(self) -> str:
        return f"{self.id}-by-value-repartition"

    @property
    def internal_topics(self) -> list[str]:
        return sorted([self.changelog, *([self.repartition] if self.kind == "counts" else [])])

    def configs(self, **changed: str) -> dict[str, str]:
        """Return configs; underscores in names stand for dots."""
        return {
            "application.id": self.id,
            "bootstrap.servers": self.bootstrap_servers,
            **{name.replace("_", "."): value for name, value in changed.items()},
        }

    def create(self, topic: str, partitions: int, configs: Mapping[str, str] | None = None) -> None:
        self.admin.create_topics([NewTopic(topic, partitions, 1, config=dict(configs or {}))])[topic].result()
        self.await_true(lambda: self.counts(topic) == {topic: partitions}, "topic is created")

    def expand(self, topic: str, partitions: int) -> None:
        self.admin.create_partitions([NewPartitions(topic, partitions)])[topic].result()
        self.await_true(lambda: self.counts(topic) == {topic: partitions}, "topic is expanded")

    def delete(self, topic: str) -> None:
        self.admin.delete_topics([topic])[topic].result()
        self.await_true(lambda: not self.counts(topic), "topic is deleted")

    def counts(self, *topics: str) -> dict[str, int]:
        """Return topic → partition count of those that exist."""
        known = self.admin.list_topics(timeout=_SECONDS).topics
        return {topic: len(known[topic].partitions) for topic in topics if topic in known}

    def topic_ids(self, *topics: str) -> dict[str, str]:
        """Return topic → id, as Headwater records it."""
        described = self.admin.describe_topics(TopicCollection(list(topics)))
        return {topic: str(future.result().topic_id) for topic, future in described.items()}

    def config(self, topic: str, name: str) -> str:
        resource = ConfigResource(ResourceType.TOPIC, topic)
        return str(self.admin.describe_configs([resource])[resource].result()[name].value)

    def set_config(self, topic: str, name: str, value: str) -> None:
        entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        self.admin.incremental_alter_configs([resource])[resource].result()
        self.await_true(lambda: self.config(topic, name) == value, "config is set")

    def produce(self, count: int) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap_servers})
        for number in range(count):
            producer.produce(self.source, str(number % 7), str(number % 3))
        assert producer.flush(_SECONDS) == 0

    def produce_static(self, count: int, initial: int) -> None:
        """Produce records to the partitions that `initial-hash` chooses."""
        producer = Producer({"bootstrap.servers": self.bootstrap_servers})
        for number in range(count):
            key = str(number % 7)
            partition = default_partition(key.encode(), initial)
            producer.produce(self.source, f"value-{number % 11}", key, partition)
        assert producer.flush(_SECONDS) == 0

    def totals(self) -> dict[str, int]:
        """Return the greatest count of each key of the sink."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap_servers,
                "group.id": "totals",
                "enable.partition.eof": True,
                "isolation.level": "read_committed",
            }
        )
        partitions = self.counts(self.sink)[self.sink]
        consumer.assign([TopicPartition(self.sink, number, 0) for number in range(partitions)])
        totals: dict[str, int] = {}
        ended = 0
        while ended < partitions:
            message = consumer.poll(_SECONDS)
            assert message is not None
            if message.error() is not None:
                ended += 1
                continue
            key, value = message.key(), message.value()
            assert key is not None
            assert value is not None
            totals[key.decode()] = max(totals.get(key.decode(), 0), int.from_bytes(value, "big"))
        consumer.close()
        return totals

    def end_offsets(self, topic: str) -> int:
        """Return the sum of the end offsets of a topic."""
        consumer = Consumer({"bootstrap.servers": self.bootstrap_servers, "group.id": "offsets"})
        try:
            return sum(
                consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=_SECONDS)[1]
                for partition in range(self.counts(topic)[topic])
            )
        finally:
            consumer.close()

    def await_true(self, condition: Callable[[], bool], what: str, seconds: float = _SECONDS) -> None:
        assert until(condition, seconds), what
