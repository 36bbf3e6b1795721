"""Create, change, write and read the topics of a real broker."""

import os
from collections.abc import Iterable, Mapping
from functools import partial
from threading import Lock
from uuid import uuid4

import attrs
from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # public all the same
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    TopicMetadata,
    UserScramCredentialUpsertion,
)

from headwater.toolchain.broker.readiness import until
from headwater_spark.engine.partitioners.hashing import default_partition
from headwater_spark.engine.records import InputRecord, OutputRecord
from headwater_spark.worker.partition_reader import input_record
from tests.answers import ATTEMPT_SECONDS, answered

_WAIT_SECONDS = 90.0
_PAUSE_SECONDS = 0.01
"""How long a reader waits for more messages: it always waits this long, since there are never enough."""
_COMMIT_SECONDS = 90.0
"""The transaction of a killed client stays open for a minute."""


@attrs.define
class _KeptProducer:
    """The producer that this process keeps for one broker: a new one gets its id after half a second."""

    process: int = 0
    servers: str = ""
    producer: Producer | None = None
    _lock: Lock = attrs.field(factory=Lock)

    def get(self, servers: str, settings: dict[str, str | int | float | bool]) -> Producer:
        """Return the producer for `servers`; its threads do not survive a fork, so children get their own."""
        with self._lock:
            if self.producer is None or (self.process, self.servers) != (os.getpid(), servers):
                self.process, self.servers = os.getpid(), servers
                self.producer = Producer(settings)
            return self.producer

    def forget(self) -> None:
        with self._lock:
            self.producer = None


_KEPT = _KeptProducer()


class Topics:
    """The topics of one broker.

    With `keeps_producer`, records are written by a producer that the tests of a process share until topics
    are deleted or records are refused. Do not use it for a broker that a test stops.
    """

    def __init__(self, bootstrap_servers: str, *, keeps_producer: bool = False) -> None:
        self._servers: dict[str, str | int | float | bool] = {
            "bootstrap.servers": bootstrap_servers,
            "log_level": 0,
        }
        self._admin = AdminClient(self._servers)
        self._keeps_producer = keeps_producer

    def create(self, partitions: Mapping[str, int], config: Mapping[str, str] | None = None) -> None:
        """Create topics with their settings, and as many replicas as the broker has by default.

        Changed settings would be visible later only.
        """
        settings = {"retention.ms": "-1", **(config or {})}  # recorded timestamps are years old
        created = self._admin.create_topics(
            [NewTopic(name, count, config=settings) for name, count in partitions.items()]
        )
        for future in created.values():
            future.result()
        # Requests name the topics: an answer with those of all other tests takes 0.1 s of CPU time.
        assert until(lambda: all(map(self.partitions, partitions)), _WAIT_SECONDS)

    def expand(self, topic: str, partitions: int) -> None:
        self._admin.create_partitions([NewPartitions(topic, partitions)])[topic].result()
        assert until(lambda: self.partitions(topic) == partitions, _WAIT_SECONDS)

    def configure(self, topic: str, config: Mapping[str, str]) -> None:
        entries = [
            ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
            for key, value in config.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        self._admin.incremental_alter_configs([resource])[resource].result()

    def configure_and_wait(self, topic: str, config: Mapping[str, str]) -> None:
        """Configure a topic and wait until the broker reports the settings."""
        self.configure(topic, config)
        assert until(lambda: config.items() <= self.settings(topic).items(), _WAIT_SECONDS)

    def settings(self, topic: str) -> Mapping[str, str | None]:
        resource = ConfigResource(ResourceType.TOPIC, topic)
        found = self._admin.describe_configs([resource])[resource].result()
        return {name: entry.value for name, entry in found.items()}

    def set_password(self, user: str, password: str) -> None:
        """Change the password of a user of SCRAM-SHA-512; connections that are open stay open."""
        credential = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        changed = UserScramCredentialUpsertion(user, credential, password.encode())
        self._admin.alter_user_scram_credentials([changed])[user].result()

    def delete_records(self, topic: str, before: int, partition: int = 0) -> None:
        """Delete the records before an offset, as retention does."""
        request = TopicPartition(topic, partition, before)
        self._admin.delete_records([request])[request].result()

    def delete_group(self, group: str) -> None:
        """Delete the committed offsets of a group without members, as brokers do when they expire."""
        self._admin.delete_consumer_groups([group])[group].result()

    def delete(self, topic: str) -> None:
        self._admin.delete_topics([topic])[topic].result()
        _KEPT.forget()

    def delete_all(self) -> None:
        """Delete all topics but Kafka's internal ones."""
        if names := [name for name in self.names() if not name.startswith("__")]:
            for future in self._admin.delete_topics(names).values():
                future.result()
            assert until(lambda: not self.names() & set(names), _WAIT_SECONDS)
        _KEPT.forget()

    def commit(self, group: str, offsets: Mapping[str, int]) -> None:
        """Commit offsets of the first partitions."""
        consumer = Consumer({**self._servers, "group.id": group})
        try:
            partitions = [TopicPartition(topic, 0, offset) for topic, offset in offsets.items()]
            consumer.commit(offsets=partitions, asynchronous=False)
        finally:
            consumer.close()

    def names(self) -> set[str]:
        return set(self._metadata())

    def partitions(self, topic: str) -> int:
        return len(self._metadata(topic)[topic].partitions)

    def _metadata(self, *topic: str) -> Mapping[str, TopicMetadata]:
        return answered(
            partial(self._admin.list_topics, *topic, timeout=ATTEMPT_SECONDS), _WAIT_SECONDS
        ).topics

    def written(self, topic: str) -> int:
        """Return the number of offsets, transaction markers included; -1 while no broker answers."""
        try:
            return self._written(topic)
        except KafkaException:
            return -1

    def _written(self, topic: str) -> int:
        return sum(self._ends(topic, IsolationLevel.READ_COMMITTED))

    def appended(self, topic: str) -> int:
        """Return the number of offsets, offsets of open transactions included; -1 while no broker answers."""
        try:
            return sum(self._ends(topic, IsolationLevel.READ_UNCOMMITTED))
        except KafkaException:
            return -1

    def is_settled(self, topic: str) -> bool:
        """Return whether all records are committed; partitions learn of a commit a little later.

        False while no broker answers.
        """
        try:
            return self._ends(topic, IsolationLevel.READ_COMMITTED) == self._ends(
                topic, IsolationLevel.READ_UNCOMMITTED
            )
        except KafkaException:
            return False

    def _ends(self, topic: str, isolation: IsolationLevel) -> list[int]:
        partitions = [TopicPartition(topic, each) for each in range(self.partitions(topic))]
        if not partitions:
            return []
        request = {partition: OffsetSpec.latest() for partition in partitions}  # type: ignore[no-untyped-call]
        found = self._admin.list_offsets(request, isolation_level=isolation)
        return [found[partition].result().offset for partition in partitions]

    def put(
        self, topic: str, records: Iterable[tuple[bytes | None, bytes | None, int]], partition: int = 0
    ) -> None:
        """Write (key, value, timestamp) in order."""
        self.send((topic, partition, key, value, timestamp, ()) for key, value, timestamp in records)

    def put_by_key(self, topic: str, records: Iterable[tuple[bytes, bytes, int]]) -> None:
        """Write (key, value, timestamp) in order, to the partitions that Kafka's producers choose."""
        count = self.partitions(topic)
        self.send(
            (topic, default_partition(key, count), key, value, timestamp, ())
            for key, value, timestamp in records
        )

    def send_at_once(self, records: Iterable[OutputRecord]) -> None:
        """Write records that name their partitions in one transaction: a batch reads all of a partition."""
        producer = Producer({**self._servers, "transactional.id": f"tests-{uuid4()}"})
        producer.init_transactions(_WAIT_SECONDS)
        producer.begin_transaction()
        for topic, partition, key, value, timestamp, headers in records:
            assert partition is not None
            producer.produce(topic, value, key, partition, timestamp=timestamp, headers=list(headers))
            producer.poll(0)
        producer.commit_transaction(_WAIT_SECONDS)

    def send(self, records: Iterable[OutputRecord]) -> None:
        """Write records that name their partitions, each once, and in order within its partition.

        A producer that is not idempotent sends later records first, or one twice, if a request is repeated:
        the leader of a new partition, or a busy broker, may refuse or miss one.
        """
        failures: list[str] = []
        known: set[str] = set()

        def note(error: KafkaError | None, message: Message) -> None:
            failures.append(f"{message.topic()}: {error}")

        producer = self._current_producer()
        try:
            for topic, partition, key, value, timestamp, headers in records:
                assert partition is not None
                if topic not in known:
                    producer.list_topics(topic, _WAIT_SECONDS)  # it may have been expanded since
                    known.add(topic)
                producer.produce(
                    topic, value, key, partition, note, timestamp=timestamp, headers=list(headers)
                )
                producer.poll(0)
            assert producer.flush(_WAIT_SECONDS) == 0
            assert not failures
        except BaseException:
            _KEPT.forget()  # it may not be able to write any more
            raise

    def _current_producer(self) -> Producer:
        settings = {
            **self._servers,
            "linger.ms": 5,
            "enable.idempotence": True,
            "delivery.report.only.error": True,
        }
        if not self._keeps_producer:
            return Producer(settings)
        return _KEPT.get(str(self._servers["bootstrap.servers"]), settings)

    def get(self, topic: str) -> list[InputRecord]:
        """Return all committed records that are not deleted, partition by partition.

        Waits until the partitions show what was committed: the brokers answer a commit before.
        """
        until(lambda: self.is_settled(topic), _COMMIT_SECONDS)
        reader = Consumer({
            **self._servers,
            "group.id": "tests",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
            # The broker reports the end of a partition after this time; the default is half a second.
            "fetch.wait.max.ms": 10,
        })  # fmt: skip
        try:
            return [record for each in range(self.partitions(topic)) for record in _read(reader, topic, each)]
        finally:
            reader.close()


def _read(reader: Consumer, topic: str, partition: int) -> list[InputRecord]:
    low, _ = reader.get_watermark_offsets(TopicPartition(topic, partition), _WAIT_SECONDS)
    reader.assign([TopicPartition(topic, partition, low)])
    found: list[InputRecord] = []
    while True:
        for message in reader.consume(10_000, timeout=_PAUSE_SECONDS):
            error = message.error()
            if error is None:
                found.append(input_record(message))
            elif error.code() == KafkaError._PARTITION_EOF:
                return found
            else:
                raise KafkaException(error)
