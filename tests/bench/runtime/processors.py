"""Add processors to an application under steady load: the longest pause of its results, and its throughput.

`HEADWATER_BENCH_KEYS` are the numbers of keys in its state, separated by commas; `HEADWATER_BENCH_LOAD` is
the number of records per second.
"""

import os
import random
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import count, pairwise
from pathlib import Path
from threading import Event, Thread

import attrs
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic  # type: ignore[attr-defined]  # public, but not exported explicitly
from pyspark.sql import SparkSession

from infra.observe import Connection
from infra.spec import load_text
from spark_jobs.control.logs import configure_log
from spark_jobs.runtime.driver.application import StreamsApplication
from spark_jobs.runtime.driver.preflight import check_runnable
from spark_jobs.runtime.driver.run_settings import RunSettings
from spark_jobs.runtime.engine.partitioners.murmur2 import default_partition
from tests.bench.figures import Figure
from tests.bench.runtime.comparison import session
from toolchain import PulumiToolchain
from toolchain.broker import Broker
from toolchain.broker.readiness import until

_KEYS = "100000,1000000"
_LOAD = 10_000
"""Records per second, about half of what two processors can do on two cores with little state."""
_WINDOW_SECONDS = 20.0
_SECONDS = 600.0
_TICK_SECONDS = 0.05
_PROCESSORS, _MORE = 2, 4
_DOCUMENT = """
application:
  id: APP
  processors: PROCESSORS
  config: {processing.guarantee: exactly_once_v2, statestore.cache.max.bytes: 0}
topology:
- stream: {topic: in-APP, serdes: {key: string, value: string}}
- groupByKey:
- count: {materialized: counts}
- toStream:
- to: {topic: out-APP, serdes: {key: string, value: long}}
"""


@attrs.define
class _Results:
    """When results arrive, in seconds: for each processor that their keys have at the end."""

    arrivals: tuple[list[float], ...] = attrs.field(factory=lambda: tuple([] for _ in range(_MORE)))

    def longest_pause(self, start: float, end: float) -> float:
        """Return the longest time without a result of one of the processors."""
        return max(
            later - earlier
            for arrivals in self.arrivals
            for earlier, later in pairwise([start, *(at for at in arrivals if start <= at <= end), end])
        )

    def rate(self, start: float, end: float) -> float:
        return sum(start <= at <= end for arrivals in self.arrivals for at in arrivals) / (end - start)

    @contextmanager
    def observed(self, servers: str, topic: str) -> Iterator[None]:
        stopping = Event()
        reader = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": f"{topic}-reader",
                "isolation.level": "read_committed",
                "fetch.wait.max.ms": 5,
            }
        )
        reader.assign([TopicPartition(topic, each) for each in range(_PROCESSORS)])

        def read() -> None:
            while not stopping.is_set():
                messages = reader.consume(10_000, _TICK_SECONDS)
                now = time.monotonic()
                for message in messages:
                    self.arrivals[default_partition(message.key() or b"", _MORE)].append(now)

        thread = Thread(target=read)
        thread.start()
        try:
            yield
        finally:
            stopping.set()
            thread.join()
            reader.close()


def run(folder: Path, _: PulumiToolchain, broker: Broker) -> Iterator[Figure]:
    """Yield the figures for each number of keys."""
    configure_log(level="error")
    load = int(os.environ.get("HEADWATER_BENCH_LOAD", _LOAD))
    with session() as spark:
        for keys in map(int, os.environ.get("HEADWATER_BENCH_KEYS", _KEYS).split(",")):
            yield from _figures(spark, broker.bootstrap_servers, folder, keys, load)


def _figures(spark: SparkSession, servers: str, folder: Path, keys: int, load: int) -> Iterator[Figure]:
    id_ = f"expanded-{keys}"
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    for topic in (f"in-{id_}", f"out-{id_}"):
        new = NewTopic(topic, num_partitions=_PROCESSORS, replication_factor=1)
        admin.create_topics([new])[topic].result()
    _fill(servers, f"in-{id_}", keys)
    results = _Results()
    with _application(spark, servers, folder, id_) as application:
        application.wait_until_idle()
        partitions = NewPartitions(f"in-{id_}", _MORE)
        admin.create_partitions([partitions])[f"in-{id_}"].result()
        with results.observed(servers, f"out-{id_}"), _loaded(servers, f"in-{id_}", keys, load):
            time.sleep(2 * _WINDOW_SECONDS)  # it finds the added partitions
            requested = time.monotonic()
            application.expand_processors(_MORE)
            is_done = until(lambda: application.processors().processors == _MORE, _SECONDS)
            if not is_done:
                raise RuntimeError(f"no processors were added: {application.processors()}")
            done = time.monotonic()
            time.sleep(_WINDOW_SECONDS)
    before, after = requested - _WINDOW_SECONDS, done + _WINDOW_SECONDS
    yield Figure(
        what=f"{keys:,} keys: longest pause of results while processors are added",
        unit="s",
        ours=results.longest_pause(requested, after),
        peer="the longest pause before",
        theirs=results.longest_pause(before, requested),
        goal=2,
    )
    yield Figure(
        what=f"{keys:,} keys: results until the new processors have taken over",
        unit="records/s",
        ours=results.rate(requested, done),
        peer="before",
        theirs=results.rate(before, requested),
        goal=0.7,
        is_rate=True,
    )
    yield Figure(
        what=f"{keys:,} keys: from the request to the new processors", unit="s", ours=done - requested
    )


@contextmanager
def _application(spark: SparkSession, servers: str, folder: Path, id_: str) -> Iterator[StreamsApplication]:
    text = _DOCUMENT.replace("APP", id_).replace("PROCESSORS", str(_PROCESSORS))
    document = load_text(text, id_).documents[0]
    settings = RunSettings(
        connection=Connection(bootstrap_servers=(servers,)),
        checkpoint=str(folder / "checkpoint"),
        state_folder=folder / "state",
    )
    application = StreamsApplication(spark, document, check_runnable(document).programs, settings)
    with closing(application):
        application.start()
        yield application


def _fill(servers: str, topic: str, keys: int) -> None:
    producer = _producer(servers)
    for each in range(keys):
        producer.produce(topic, b"value", b"key-%d" % each)
        if not each % 1_000:
            producer.poll(0)
    if producer.flush(_SECONDS):
        raise RuntimeError(f"the broker did not accept the records of {topic}")


@contextmanager
def _loaded(servers: str, topic: str, keys: int, load: int) -> Iterator[None]:
    """Write `load` records with random keys per second meanwhile."""
    stopping = Event()

    def write() -> None:
        producer, chosen, started = _producer(servers), random.Random(0), time.monotonic()  # noqa: S311 - no secret
        for written in count():
            while written >= (time.monotonic() - started) * load:
                if stopping.wait(_TICK_SECONDS):
                    producer.flush()
                    return
                producer.poll(0)
            producer.produce(topic, b"value", b"key-%d" % chosen.randrange(keys))

    thread = Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()


def _producer(servers: str) -> Producer:
    settings = {"partitioner": "murmur2_random", "queue.buffering.max.messages": 1_000_000, "linger.ms": 5}
    return Producer({"bootstrap.servers": servers, **settings})
