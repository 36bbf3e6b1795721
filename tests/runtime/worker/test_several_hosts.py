"""A task whose batches run on several hosts, which share no disk: each record is counted once."""

import multiprocessing
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import attrs
import pytest
from confluent_kafka import KafkaException

from headwater.model.offset_metadata import StateVersion
from headwater.toolchain.broker import local
from headwater_spark.engine.counted_windows import WindowColumnCounter
from headwater_spark.engine.task import Task
from headwater_spark.worker import clients
from headwater_spark.worker.state_proof import PROOF_SECONDS
from headwater_spark.worker.transaction import AtLeastOnceProducer
from tests.runtime.spark.kafka_topics import Topics
from tests.runtime.worker.several_hosts import (
    COUNTED,
    COUNTED_IN_WINDOWS,
    PASSED,
    Clock,
    Hosts,
    task_request,
)

pytestmark = pytest.mark.broker

A, B = 0, 1
_BATCH = 20
_LONG = PROOF_SECONDS + 1


@pytest.fixture(params=[True, False], ids=["exactly once", "at least once"])
def exactly_once(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def topology() -> str:
    return COUNTED


@pytest.fixture
def hosts(
    kafka: local.LocalBroker,
    tmp_path: Path,
    unique: Callable[[str], str],
    topology: str,
    *,
    exactly_once: bool,
) -> Iterator[Hosts]:
    request = task_request(
        kafka.bootstrap_servers, unique("hosts"), tmp_path, topology, exactly_once=exactly_once
    )
    created = Hosts(Topics(kafka.bootstrap_servers), request, tmp_path)
    created.create_topics()
    yield created
    created.close()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    with Clock().used(monkeypatch) as used:
        yield used


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of partitions in each request for committed offsets."""
    found: list[int] = []
    read = clients.read_committed

    def committed(reader: Any, partitions: Any, *seconds: float) -> Any:  # noqa: ANN401 - as in the library
        asked = list(partitions)
        found.append(len(asked))
        return read(reader, asked, *seconds)

    monkeypatch.setattr(clients, "read_committed", committed)
    return found


@pytest.mark.parametrize("is_known", [True, False], ids=["version passed", "version unknown"])
def test_hosts_by_turns_count_each_record_once(hosts: Hosts, *, is_known: bool) -> None:
    for batch in range(6):
        run = hosts.run_batch if is_known else hosts.process
        assert run(batch % 2, batch * _BATCH, (batch + 1) * _BATCH).read == _BATCH
    hosts.check_counts(6 * _BATCH)


def _process_batches(request: Any, first: int, turn: Any, other: Any) -> None:  # noqa: ANN401 - in another process
    hosts = Hosts(Topics(request.connection.bootstrap_servers[0]), request, request.state_folder)
    for batch in range(first, 6, 2):
        assert turn.acquire(timeout=120)
        hosts.process(first, batch * _BATCH, (batch + 1) * _BATCH)
        other.release()


@pytest.mark.parametrize(
    "exactly_once",
    [True, pytest.param(False, marks=pytest.mark.soak)],  # in one process: `test_hosts_by_turns_…`
    indirect=True,
    ids=["exactly once", "at least once"],
)
def test_two_processes_by_turns_count_each_record_once(hosts: Hosts) -> None:
    context = multiprocessing.get_context("spawn")
    turns = [context.Semaphore(1), context.Semaphore(0)]
    processes = [
        context.Process(target=_process_batches, args=(hosts.request, n, turns[n], turns[1 - n]))
        for n in (A, B)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(300)
        assert process.exitcode == 0
    hosts.check_counts(6 * _BATCH)


def test_a_host_that_has_the_last_state_sends_no_request_for_it(hosts: Hosts, requests: list[int]) -> None:
    hosts.run_batch(A, 0, _BATCH)
    requests.clear()
    for batch in range(1, 5):
        hosts.run_batch(A, batch * _BATCH, (batch + 1) * _BATCH)
    assert requests == []
    hosts.check_counts(5 * _BATCH)


def test_an_outdated_host_does_not_process_a_batch_twice(
    hosts: Hosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With exactly once, it once processed the whole batch before its commit was refused."""
    for batch in range(2):
        hosts.run_batch(batch, batch * _BATCH, (batch + 1) * _BATCH)
    processed: list[int] = []
    begin = Task.process

    def count(task: Task, *arguments: Any) -> Any:  # noqa: ANN401 - as in the class
        processed.append(1)
        return begin(task, *arguments)

    monkeypatch.setattr(Task, "process", count)
    result = hosts.process(A, 2 * _BATCH, 3 * _BATCH, version=hosts.version)
    assert (result.read, result.restored, processed) == (_BATCH, _BATCH, [1])


def test_a_batch_whose_result_was_lost_is_skipped_on_another_host(hosts: Hosts) -> None:
    hosts.run_batch(A, 0, _BATCH)
    hosts.run_batch(B, _BATCH, 2 * _BATCH)
    hosts.version = None
    again = hosts.run_batch(A, _BATCH, 3 * _BATCH)
    assert (again.read, again.skipped) == (_BATCH, _BATCH)
    hosts.check_counts(3 * _BATCH)


@pytest.mark.parametrize("is_known", [True, False], ids=["version passed", "version unknown"])
@pytest.mark.parametrize("more", [0, 7], ids=["the same batch", "a longer batch"])
def test_a_host_that_was_frozen_does_not_commit(
    hosts: Hosts, clock: Clock, more: int, *, is_known: bool
) -> None:
    """Meanwhile, Spark has given its task to another host."""
    hosts.run_batch(A, 0, _BATCH)

    def freeze() -> None:
        clock.ahead += _LONG
        hosts.version = None
        hosts.run_batch(B, _BATCH, 2 * _BATCH + more)

    known = hosts.version if is_known else None
    assert hosts.process(A, _BATCH, 2 * _BATCH, freeze, version=known).read == 0
    hosts.run_batch(A, 2 * _BATCH + more, 3 * _BATCH)
    hosts.run_batch(B, 3 * _BATCH, 4 * _BATCH)
    hosts.check_counts(4 * _BATCH)


@pytest.mark.parametrize("exactly_once", [False], indirect=True, ids=["at least once"])
@pytest.mark.parametrize("topology", [COUNTED, PASSED], ids=["counted", "stateless"])
def test_offsets_do_not_go_backwards_after_a_host_was_frozen_while_it_wrote(
    hosts: Hosts, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It wrote its records. With at least once they may count twice on another host, as in Kafka Streams."""
    hosts.run_batch(A, 0, _BATCH)
    deliver, freezes = AtLeastOnceProducer._deliver, [1]

    def deliver_and_freeze(producer: AtLeastOnceProducer) -> None:
        deliver(producer)
        if freezes:
            freezes.clear()
            clock.ahead += _LONG
            hosts.process(B, _BATCH, 2 * _BATCH)
            hosts.process(B, 2 * _BATCH, 3 * _BATCH)

    monkeypatch.setattr(AtLeastOnceProducer, "_deliver", deliver_and_freeze)
    result = hosts.process(A, _BATCH, 2 * _BATCH, version=hosts.version)
    assert (result.read, result.skipped) == (0, _BATCH)
    assert hosts.committed() == 3 * _BATCH
    if hosts.request.program.has_state:
        hosts.process(B, 3 * _BATCH, 4 * _BATCH)
        assert min(max(counts) for counts in hosts.counts(hosts.sink).values()) >= 4 * _BATCH // 5


@pytest.mark.parametrize("is_known", [True, False], ids=["version passed", "version unknown"])
def test_the_owner_on_a_host_processes_no_outdated_batch_of_another_process(
    hosts: Hosts, *, is_known: bool
) -> None:
    hosts.run_batch(A, 0, _BATCH)
    hosts.run_batch(B, _BATCH, 2 * _BATCH)
    hosts.process_number = 1
    result = hosts.process(A, 2 * _BATCH, 3 * _BATCH, version=hosts.version if is_known else None)
    assert (result.read, result.restored) == (_BATCH, _BATCH)
    assert hosts.owners[A, 1]._ownership(hosts.request.task_name(0)).task is None
    hosts.check_counts(3 * _BATCH)


def test_two_hosts_with_the_same_number_of_batches_are_distinguished(hosts: Hosts) -> None:
    """Each of two clients has committed its first batch: the ids of the batches differ."""
    hosts.run_batch(A, 0, _BATCH)
    other = attrs.evolve(hosts.version or StateVersion(), batch_id=1)
    assert hosts.process(A, _BATCH, 2 * _BATCH, version=other).read == _BATCH
    hosts.check_counts(2 * _BATCH)


@attrs.define
class Series:
    """Random batches on random hosts, with failures; each record must be counted once."""

    hosts: Hosts
    clock: Clock
    draw: random.Random
    done: int = 0
    zombies: int = 0

    def step(self) -> None:
        self.hosts.process_number = self.draw.randrange(2)
        host, first = self.draw.randrange(3), max(0, self.done - self.draw.choice([0, 0, 3, 30]))
        end = self.done + self.draw.randint(1, 12)
        match self.draw.randrange(8):
            case 0:  # the worker dies
                self.hosts.restart(host)
            case 1:  # the disk is lost
                self.hosts.restart(host, loses_disk=True)
            case 2:  # the batch fails before it has written anything
                known, self.hosts.version = self.hosts.version, None
                self.hosts.restart(host)  # or the batch would be sent to the other process of the host
                with pytest.raises(ZeroDivisionError):
                    self.hosts.process(host, self.done, end, *[_fail] * 2, version=known)
            case 3:  # the batch is committed, but its result is lost
                self.hosts.run_batch(host, first, end)
                self.hosts.version, self.done = None, end
            case 4:  # the host is frozen, and the batch runs on another one
                self._freeze(host, first, end)
            case _:
                self.hosts.run_batch(host, first, end)
                self.done = end

    def _freeze(self, host: int, first: int, end: int) -> None:
        self.zombies += 1
        other, later = (host + self.draw.randint(1, 2)) % 3, end + self.draw.choice([0, 4])

        def freeze() -> None:
            self.clock.ahead += _LONG
            self.hosts.process(other, first, later)

        known, self.hosts.version = self.hosts.version, None
        self.hosts.restart(host)
        self.hosts.process(host, first, self.done)  # the process that will be frozen opens the task
        with suppress(KafkaException):  # fenced
            self.hosts.process(host, self.done, end, freeze, version=known)
        self.done = later


def _fail() -> None:
    raise ZeroDivisionError


@pytest.mark.parametrize(
    ("seed", "steps"),
    [(1, 24), *(pytest.param(seed, 400, marks=pytest.mark.soak) for seed in range(2, 12))],
)
def test_random_batches_on_random_hosts_count_each_record_once(
    hosts: Hosts, clock: Clock, seed: int, steps: int
) -> None:
    series = Series(hosts, clock, random.Random(seed))  # noqa: S311
    for _ in range(steps):
        series.step()
    assert series.zombies
    hosts.check_counts(series.done)


@pytest.mark.parametrize("topology", [COUNTED_IN_WINDOWS], ids=["windows"])
@pytest.mark.parametrize(
    ("seed", "steps"),
    [(198, 20), *(pytest.param(seed, 400, marks=pytest.mark.soak) for seed in range(13, 16))],
)
def test_random_batches_on_random_hosts_count_each_record_once_in_windows(
    hosts: Hosts, clock: Clock, monkeypatch: pytest.MonkeyPatch, seed: int, steps: int
) -> None:
    """The batches are columns; some are processed as single records, as after a refusal of a broker."""
    draw = random.Random(seed)  # noqa: S311
    counted: list[int] = []
    count = WindowColumnCounter.count

    def note(counter: WindowColumnCounter, columns: Any) -> Any:  # noqa: ANN401 - as in the class
        counted.append(1)
        return count(counter, columns)

    monkeypatch.setattr(WindowColumnCounter, "count", note)
    series = Series(hosts, clock, draw)
    for _ in range(steps):
        hosts.in_columns = draw.random() < 0.7
        series.step()
    assert series.zombies
    assert len(counted) > steps // 3
    hosts.check_windows(series.done)
