"""A task's producer, and what is known to be committed while that producer is the latest one.

Whoever opens a session of the same task, here or on another machine, fences this one: its next transaction
fails. So a session never commits on top of offsets that are out of date.
"""

from collections.abc import Mapping
from functools import lru_cache

import attrs
from confluent_kafka import Consumer

from infra.observe import Connection
from spark_jobs.runtime.worker import clients
from spark_jobs.runtime.worker.messages import WorkOrder
from spark_jobs.runtime.worker.offset_metadata import Marker, newest
from spark_jobs.runtime.worker.transaction import Outbox, PlainOutbox, TransactionalOutbox

Place = tuple[str, int]


@attrs.define
class Session:
    """`positions` are the committed offsets of the task's inputs; those never committed are missing."""

    outbox: Outbox
    marker: Marker
    positions: dict[Place, int]

    def commit(self, positions: Mapping[Place, int], times: Mapping[Place, int], marker: Marker) -> None:
        """Commit what was sent with `positions`; `times` is the largest timestamp read of each."""
        self.outbox.commit(
            {place: (offset, marker.encode(times.get(place, -1))) for place, offset in positions.items()}
        )
        self.positions.update(positions)
        self.marker = marker


def open_session(order: WorkOrder, partition: int) -> Session:
    """Raise `KafkaException` when Kafka cannot be reached or refuses."""
    reader = _reader(order.connection, order.group)
    outbox = outbox_of(order, order.task(partition))
    # Asked only now: whoever had the task before cannot commit any more.
    committed = clients.committed(reader, order.inputs(partition))
    marker = newest(found.metadata or "" for found in committed) or Marker()
    positions = {(found.topic, found.partition): found.offset for found in committed if found.offset >= 0}
    return Session(outbox, marker, positions)


def outbox_of(order: WorkOrder, name: str) -> Outbox:
    reader = _reader(order.connection, order.group)
    if order.exactly_once:
        return TransactionalOutbox(order.connection, name, reader)
    return PlainOutbox(order.connection, name, reader)


@lru_cache(maxsize=8)
def _reader(connection: Connection, group: str) -> Consumer:
    return clients.consumer(connection, group)
