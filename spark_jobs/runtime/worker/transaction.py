"""How a batch's records leave: in one transaction with its offsets, or as they come and then the offsets."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Protocol

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from infra.observe import Connection
from spark_jobs.runtime.engine.partitioners.checked import TaskMigrated
from spark_jobs.runtime.engine.records import OutputRecord
from spark_jobs.runtime.worker import clients
from spark_jobs.runtime.worker.giving_up import within

Commits = Mapping[tuple[str, int], tuple[int, str]]
"""(topic, partition) → (next offset to be read, the marker's text)"""

_POLL_EVERY = 10_000
_GRACE_SECONDS = 5.0
_REPORT_SECONDS = 1.0
_SETTINGS: Mapping[str, Any] = {
    "partitioner": "murmur2_random",  # Java's default partitioner
    "linger.ms": 5,
    "retry.backoff.ms": 10,  # a transaction right after another one waits for its marks
    "batch.size": 262_144,
    "message.max.bytes": 1_048_588,  # what brokers take by default; librdkafka's own is a little less
    "queue.buffering.max.messages": 500_000,
    "queue.buffering.max.kbytes": 262_144,
    "delivery.report.only.error": True,
}
_ANY_PARTITION = -1
_EARLIEST_MS = 1
"""As close to 0 as it gets: librdkafka takes that for no time, and writes the present one."""


class Outbox(Protocol):
    def send(self, records: Iterable[OutputRecord]) -> int:
        """Return how many there were.

        Raises `TaskMigrated` for a partition that does not exist, `KafkaException` when Kafka refuses.
        """
        ...

    def commit(self, commits: Commits) -> None:
        """Make everything sent, and the offsets with their markers, hold."""
        ...

    def abort(self) -> None:
        """Take back what was sent, as far as that is possible; never raises."""
        ...


class TransactionalOutbox:
    """Records, offsets and marker hold together or not at all (`exactly_once_v2`).

    Whoever opens one with the same id ends the transaction of an earlier one and fences it.
    """

    def __init__(self, connection: Connection, transactional_id: str, reader: Consumer) -> None:
        self._reader = reader
        self._reports = _Reports()
        self._producer = clients.producer(
            connection,
            {
                **_SETTINGS,
                "transactional.id": transactional_id,
                "client.id": transactional_id,
                "transaction.timeout.ms": 60_000,
                "on_delivery": self._reports.note,
            },
        )
        self._producer.init_transactions(clients.REQUEST_SECONDS)
        self._sender = _Sender(self._producer)
        self._is_open = False

    def send(self, records: Iterable[OutputRecord]) -> int:
        self._begin()
        return self._sender.send(records)

    def commit(self, commits: Commits) -> None:
        self._begin()
        offsets, group = _partitions(commits), self._reader.consumer_group_metadata()
        try:
            self._ask("send offsets", partial(self._producer.send_offsets_to_transaction, offsets, group))
            self._ask("commit", self._producer.commit_transaction)
        except KafkaException:
            # A record that was refused is why the transaction cannot go on; its report may be on its way.
            self._producer.poll(_REPORT_SECONDS)
            self._reports.check()
            raise
        self._is_open = False

    def abort(self) -> None:
        if self._is_open:
            self._is_open = False
            with suppress(KafkaException):  # fenced, or no broker: the next one with this id ends it
                self._ask("abort", self._producer.abort_transaction)

    @staticmethod
    def _ask(what: str, request: Callable[[float], None]) -> None:
        """Make a request that takes a time-out as its last argument, and may not keep to it."""
        within(clients.REQUEST_SECONDS + _GRACE_SECONDS, what, lambda: request(clients.REQUEST_SECONDS))

    def _begin(self) -> None:
        if not self._is_open:
            self._producer.begin_transaction()
            self._is_open = True


class PlainOutbox:
    """Records first, then the offsets (`at_least_once`)."""

    def __init__(self, connection: Connection, client_id: str, reader: Consumer) -> None:
        self._reader = reader
        self._reports = _Reports()
        self._producer = clients.producer(
            connection,
            {
                **_SETTINGS,
                "client.id": client_id,
                "enable.idempotence": True,
                "on_delivery": self._reports.note,
            },
        )
        self._sender = _Sender(self._producer)

    def send(self, records: Iterable[OutputRecord]) -> int:
        return self._sender.send(records)

    def commit(self, commits: Commits) -> None:
        self._producer.flush()
        self._reports.check()
        self._reader.commit(offsets=_partitions(commits), asynchronous=False)

    def abort(self) -> None:
        self._producer.purge()


class _Sender:
    """Hands records to a producer."""

    def __init__(self, producer: Producer) -> None:
        self._producer = producer
        self._counts: dict[str, int] = {}

    def send(self, records: Iterable[OutputRecord]) -> int:
        # By position, as keywords take longer than the rest; `produce_batch` refuses timestamps.
        produce, poll, counts = self._producer.produce, self._producer.poll, self._counts
        number = 0
        for number, (topic, partition, key, value, timestamp, headers) in enumerate(records, 1):
            time = timestamp or _EARLIEST_MS
            if partition is None:
                to = _ANY_PARTITION
            else:
                to = partition
                if partition >= counts.get(topic, 0):
                    self._check_partition(topic, partition)
            while True:
                try:
                    if headers:
                        produce(topic, value, key, to, timestamp=time, headers=list(headers))
                    else:
                        produce(topic, value, key, to, None, None, time)
                    break
                except BufferError:
                    poll(0.05)
            if number % _POLL_EVERY == 0:
                poll(0)
        return number

    def _check_partition(self, topic: str, partition: int) -> None:
        """Raise `TaskMigrated` if the topic, asked anew, has no such partition."""
        found = self._producer.list_topics(topic, clients.REQUEST_SECONDS).topics[topic]
        if found.error is not None:
            raise KafkaException(found.error)
        self._counts[topic] = len(found.partitions)
        if partition >= self._counts[topic]:
            raise TaskMigrated(topic, partition, self._counts[topic])


class _Reports:
    """What a producer tells of deliveries: the first failure is kept.

    It does not know the producer, which knows it: a circle would keep one alive that was let go.
    """

    def __init__(self) -> None:
        self._failure: KafkaException | None = None

    def note(self, error: KafkaError | None, message: Message) -> None:
        if error is not None and self._failure is None:
            self._failure = KafkaException(KafkaError(error.code(), f"{message.topic()}: {error.str()}"))

    def check(self) -> None:
        """Raise `KafkaException` if a record was not delivered."""
        if self._failure is not None:
            raise self._failure


def _partitions(commits: Commits) -> list[TopicPartition]:
    return [TopicPartition(*place, offset, marker) for place, (offset, marker) in commits.items()]
