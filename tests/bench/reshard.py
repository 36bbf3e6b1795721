"""Measure a reshard: `python -m tests.bench.reshard KEYS [BEFORE AFTER [PROCESSES]]`, on its own broker."""

import json
import resource
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import click
from confluent_kafka import Consumer, Producer, TopicPartition

from headwater.kafka import Connection
from headwater.spec import load_text
from headwater.toolchain.broker import Broker
from headwater.toolchain.kafka import ensure_kafka
from headwater_spark.driver.reshard.start import ReshardOptions, reshard_application
from headwater_spark.engine.partitioners.hashing import default_partition
from tests.runtime.spark.kafka_topics import Topics

_TIME = 1_760_000_000_000
_VALUE = b"v" * 100
_ID, _SOURCE, _CHANGELOG = "measured", "orders", "measured-totals-changelog"


def measure(keys: int, before: int = 4, after: int = 6, processes: int | None = None) -> None:
    """Print how long it takes to give a store with `keys` entries of 100 bytes more partitions."""
    document = {
        "application": {"id": _ID},
        "topology": [
            {"stream": {"topic": _SOURCE}},
            {"groupByKey": {}},
            {"count": {"materialized": "totals"}},
        ],
    }
    with TemporaryDirectory() as folder, Broker(ensure_kafka(), Path(folder)) as broker:
        broker.start()
        servers = broker.bootstrap_servers
        topics = Topics(servers)
        topics.create({_SOURCE: before})
        topics.create({_CHANGELOG: before}, {"cleanup.policy": "compact"})
        _write_entries(servers, keys, before)
        consumer = Consumer({"bootstrap.servers": servers, "group.id": _ID})
        consumer.commit(
            offsets=[TopicPartition(_SOURCE, each, 0) for each in range(before)], asynchronous=False
        )
        consumer.close()
        (loaded,) = load_text(json.dumps(document), "measured.yaml").documents
        options = ReshardOptions(partitions={_SOURCE: after}, processes=processes)
        steps: dict[str, float] = {}
        base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

        def report(what: str, _done: int, _total: int) -> None:
            steps.setdefault(what, time.monotonic() - began)

        began, cpu = time.monotonic(), _cpu_seconds()
        result = reshard_application(
            loaded,
            Connection(bootstrap_servers=(servers,)),
            options,
            report,
        )
        seconds, used = time.monotonic() - began, _cpu_seconds() - cpu
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        click.echo(f"{keys:,} keys, {before} to {after} partitions, {result.written:,} records written")
        click.echo(f"{seconds:.1f} s, {keys / seconds:,.0f} keys per second, {used:.1f} s of CPU")
        click.echo(f"peak memory {peak / 1024:.0f} MiB, {(peak - base) / 1024:.0f} MiB more than before")
        click.echo(f"peak memory of one of the other processes {largest / 1024:.0f} MiB")
        for what, at in steps.items():
            click.echo(f"  {at:6.1f} s {what}")


def _cpu_seconds() -> float:
    """Return the CPU time of this process, and of processes that it has started and that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def _write_entries(servers: str, keys: int, partitions: int) -> None:
    producer = Producer(
        {"bootstrap.servers": servers, "linger.ms": 50, "queue.buffering.max.messages": 500_000}
    )
    for number in range(keys):
        key = b"customer %09d" % number
        while True:
            try:
                producer.produce(
                    _CHANGELOG, _VALUE, key, default_partition(key, partitions), timestamp=_TIME + number
                )
                break
            except BufferError:
                producer.poll(0.1)
        if number % 1000 == 0:
            producer.poll(0)
    assert producer.flush(120) == 0


if __name__ == "__main__":
    measure(*map(int, sys.argv[1:]))
