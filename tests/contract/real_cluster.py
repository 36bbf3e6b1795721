"""The same deeds as on the cluster in memory, done to a real broker."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import attrs
from confluent_kafka import OFFSET_END, Consumer, Producer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # public, but not exported explicitly
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from headwater.change.ownership import write_ownership
from headwater.kafka import Connection, KafkaClusterReader
from headwater.model.records import OwnershipChange
from headwater.toolchain.broker.readiness import until

_SECONDS = 90


def _is_assigned(consumer: Consumer) -> bool:
    consumer.poll(0.1)
    return bool(consumer.assignment())


@attrs.define
class RealCluster:
    bootstrap_servers: str
    _admin: AdminClient = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._admin = AdminClient({"bootstrap.servers": self.bootstrap_servers})

    def create(self, name: str, partitions: int, config: Mapping[str, str] | None = None) -> None:
        self._admin.create_topics([NewTopic(name, partitions, 1, config=dict(config or {}))])[name].result()
        # The broker that answers learns of a new topic a moment later.
        assert until(lambda: name in self._admin.list_topics().topics, _SECONDS)

    def delete(self, name: str) -> None:
        self._admin.delete_topics([name])[name].result()
        assert until(lambda: name not in self._admin.list_topics().topics, _SECONDS)

    def configure(self, name: str, config: Mapping[str, str]) -> None:
        entries = [ConfigEntry(k, v, incremental_operation=AlterConfigOpType.SET) for k, v in config.items()]
        resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=entries)
        self._admin.incremental_alter_configs([resource])[resource].result()
        # The broker that answers learns of a change a moment later.
        assert until(lambda: config.items() <= self._config(name).items(), _SECONDS)

    def _config(self, name: str) -> dict[str, str]:
        resource = ConfigResource(ResourceType.TOPIC, name)
        return {k: e.value for k, e in self._admin.describe_configs([resource])[resource].result().items()}

    def write(self, name: str, records: int = 1) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap_servers})
        for number in range(records):
            producer.produce(name, b"value", b"key-%d" % number)
        assert producer.flush(_SECONDS) == 0

    def purge(self, name: str) -> None:
        """Delete all records."""
        partitions = self._admin.list_topics(name).topics[name].partitions
        ends = [TopicPartition(name, partition, OFFSET_END) for partition in partitions]
        for future in self._admin.delete_records(ends).values():
            future.result()

    def write_ownership(self, change: OwnershipChange) -> None:
        write_ownership(Connection(bootstrap_servers=(self.bootstrap_servers,)), change)

    @contextmanager
    def member(self, group: str, topic: str) -> Iterator[None]:
        consumer = Consumer({"bootstrap.servers": self.bootstrap_servers, "group.id": group})
        try:
            consumer.subscribe([topic])
            assert until(lambda: _is_assigned(consumer), _SECONDS)
            yield
        finally:
            consumer.close()

    def commit(self, group: str, topic: str, texts: Mapping[int, str]) -> None:
        """Commit an offset with each text, of these partitions."""
        consumer = Consumer({"bootstrap.servers": self.bootstrap_servers, "group.id": group})
        offsets = [TopicPartition(topic, at, 0, text) for at, text in texts.items()]
        consumer.commit(offsets=offsets, asynchronous=False)
        consumer.close()

    def reader(self) -> KafkaClusterReader:
        return KafkaClusterReader(Connection(bootstrap_servers=(self.bootstrap_servers,)))
