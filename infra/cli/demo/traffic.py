"""What flows through the topics of the demo: payments in, revenue of each category and hour out."""

import json
import struct
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import attrs
from confluent_kafka import Consumer, Producer, TopicPartition

from infra.observe.client_log import client_log

_HOUR_MS = 3_600_000
_POLL_SECONDS = 10.0


@attrs.frozen
class Payment:
    """`at` counts the milliseconds since the story's first hour began."""

    at: int
    category: str
    amount: float


def payments(file: Path) -> Iterator[Payment]:
    """Yield those of a file, a line each: `H:MM CATEGORY AMOUNT`."""
    for line in file.read_text(encoding="utf-8").splitlines():
        clock, category, amount = line.split()
        hours, minutes = map(int, clock.split(":"))
        yield Payment((hours * 60 + minutes) * 60_000, category, float(amount))


def first_hour() -> int:
    """Return when the story's first hour began, in milliseconds; the brokers take nothing from the future."""
    return (time.time_ns() // 1_000_000 // _HOUR_MS - 3) * _HOUR_MS


def pay(servers: str, topic: str, records: Iterable[Payment], start: int) -> None:
    """Write payments in their order, so to one partition; `start` is the story's first hour."""
    producer = Producer({"bootstrap.servers": servers}, logger=client_log())
    for record in records:
        value = json.dumps({"category": record.category, "amount": record.amount})
        producer.produce(topic, value, partition=0, timestamp=start + record.at)
    if producer.flush(_POLL_SECONDS):
        raise RuntimeError(f"{topic}: the broker took no payments")


def revenue(servers: str, topic: str, partitions: int, start: int) -> Mapping[str, float]:
    """Return `CATEGORY, hour N` → revenue, of all that is committed."""
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
