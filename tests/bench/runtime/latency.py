"""The latency of a running application: from writing a record to reading its result."""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from statistics import quantiles

import attrs
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.bench.runtime.programs import Program
from tests.bench.runtime.topics import Topics
from tests.bench.runtime.workloads import Job, Workload

_WARM_UP = 3
_LONGEST_PAUSE_SECONDS = 0.1
"""The maximum of a random pause before each record; without it all would arrive right after a commit."""
_TIMEOUT_SECONDS = 120


@attrs.frozen
class Latency:
    """Percentiles of the latency, in seconds."""

    p50: float
    p99: float

    @classmethod
    def of(cls, taken: Sequence[float]) -> "Latency":
        cuts = quantiles(taken, n=100, method="inclusive")
        return cls(cuts[49], cuts[98])


def measure(
    workload: Workload,
    programs: Sequence[Program],
    topics: Topics,
    records: int,
    report: Callable[[str], None],
) -> dict[str, Latency]:
    """Return name of program → latency over `records` records, or the workload's share, in rounds."""
    taken: dict[str, list[float]] = {program.name: [] for program in programs}
    of_a_round = max(2, int(records * workload.share) // workload.rounds)
    for round_ in range(workload.rounds):
        for program in programs:
            report(f"latency of {workload.name}, round {round_ + 1} of {workload.rounds}: {program.title}")
            job = topics.job(program.name, workload, None)
            with program.running(job, in_bulk=False):
                taken[program.name] += _one_by_one(topics.servers, job, of_a_round)
    return {name: Latency.of(seconds) for name, seconds in taken.items()}


def _one_by_one(servers: str, job: Job, records: int) -> list[float]:
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 0})
    pauses = random.Random(0)  # noqa: S311 - no secret
    taken = []
    with _reader(servers, job) as reader:
        for number in range(_WARM_UP + records):
            time.sleep(pauses.uniform(0, _LONGEST_PAUSE_SECONDS))
            key = b"key-%d" % number
            started = time.perf_counter()
            producer.produce(job.chains[0].source, b"value", key)
            producer.flush()
            _await(reader, key)
            taken.append(time.perf_counter() - started)
    return taken[_WARM_UP:]


def _await(reader: Consumer, key: bytes) -> None:
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    while time.monotonic() < deadline:
        message = reader.poll(1)
        if message is not None and message.error() is None and message.key() == key:
            return
    raise RuntimeError(f"no result of {key!r}")


@contextmanager
def _reader(servers: str, job: Job) -> Iterator[Consumer]:
    reader = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": f"{job.id}-reader",
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": 5,
        }
    )
    reader.assign([TopicPartition(job.chains[0].sink, each, 0) for each in range(job.partitions)])
    try:
        yield reader
    finally:
        reader.close()
