"""Growth with the number of keys of a count: an update, the state on disk, and its restore.

A task without Spark counts in batches, with an update and a changelog record per input record. The changelog
records are written to a topic, from which a second state is restored, as a task does after a restart without
its local state. CPU times are those of this process, without the broker.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from shutil import rmtree

from confluent_kafka import Producer

from headwater.kafka import Connection
from headwater.toolchain.broker import Broker
from headwater_spark.engine.records import OutputRecord
from headwater_spark.engine.task import Task
from headwater_spark.worker.local_state import LocalState
from headwater_spark.worker.partition_reader import OffsetRange, PartitionReader
from headwater_spark.worker.restore import restore_topic
from tests.bench.figures import Figure
from tests.bench.growth.series import sizes
from tests.bench.memory import COUNT, bytes_on_disk, process, records
from tests.pulumi.cluster import Cluster
from tests.runtime.topology_runner import APPLICATION, NO_CACHE, programs

_KEYS = (10_000, 100_000, 1_000_000, 10_000_000)
_BATCH = 100_000
_UPDATES_OF_A_BATCH, _UPDATE_BATCHES = 10_000, 20
"""No more updates in a batch than the least number of keys: each key is updated at most once in a batch."""
_CHANGELOG = f"{APPLICATION}-counts-changelog"
_FLUSH_SECONDS = 60


def run(folder: Path, broker: Broker) -> Iterator[Figure]:
    for keys in sizes("KEYS", _KEYS):
        states = folder / f"keys-{keys}"
        changelog = f"growth-{keys}-changelog"
        Cluster(broker.bootstrap_servers).create(changelog, 1)
        with closing(LocalState(states / "counted")) as state:
            task = _task(state)
            yield _figure("count new keys: CPU time", _insert(task, state, keys, broker, changelog), keys)
            yield _figure("update a counted key: CPU time", _update(task, state, keys), keys, per_unit=True)
        yield _figure("state on disk", bytes_on_disk(states), keys, unit="B")
        rmtree(states)
        for what, seconds in zip(("CPU time", "duration"), _restore(states, broker, changelog), strict=True):
            yield _figure(f"restore: {what}", seconds, keys)
        rmtree(states)


def _figure(what: str, ours: float, keys: int, unit: str = "s", *, per_unit: bool = False) -> Figure:
    return Figure(what=what, unit=unit, ours=ours, size=keys, units="keys", is_per_unit=per_unit)


def _task(state: LocalState) -> Task:
    return Task(programs(COUNT, NO_CACHE, {})[0], 0, state)


def _insert(task: Task, state: LocalState, keys: int, broker: Broker, changelog: str) -> float:
    """Count each key once, and write the changelog; return the CPU time without that of the clients."""
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap_servers, "queue.buffering.max.messages": 2 * _BATCH}
    )
    spent = 0.0
    for number, first in enumerate(range(0, keys, _BATCH)):
        batch = records(first, min(first + _BATCH, keys), keys)
        started = time.process_time()
        output = process(task, state, batch, number)
        spent += time.process_time() - started
        _write(producer, changelog, [each for each in output if each[0] == _CHANGELOG])
    return spent


def _write(producer: Producer, topic: str, output: Sequence[OutputRecord]) -> None:
    messages = [{"key": key, "value": value} for _, _, key, value, _, _ in output]
    if producer.produce_batch(topic, messages, partition=0) != len(messages) or producer.flush(
        _FLUSH_SECONDS
    ):
        raise RuntimeError(f"the broker did not accept the records of {topic}")


def _update(task: Task, state: LocalState, keys: int) -> float:
    """Update keys in random order; return the CPU time of an update."""
    spent = 0.0
    for number in range(_UPDATE_BATCHES):
        first = number * _UPDATES_OF_A_BATCH
        batch = records(first, first + _UPDATES_OF_A_BATCH, keys)
        started = time.process_time()
        process(task, state, batch, state.version)
        spent += time.process_time() - started
    return spent / (_UPDATE_BATCHES * _UPDATES_OF_A_BATCH)


def _restore(folder: Path, broker: Broker, changelog: str) -> tuple[float, float]:
    """Restore a state from the changelog topic; return the CPU time and the seconds it took."""
    connection = Connection(bootstrap_servers=(broker.bootstrap_servers,))
    begin, started = time.process_time(), time.monotonic()
    with (
        closing(LocalState(folder / "restored")) as state,
        closing(PartitionReader(connection, changelog)) as reader,
    ):
        chunks = reader.read(changelog, 0, OffsetRange())
        restored = sum(restore_topic(_task(state), state, chunks, _CHANGELOG, None))
        spent, seconds = time.process_time() - begin, time.monotonic() - started
    if not restored:
        raise RuntimeError(f"{changelog} is empty")
    return spent, seconds
