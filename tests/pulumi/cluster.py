"""Change and read a cluster as an operator, an application or the agent would."""

from collections.abc import Collection, Mapping, Sequence
from functools import partial

import attrs
from confluent_kafka import Consumer, Producer, TopicCollection, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # public names that the stubs do not export
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    ResourceType,
    TopicMetadata,
)

from headwater.toolchain.broker.readiness import until
from tests.answers import ATTEMPT_SECONDS, answered
from tests.groups import delete_group

_SECONDS = 90


@attrs.frozen
class Cluster:
    bootstrap_servers: str
    _admin: AdminClient = attrs.field(init=False)

    @_admin.default
    def _connect(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})

    def id(self) -> str:
        return str(self._admin.describe_cluster().result().cluster_id)

    def brokers(self) -> frozenset[int]:
        """Return the ids of the brokers that answer."""
        return frozenset(
            answered(partial(self._admin.list_topics, timeout=ATTEMPT_SECONDS), _SECONDS).brokers
        )

    def replicas(self, name: str) -> frozenset[int]:
        """Return the numbers of replicas that partitions of the topic have."""
        partitions = self._topics(name)[name].partitions.values()
        return frozenset(len(partition.replicas) for partition in partitions)

    def create(self, name: str, partitions: int, config: Mapping[str, str] | None = None) -> None:
        new = NewTopic(name, num_partitions=partitions, replication_factor=1, config=dict(config or {}))
        self._admin.create_topics([new])[name].result()
        assert until(lambda: self.partitions(name) == partitions, _SECONDS)

    def expand(self, name: str, partitions: int) -> None:
        self._admin.create_partitions([NewPartitions(name, partitions)])[name].result()
        assert until(lambda: self.partitions(name) == partitions, _SECONDS)

    def delete(self, *names: str) -> None:
        for future in self._admin.delete_topics(list(names)).values():
            future.result()
        assert until(lambda: not self.existing(names), _SECONDS)

    def delete_group(self, id_: str) -> bool:
        """Delete a group; return whether it does not exist afterwards. One with members stays."""
        return delete_group(self._admin, id_)

    def set_config(self, name: str, **config: str) -> None:
        """Set settings, named with underscores instead of dots."""
        settings = {key.replace("_", "."): value for key, value in config.items()}
        entries = [
            ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
            for key, value in settings.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=entries)
        self._admin.incremental_alter_configs([resource])[resource].result()
        assert until(lambda: settings.items() <= self.config(name).items(), _SECONDS)

    def defaults(self, name: str) -> Mapping[str, str]:
        """Return the settings that a topic does not set itself, as the brokers have them."""
        resource = ConfigResource(ResourceType.TOPIC, name)
        entries = self._admin.describe_configs([resource])[resource].result()
        own = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
        return {key: str(entry.value or "") for key, entry in entries.items() if entry.source != own}

    def produce(self, name: str, value: bytes = b"value", key: bytes | None = None) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap_servers})
        producer.produce(name, value, key)
        producer.flush()

    def commit(self, group: str, name: str) -> None:
        """Commit an offset of the first partition, as a client that reads the topic would."""
        settings = {"bootstrap.servers": self.bootstrap_servers, "group.id": group}
        consumer = Consumer({**settings, "enable.auto.commit": False})
        consumer.commit(offsets=[TopicPartition(name, 0, 0)], asynchronous=False)
        consumer.close()

    def partitions(self, name: str) -> int | None:
        """Return the count, None when there is no such topic.

        The request names the topic: an answer with the topics of all other tests takes 0.1 s of CPU time.
        """
        return len(self._topics(name)[name].partitions) or None

    def names(self) -> frozenset[str]:
        return frozenset(self._topics())

    def existing(self, names: Sequence[str]) -> set[str]:
        return {name for name in names if self.partitions(name) is not None}

    def _topics(self, *name: str) -> dict[str, TopicMetadata]:
        return answered(partial(self._admin.list_topics, *name, timeout=ATTEMPT_SECONDS), _SECONDS).topics

    def topic_id(self, name: str) -> str:
        return str(self._admin.describe_topics(TopicCollection([name]))[name].result().topic_id)

    def topic_ids(self, names: Collection[str]) -> dict[str, str]:
        described = self._admin.describe_topics(TopicCollection(sorted(names)))
        return {name: str(future.result().topic_id) for name, future in described.items()}

    def config(self, name: str) -> dict[str, str]:
        """Return what is set on the topic itself."""
        resource = ConfigResource(ResourceType.TOPIC, name)
        entries = self._admin.describe_configs([resource])[resource].result()
        return {
            entry.name: entry.value
            for entry in entries.values()
            if ConfigSource(entry.source) is ConfigSource.DYNAMIC_TOPIC_CONFIG
        }
