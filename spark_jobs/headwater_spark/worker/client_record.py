"""Read which client of an application with `at_least_once` is active.

With `exactly_once_v2`, brokers refuse the commits of a client whose tasks another one has. With
`at_least_once`, they accept the commit of any client, because the group has no members. So one client at a
time is active. It writes a record and renews it; other clients wait as long as it does
(`driver.active_client`).

A worker processes a batch for the client that sent it. If that client has not proved for `PROOF_SECONDS` that
it is active, the worker reads the record before it writes and before it commits (`state_proof`).
"""

from collections.abc import Collection
from functools import lru_cache

from confluent_kafka import Consumer

from headwater.kafka import Connection
from headwater.model.offset_metadata import ClientRecord, client_group, decode_record
from headwater_spark.worker import clients
from headwater_spark.worker.messages import BatchRequest

_READ_SECONDS = 5.0


class ClientReplacedError(Exception):
    """Another client of the application has become active: this one must not write or commit."""

    def __init__(self, application: str, by: str) -> None:
        super().__init__(f"another client of {application} is active: {by}")


def read_records(
    reader: Consumer, topics: Collection[str], seconds: float = _READ_SECONDS
) -> dict[str, ClientRecord]:
    """Return topic → the record of an active client, where there is one; raises `KafkaException`."""
    found = clients.committed(reader, [(topic, 0) for topic in topics], seconds)
    records = {each.topic: decode_record(each.metadata or "") for each in found}
    return {topic: record for topic, record in records.items() if record is not None}


def check_active(request: BatchRequest) -> None:
    """Read whether the client that sent a batch is active.

    Raises:
        ClientReplacedError: It is not.
        KafkaException: The record cannot be read.
    """
    reader = _reader(request.connection, client_group(request.application))
    record = read_records(reader, [request.client_topic]).get(request.client_topic)
    if record is None or record.process != request.client:
        raise ClientReplacedError(request.application, "no client" if record is None else record.name)


@lru_cache(maxsize=8)
def _reader(connection: Connection, group: str) -> Consumer:
    return clients.consumer(connection, group)
