"""Measure a reshard: `python -m tests.bench.reshard KEYS [BEFORE AFTER]`, on a broker of its own."""

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


def measure(keys: int, before: int, after: int) -> None:
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
        options = ReshardOptions(partitions={_SOURCE: after})
        steps: dict[str, float] = {}
        base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

        def report(what: str, _done: int, _total: int) -> None:
            steps.setdefault(what, time.monotonic() - began)

        began, cpu = time.monotonic(), time.process_time()
        result = reshard_application(
            loaded,
            Connection(bootstrap_servers=(servers,)),
            options,
            report,
        )
        seconds, used = time.monotonic() - began, time.process_time() - cpu
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        click.echo(f"{keys:,} keys, {before} to {after} partitions, {result.written:,} records written")
        click.echo(f"{seconds:.1f} s, {keys / seconds:,.0f} keys per second, {used:.1f} s of CPU")
        click.echo(f"peak memory {peak / 1024:.0f} MiB, {(peak - base) / 1024:.0f} MiB more than before")
        for what, at in steps.items():
            click.echo(f"  {at:6.1f} s {what}")


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
    _numbers = [int(each) for each in sys.argv[1:]]
    measure(*_numbers) if len(_numbers) == 3 else measure(_numbers[0], 4, 6)
