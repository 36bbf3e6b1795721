"""Records at a steady rate, and when the results of each key arrive.

Both are in processes of their own: they would take time from the driver of the application, in its process.
"""

import random
import time
from array import array
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from ctypes import Array, c_double
from itertools import count, pairwise
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event

import attrs
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # public, but not exported explicitly

from headwater_spark.engine.partitioners.hashing import default_partition

_TICK_SECONDS = 0.05
_SECONDS = 600.0
_PROCESSES = get_context("spawn")


@attrs.define
class Results:
    """When results arrive, in seconds: for each of `tasks` tasks that their keys have at the end."""

    tasks: int
    arrivals: "tuple[array[float], ...]" = ()
    """Known when they are no longer observed."""
    _latest: "Array[c_double]" = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._latest = _PROCESSES.RawArray(c_double, self.tasks)

    def longest_pause(self, start: float, end: float) -> float:
        """Return the longest time without a result of one of the tasks."""
        return max(
            later - earlier
            for arrivals in self.arrivals
            for earlier, later in pairwise([start, *(at for at in arrivals if start <= at <= end), end])
        )

    def rate(self, start: float, end: float) -> float:
        return sum(start <= at <= end for arrivals in self.arrivals for at in arrivals) / (end - start)

    def have_arrived_since(self, start: float) -> bool:
        """Return whether there is a result of each task."""
        return all(latest > start for latest in self._latest)

    @contextmanager
    def observed(self, servers: str, topic: str) -> Iterator[None]:
        receiver, sender = _PROCESSES.Pipe(duplex=False)
        with receiver, _in_process(_read, servers, topic, self._latest, sender) as stopping:
            sender.close()  # if the process fails, nothing has it open
            yield
            stopping.set()
            self.arrivals = receiver.recv()


def _read(stopping: Event, servers: str, topic: str, latest: "Array[c_double]", observer: Connection) -> None:
    arrivals = tuple(array("d") for _ in latest)
    reader = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": f"{topic}-reader",
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": 5,
        }
    )
    with closing(reader):
        partitions = reader.list_topics(topic, _SECONDS).topics[topic].partitions
        reader.assign([TopicPartition(topic, each) for each in partitions])
        while not stopping.is_set():
            messages = reader.consume(10_000, _TICK_SECONDS)
            now = time.monotonic()
            for message in messages:
                task = default_partition(message.key() or b"", len(arrivals))
                arrivals[task].append(now)
                latest[task] = now
    observer.send(arrivals)


def create(servers: str, id_: str, keys: int, partitions: int) -> AdminClient:
    """Create the topics of an application, with a record of each key."""
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    for topic in (f"in-{id_}", f"out-{id_}"):
        new = NewTopic(topic, num_partitions=partitions, replication_factor=1)
        admin.create_topics([new])[topic].result()
    producer = _producer(servers)
    for each in range(keys):
        producer.produce(f"in-{id_}", b"value", b"key-%d" % each)
        if not each % 1_000:
            producer.poll(0)
    if producer.flush(_SECONDS):
        raise RuntimeError(f"the broker did not accept the records of in-{id_}")
    return admin


@contextmanager
def loaded(servers: str, topic: str, keys: int, load: int) -> Iterator[None]:
    """Write `load` records with random keys per second meanwhile."""
    with _in_process(_write, servers, topic, keys, load):
        yield


def _write(stopping: Event, servers: str, topic: str, keys: int, load: int) -> None:
    producer, chosen, started = _producer(servers), random.Random(0), time.monotonic()  # noqa: S311 - no secret
    for written in count():
        while written >= (time.monotonic() - started) * load:
            if stopping.wait(_TICK_SECONDS):
                producer.flush()
                return
            producer.poll(0)
        producer.produce(topic, b"value", b"key-%d" % chosen.randrange(keys))


@contextmanager
def _in_process(function: Callable[..., None], *args: object) -> Iterator[Event]:
    """Run `function(event, *args)` in a process; its event is set at the end of the block at the latest."""
    stopping = _PROCESSES.Event()
    process = _PROCESSES.Process(target=function, args=(stopping, *args), daemon=True)
    process.start()
    try:
        yield stopping
        stopping.set()
        process.join()
    finally:
        process.kill()
        process.join()


def _producer(servers: str) -> Producer:
    settings = {"partitioner": "murmur2_random", "queue.buffering.max.messages": 1_000_000, "linger.ms": 5}
    return Producer({"bootstrap.servers": servers, **settings})
