"""The records of the demo: payments are its input, the revenue of each category and hour its output."""

import json
import struct
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import attrs
from confluent_kafka import Consumer, Producer, TopicPartition

from headwater.kafka.client_log import client_log

_HOUR_MS = 3_600_000
_POLL_SECONDS = 10.0


@attrs.frozen
class Payment:
    """A payment; `at` is in milliseconds since the start of the first hour."""

    at: int
    category: str
    amount: float


def read_payments(file: Path) -> Iterator[Payment]:
    """Yield the payments of a file, one in each line: `H:MM CATEGORY AMOUNT`."""
    for line in file.read_text(encoding="utf-8").splitlines():
        clock, category, amount = line.split()
        hours, minutes = map(int, clock.split(":"))
        yield Payment((hours * 60 + minutes) * 60_000, category, float(amount))


def first_hour() -> int:
    """Return the start of the first hour, in ms since the epoch; brokers refuse records from the future."""
    return (time.time_ns() // 1_000_000 // _HOUR_MS - 3) * _HOUR_MS


def produce_payments(servers: str, topic: str, records: Iterable[Payment], start: int) -> None:
    """Produce payments to partition 0, to keep their order; `start` is the start of the first hour.

    Raises:
        RuntimeError: The broker did not accept all of them in time.
    """
    producer = Producer({"bootstrap.servers": servers}, logger=client_log())
    for record in records:
        value = json.dumps({"category": record.category, "amount": record.amount})
        producer.produce(topic, value, partition=0, timestamp=start + record.at)
    if producer.flush(_POLL_SECONDS):
        raise RuntimeError(f"{topic}: the broker did not accept the payments")


def read_revenue(servers: str, topic: str, partitions: int, start: int) -> Mapping[str, float]:
    """Return `CATEGORY, hour N` → revenue, from all committed records.

    Raises:
        RuntimeError: The broker does not answer.
    """
    settings = {"bootstrap.servers": servers, "group.id": "demo", "isolation.level": "read_committed"}
    consumer = Consumer({**settings, "enable.partition.eof": True}, logger=client_log())
    found = {}
    try:
        consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
        unread = partitions
        while unread:
            message = consumer.poll(_POLL_SECONDS)
            if message is None:
                raise RuntimeError(f"{topic}: the broker does not answer")
            if message.error():
                unread -= 1
                continue
            key, value = message.key() or b"", message.value() or b""
            (window,), (amount,) = struct.unpack(">q", key[-8:]), struct.unpack(">d", value)
            found[f"{key[:-8].decode()}, hour {(window - start) // _HOUR_MS}"] = amount
    finally:
        consumer.close()
    return found
