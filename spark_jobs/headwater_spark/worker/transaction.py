"""The producers of tasks: how the records and offsets of a batch are committed, with each guarantee."""

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Protocol

from confluent_kafka import Consumer, KafkaException
from confluent_kafka import TopicPartition as KafkaTopicPartition

from headwater.kafka import Connection
from headwater_spark.engine.records import Commits, OutputRecord
from headwater_spark.worker import clients
from headwater_spark.worker.record_sender import (
    DeliveryReports,
    RecordSender,
    RecordsRefusedError,
    producer_settings,
)

_GRACE_SECONDS = 5.0
_ABORT_SECONDS = 5.0
"""An abort that takes longer is left to the next producer with the transactional id, or to the brokers."""
_CONNECT_SECONDS = 2.0
_REPORT_SECONDS = 1.0
_DELIVERY_SECONDS = 0.1


class TaskProducer(Protocol):
    """The producer of a task: it sends records, and commits them with the input offsets."""

    def send(self, records: Iterable[OutputRecord]) -> int:
        """Send `records`; return their number.

        Raises:
            TaskMigrated: A record's partition does not exist.
            RecordsRefusedError: A record is too large.
            KafkaException: Kafka fails.
        """
        ...

    def commit(self, commits: Commits) -> None:
        """Commit the records sent so far, and the offsets with their metadata.

        Raises:
            RecordsRefusedError: The brokers refuse records for what they contain.
            KafkaException: Kafka fails.
        """
        ...

    def abort(self) -> None:
        """Discard the records sent since the last commit, as far as possible; never raises."""
        ...


class TransactionalProducer:
    """Commits records, offsets and metadata in one transaction (`exactly_once_v2`).

    A new producer with the same id aborts the transaction of an earlier one and fences it. `topic` is one
    that exists: its metadata are read to connect the client. With `is_prepared` it is only connected: it does
    nothing else until `fence` is called. `settings` replace settings of a task's producer.
    """

    def __init__(
        self,
        connection: Connection,
        transactional_id: str,
        reader: Consumer,
        *,
        single: bool = False,
        topic: str | None = None,
        is_prepared: bool = False,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self._reader = reader
        self._reports = DeliveryReports()
        self._producer = clients.create_producer(
            connection,
            {
                **producer_settings(single=single),
                **(settings or {}),
                "transactional.id": transactional_id,
                "client.id": transactional_id,
                "transaction.timeout.ms": 600_000 if single else 60_000,
                "on_delivery": self._reports.record_delivery,
            },
        )
        if topic is not None:
            self._connect(topic)
        self._sender = RecordSender(self._producer, self._reports if single else None)
        self._is_open = False
        if not is_prepared:
            self.fence()

    def fence(self) -> None:
        """Abort the transaction of an earlier producer with the same id, and fence it."""
        self._producer.init_transactions(clients.REQUEST_SECONDS)

    def _connect(self, topic: str) -> None:
        """Wait until the client is connected to a broker.

        If it is not when it requests its producer id, librdkafka (2.16) repeats that after half a second. The
        first answer may come from a bootstrap server, whose connection it closes then.
        """
        with suppress(KafkaException):  # without an answer, the next request has the longer time-out
            for _ in range(2):
                self._producer.list_topics(topic, _CONNECT_SECONDS)

    def send(self, records: Iterable[OutputRecord]) -> int:
        self._begin()
        try:
            return self._sender.send(records)
        except RecordsRefusedError:
            raise
        except KafkaException:
            self._check_reports()
            raise

    def commit(self, commits: Commits) -> None:
        self._begin()
        offsets, group = _kafka_partitions(commits), self._reader.consumer_group_metadata()
        try:
            if offsets:
                self._call(
                    "send offsets", partial(self._producer.send_offsets_to_transaction, offsets, group)
                )
            self._deliver()
            self._call("commit", self._producer.commit_transaction)
        except KafkaException:
            self._check_reports()
            raise
        self._is_open = False

    def _check_reports(self) -> None:
        """Raise the reason for the failure of a transaction, if it is a refused record.

        That makes all later requests fail, and its delivery report may be on the way, behind others.
        """
        deadline = time.monotonic() + _REPORT_SECONDS
        while not self._reports.has_refusal and time.monotonic() < deadline:
            self._producer.poll(_DELIVERY_SECONDS)
        while self._producer.poll(0):
            pass
        self._reports.raise_failure()

    def _deliver(self) -> None:
        """Wait until all records are delivered, or one is not.

        After a refusal, librdkafka (2.16) often does not send the others. The commit would wait for them
        until it times out, and then the transaction could not be aborted.
        """
        deadline = time.monotonic() + clients.REQUEST_SECONDS
        while self._producer.flush(_DELIVERY_SECONDS) and time.monotonic() < deadline:
            self._reports.raise_failure()

    def abort(self) -> None:
        if self._is_open:
            self._is_open = False
            with suppress(KafkaException):  # fenced, or no broker: the next producer with this id aborts it
                self._call("abort", self._abort, min(_ABORT_SECONDS, clients.REQUEST_SECONDS))

    def _abort(self, seconds: float) -> None:
        """Abort the transaction, without waiting for its requests.

        The brokers refuse the requests that follow a refused one. librdkafka (2.16) queues their records
        again; it does not send them any more, but its abort waits for them until it times out. Once they
        are purged, it aborts by a new epoch of the producer: brokers refuse requests that arrive later.
        """
        self._producer.purge()
        self._producer.abort_transaction(seconds)

    @staticmethod
    def _call(what: str, request: Callable[[float], None], seconds: float | None = None) -> None:
        """Call a function that takes its time-out as last argument, and may exceed it."""
        seconds = clients.REQUEST_SECONDS if seconds is None else seconds
        clients.call_with_timeout(seconds + _GRACE_SECONDS, what, lambda: request(seconds))

    def _begin(self) -> None:
        if not self._is_open:
            self._producer.begin_transaction()
            self._is_open = True


class AtLeastOnceProducer:
    """Delivers the records first, then commits the offsets (`at_least_once`)."""

    def __init__(
        self,
        connection: Connection,
        client_id: str,
        reader: Consumer,
        *,
        single: bool = False,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.before_commit: Callable[[], None] = _do_nothing
        """Called when all records are delivered, before offsets are committed."""
        self._reader = reader
        self._reports = DeliveryReports()
        self._producer = clients.create_producer(
            connection,
            {
                **producer_settings(single=single),
                **(settings or {}),
                "client.id": client_id,
                "enable.idempotence": True,
                # Shorter than the time after which another executor gets the task of a silent one (45 s): a
                # worker that was stopped discards its records when it continues. Java: 120 s.
                "message.timeout.ms": 40_000,
                "on_delivery": self._reports.record_delivery,
            },
        )
        self._sender = RecordSender(self._producer, self._reports if single else None)

    def send(self, records: Iterable[OutputRecord]) -> int:
        return self._sender.send(records)

    def commit(self, commits: Commits) -> None:
        self._deliver()
        self._reports.raise_failure()
        self.before_commit()
        # A request that is answered too late has no effect that a later one keeps.
        seconds = clients.REQUEST_SECONDS + _GRACE_SECONDS
        clients.commit_offsets(self._reader, _kafka_partitions(commits), seconds, "commit offsets")

    def _deliver(self) -> None:
        """Wait until all records are delivered; raise `KafkaException` if none is for a request's time."""
        left, silence = len(self._producer), clients.Silence("record was delivered")
        while still_left := self._producer.flush(_DELIVERY_SECONDS):
            silence.check(is_silent=still_left >= left)
            left = still_left

    def abort(self) -> None:
        self._producer.purge()


def _do_nothing() -> None:
    """Do nothing."""


def _kafka_partitions(commits: Commits) -> list[KafkaTopicPartition]:
    return [
        KafkaTopicPartition(*partition, offset, metadata) for partition, (offset, metadata) in commits.items()
    ]
