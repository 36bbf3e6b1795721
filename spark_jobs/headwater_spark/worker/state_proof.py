"""The proof that the state of an open task is the state after the task's last committed batch.

Spark may run a task on any host, and hosts share no disk: a host that keeps a task open does not notice that
another host has committed since. With `exactly_once_v2` the brokers would refuse its commit, after it has
processed the whole batch. With `at_least_once` they would accept it, and records would be missing in the
state. So the state is proved before each batch, in one of two ways:

- The driver names the version that its last batch committed. It costs no request. The driver names none after
  a failure, and Spark's second attempts do not use it.
- The committed offsets are read again.

A version that the driver names is true when the batch begins. If the batch takes longer than `PROOF_SECONDS`,
Spark may have lost this host meanwhile, and another one may have the task. Then, and if the driver named no
version, a task that is not fenced reads the committed offsets again before it writes and before it commits.

So it is with the client that sent the batch: if it was not proved recently that it is the active one, its
record is read before the task writes and before it commits. With `at_least_once`, brokers accept the commit
of any client, because the group has no members. With `exactly_once_v2` they fence the client that had the
task before, but two clients would fence each other again and again. So one client at a time is active. It
writes a record and renews it; other clients wait as long as it does (`driver.active_client`).
"""

import time
from collections.abc import Callable, Collection
from functools import lru_cache

import attrs
from confluent_kafka import Consumer, KafkaException

from headwater.kafka import Connection
from headwater.model.client_record import ClientRecord, client_group, decode_record
from headwater.model.offset_metadata import OffsetMetadata
from headwater_spark.engine.records import Offsets
from headwater_spark.worker import clients
from headwater_spark.worker.messages import BatchRequest

_READ_SECONDS = 5.0
PROOF_SECONDS = 5.0
"""Spark runs a task on another host when it has not received heartbeats for 45 s (`session.py`), or when the
first executor has ended, which ends its Python workers, too. With shorter times, a proof is valid for half
of them (`BatchRequest.proof_seconds`)."""
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""It also counts the time while the machine is suspended, and all processes of a machine agree on it."""


class ClientReplacedError(Exception):
    """Another client of the application has become active: this one must not write or commit."""

    def __init__(self, application: str, by: str) -> None:
        super().__init__(f"another client of {application} is active: {by}")


def read_records(
    reader: Consumer, topics: Collection[str], seconds: float = _READ_SECONDS
) -> dict[str, ClientRecord]:
    """Return topic → the record of an active client, where there is one; raises `KafkaException`."""
    found = clients.read_committed(reader, [(topic, 0) for topic in topics], seconds)
    records = {each.topic: decode_record(each.metadata or "") for each in found}
    return {topic: record for topic, record in records.items() if record is not None}


def _check_active(request: BatchRequest) -> None:
    """Read whether the client that sent a batch is active.

    Raises:
        ClientReplacedError: It is not.
        KafkaException: The record cannot be read.
    """
    reader = _record_reader(request.connection, client_group(request.application))
    record = read_records(reader, [request.client_topic]).get(request.client_topic)
    if record is None or record.process != request.client:
        raise ClientReplacedError(request.application, "no client" if record is None else record.name)


@lru_cache(maxsize=8)
def _record_reader(connection: Connection, group: str) -> Consumer:
    return clients.create_consumer(connection, group)


class OutdatedStateError(Exception):
    """Another process has committed a batch of the task: open it again, and process the batch there."""

    def __init__(self, task: str) -> None:
        super().__init__(f"another process has committed a batch of task {task}: its state is outdated here")


@attrs.frozen
class CommittedState:
    """What is committed for a task: its latest offset metadata, and the offsets of its input partitions."""

    metadata: OffsetMetadata
    offsets: Offsets


class StateProof:
    """What is known about the state of one open task.

    Args:
        request: The request that opened the task.
        present: Returns what the task has committed or read itself.
        read: Reads what is committed now; raises `KafkaException`.
        at: `boot_seconds()` before the committed offsets were read to open the task.
    """

    def __init__(
        self,
        request: BatchRequest,
        partition: int,
        present: Callable[[], CommittedState],
        read: Callable[[], CommittedState],
        *,
        at: float,
    ) -> None:
        self._request = self._batch = request
        self._partition = partition
        self._present = present
        self._read = read
        self._at = at
        self._is_new = True
        self._is_by_driver = False

    def begin_batch(self, request: BatchRequest) -> None:
        """Prove the state before a batch.

        Raises:
            OutdatedStateError: It is not the state after the last committed batch.
        """
        is_new, self._is_new = self._is_new, False
        self._batch = request
        known = request.versions.get(self._partition)
        if boot_seconds() - request.versions_at > request.proof_seconds:
            known = None
        self._is_by_driver = known == self._present().metadata.state_version
        if self._is_by_driver:
            self._at = request.versions_at
        elif not is_new:
            if known is not None:
                raise self._outdated()
            self._read_again()

    def before_write(self) -> None:
        """Prove the state again before records are written, if the proof is old or was read from Kafka.

        Raises:
            OutdatedStateError: It is not the state after the last committed batch.
            ClientReplacedError: The client that sent the batch is not the active one.
        """
        self._prove_client()
        if not self._request.exactly_once and not (self._is_by_driver and self._is_recent):
            self._read_again()

    def before_commit(self) -> None:
        """Prove the state again before offsets are committed, if the proof is old; raises the same."""
        self._prove_client()
        if not self._request.exactly_once and not self._is_recent:
            self._read_again()

    def _prove_client(self) -> None:
        batch = self._batch
        if batch.client and boot_seconds() - batch.client_at > PROOF_SECONDS:
            _check_active(batch)

    @property
    def _is_recent(self) -> bool:
        return boot_seconds() - self._at <= self._batch.proof_seconds

    def _read_again(self) -> None:
        started = boot_seconds()
        try:
            found = self._read()
        except KafkaException as error:  # the task is opened again, which waits for the brokers
            raise self._outdated() from error
        present = self._present()
        if found.metadata.state_version != present.metadata.state_version or found.offsets != present.offsets:
            raise self._outdated()
        self._at = started

    def _outdated(self) -> OutdatedStateError:
        return OutdatedStateError(self._request.task_name(self._partition))


def boot_seconds() -> float:
    """Return the seconds since this machine was started."""
    return time.clock_gettime(_CLOCK)
