"""Entries that several processes move: what they exchange, and that their shares are complete.

The processes are threads here, with a cluster in memory; `test_kafka_streams` starts real ones.
"""

import os
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Lock, Thread
from types import SimpleNamespace

import attrs
import numpy as np
import pytest
from confluent_kafka import KafkaError, KafkaException

from headwater.kafka import Connection as KafkaConnection
from headwater.model.problems import ProblemCode, ProblemsError
from headwater_spark.driver.processor_move.entry_copy import report_no_progress
from headwater_spark.driver.reshard import entry_passes, entry_totals, entry_workers
from headwater_spark.driver.reshard.entry_move import EntryMove
from headwater_spark.driver.reshard.entry_passes import EntryPasses
from headwater_spark.driver.reshard.entry_totals import FoundTotals, Hashes, content_hashes
from headwater_spark.driver.reshard.entry_workers import EntryWorkers, useful_processes
from headwater_spark.driver.reshard.plan import WRITERS, Reshard
from headwater_spark.driver.reshard.problems import kafka_failed
from headwater_spark.driver.reshard.start import ReshardOptions
from headwater_spark.engine.partitioners.hashing import PartitionerError, UserPartitioner, default_partition
from headwater_spark.engine.records import OutputRecord
from headwater_spark.engine.scaling.entry_layouts import LAYOUTS
from headwater_spark.engine.scaling.transfers import Transfer
from tests.runtime.driver.memory_move import MemoryProducer
from tests.runtime.reshard.memory_reshard import OneRound, ReshardMemoryCluster

_TOPIC = "app-totals-changelog"
_TRANSFER = Transfer(_TOPIC, _TOPIC, 3, 5, LAYOUTS["key"].moved_store("totals", _TOPIC))
_CONNECTION = KafkaConnection(bootstrap_servers=("localhost:1",))
_TIME = 1_760_000_000_000


class _Process(Thread):
    """A process of `EntryWorkers` that is a thread, with its own copy of the pipe."""

    def __init__(
        self, target: Callable[..., object], args: tuple[Connection, *tuple[object, ...]], *, daemon: bool
    ) -> None:
        pipe, *others = args
        super().__init__(target=target, args=(Connection(os.dup(pipe.fileno())), *others), daemon=daemon)

    exitcode: int | None = None

    def kill(self) -> None:
        """A thread ends by itself."""

    def close(self) -> None:
        """Nothing has to be released."""


@attrs.define
class _SharedCluster(ReshardMemoryCluster):
    """A cluster that several threads change; `failure` is raised when a producer is opened."""

    failure: Exception | None = None
    _lock: Lock = attrs.field(factory=Lock)

    def write(self, records: Iterable[OutputRecord]) -> None:
        with self._lock:
            super().write(records)

    @contextmanager
    def producer(self, name: str) -> Iterator[MemoryProducer]:
        if self.failure is not None:
            raise self.failure
        with super().producer(name) as producer:
            yield producer


Start = Callable[[_SharedCluster, int], EntryWorkers]


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Start:
    monkeypatch.setattr(entry_workers, "get_context", lambda _: SimpleNamespace(Pipe=Pipe, Process=_Process))
    monkeypatch.setattr(entry_workers, "signal", SimpleNamespace(signal=lambda *_: None, SIGINT=2, SIG_IGN=1))

    def started(cluster: _SharedCluster, number: int) -> EntryWorkers:
        monkeypatch.setattr(entry_workers, "KafkaMoveCluster", lambda *_: cluster)
        return EntryWorkers(_CONNECTION, "app", number, report_no_progress)

    return started


def _cluster() -> _SharedCluster:
    cluster = _SharedCluster({_TOPIC: [[], [], []]})
    OneRound().note(cluster)
    for number in range(300):
        key = b"key %d" % (number % 100)
        value = None if number % 7 == 0 else b"value %d" % number
        cluster.write([(_TOPIC, default_partition(key, 3), key, value, _TIME + number, ())])
    return cluster


def _live(cluster: ReshardMemoryCluster) -> Mapping[bytes | None, tuple[int, bytes]]:
    """Return key → partition and value of the entries; fail if a key is in two partitions."""
    found: dict[bytes | None, tuple[int, bytes]] = {}
    for partition, records in enumerate(cluster.topics[_TOPIC]):
        for key, value in {record[4]: record[5] for record in records}.items():
            if value is not None:
                assert key not in found
                found[key] = partition, value
    return found


def _moved(move: EntryPasses, cluster: _SharedCluster) -> tuple[FoundTotals, FoundTotals]:
    """Execute all passes; return what was found after the copy and after the deletion."""
    with cluster.producer("own") as producer:
        move.delete_leftovers(producer)
        totals = move.copy(producer)
        copied = move.find_totals()
        assert list(copied.partitions) == list(totals)
        move.clear(producer)
        return copied, move.find_totals()


@pytest.mark.parametrize("number", [2, 3, 4])
def test_shares_do_together_what_one_process_does(start: Start, number: int) -> None:
    alone, shared = _cluster(), _cluster()
    ends = {each: end for (_, each), (_, end) in alone.bounds((_TOPIC, each) for each in range(3)).items()}
    alone.expand({_TOPIC: 5})
    shared.expand({_TOPIC: 5})
    one = EntryMove(_TRANSFER, alone, ends, None, report_no_progress)
    with closing(start(shared, number)) as workers:
        assert workers.check_entries(Reshard("app", (_TRANSFER,), (), {})) == []
        workers.open_producers()
        several = workers.move(_TRANSFER, ends, None, OneRound())
        assert _moved(several, shared) == _moved(one, alone)
    assert several.written == one.written > 50
    assert _live(shared) == _live(alone)
    assert {partition for partition, _ in _live(shared).values()} == set(range(5))


def test_a_process_of_an_older_execution_changes_nothing(start: Start) -> None:
    """It is paused before its producer is opened, and continues when another execution has begun."""
    cluster = _cluster()
    with closing(start(cluster, 2)) as workers:
        workers.open_producers()
        cluster.offsets.clear()
        with pytest.raises(KafkaException, match="another client executes it"):
            workers.move(_TRANSFER, {0: 1}, None, OneRound())
    assert len(cluster.topics[_TOPIC]) == 3


def test_a_process_never_adds_partitions(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """The execution that has started it may have ended, and the topic may be a new one."""
    monkeypatch.setattr(entry_passes, "_VISIBLE_SECONDS", 0.0)
    cluster = _cluster()
    with closing(start(cluster, 2)) as workers:
        workers.open_producers()
        with pytest.raises(KafkaException, match="has 3 partitions instead of 5"):
            workers.move(_TRANSFER, {0: 1}, None, OneRound())
    assert len(cluster.topics[_TOPIC]) == 3


def test_a_process_finds_an_entry_in_another_partition(start: Start) -> None:
    cluster = _cluster()
    cluster.write([(_TOPIC, (default_partition(b"key 1", 3) + 1) % 3, b"key 1", b"value", _TIME, ())])
    with closing(start(cluster, 3)) as workers:
        [problem] = workers.check_entries(Reshard("app", (_TRANSFER,), (), {}))
    assert (problem.code, problem.topic) == (ProblemCode.MISPLACED_ENTRIES, _TOPIC)


@pytest.mark.parametrize(
    "failure",
    [
        KafkaException(KafkaError(KafkaError.PRODUCER_FENCED, "fenced")),
        ProblemsError([kafka_failed("app", "no answer")]),
    ],
)
def test_a_failure_of_a_process_is_raised(start: Start, failure: Exception) -> None:
    cluster = _cluster()
    with closing(start(cluster, 2)) as workers:
        cluster.failure = failure
        with pytest.raises(type(failure)) as raised:
            workers.open_producers()
    assert str(raised.value) == str(failure)


def test_few_entries_and_partitioners_of_users_are_moved_by_one_process() -> None:
    reshard = Reshard("app", (_TRANSFER,), (), {})
    user = attrs.evolve(_TRANSFER, partitioner=UserPartitioner("parts:region", default_partition))
    assert useful_processes(reshard, 1000) == 1
    assert useful_processes(Reshard("app", (user,), (), {}), 10**9) == 1
    assert 1 <= useful_processes(reshard, 10**9) <= min(WRITERS, 3)


def test_the_default_is_one_process_unless_four_cores_are_free(monkeypatch: pytest.MonkeyPatch) -> None:
    reshard = Reshard("app", (_TRANSFER,), (), {})
    for cores, load, expected in ((8, 1.0, 3), (8, 4.5, 1), (3, 0.0, 1), (4, 0.0, 3)):
        system = SimpleNamespace(
            sched_getaffinity=lambda _, cores=cores: range(cores),
            getloadavg=lambda load=load: (load, 0.0, 0.0),
        )
        monkeypatch.setattr(entry_workers, "os", system)
        monkeypatch.setattr(entry_workers, "_QUOTA", Path("/absent"))
        assert useful_processes(reshard, 10**9) == expected


@pytest.mark.parametrize("number", [0, -1, WRITERS + 1])
def test_impossible_numbers_of_processes_are_refused(number: int) -> None:
    with pytest.raises(ValueError, match="must be"):
        ReshardOptions(processes=number)
    with pytest.raises(ValueError, match="1 to 4 can move entries"):
        EntryWorkers(_CONNECTION, "app", number, report_no_progress)


@pytest.mark.parametrize(
    ("failure", "raised", "text"),
    [
        (PartitionerError("parts:region", "no region"), PartitionerError, "parts:region: no region"),
        (TypeError("wrong type"), KafkaException, "TypeError: wrong type"),
    ],
)
def test_any_failure_of_a_process_is_passed_on(
    start: Start, failure: Exception, raised: type[Exception], text: str
) -> None:
    cluster = _cluster()
    with closing(start(cluster, 2)) as workers:
        cluster.failure = failure
        with pytest.raises(raised, match=text):
            workers.open_producers()


def test_a_cluster_that_cannot_be_opened_is_reported(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise ValueError("no cluster")

    with closing(start(_cluster(), 2)) as workers:
        monkeypatch.setattr(entry_workers, "KafkaMoveCluster", refuse)
        with pytest.raises(KafkaException, match="ValueError: no cluster"):
            workers.open_producers()


@pytest.mark.parametrize(("code", "text"), [(-9, "by signal SIGKILL"), (3, "with exit code 3")])
def test_the_end_of_a_process_is_named(
    start: Start, monkeypatch: pytest.MonkeyPatch, code: int, text: str
) -> None:
    monkeypatch.setattr(_Process, "exitcode", code)
    monkeypatch.setattr(entry_workers, "_run_worker", lambda pipe, *_: pipe.close())
    monkeypatch.setattr(entry_workers, "signal", signal)
    with closing(start(_cluster(), 1)) as workers:
        monkeypatch.setattr(entry_workers, "signal", signal)
        with pytest.raises(KafkaException, match=text):
            workers.open_producers()


def test_processes_that_cannot_start_close_the_others(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[_Process] = []

    def start_first(process: _Process) -> None:
        if started:
            raise OSError("no memory")
        started.append(process)
        Thread.start(process)

    monkeypatch.setattr(_Process, "start", start_first)
    with pytest.raises(OSError, match="no memory"):
        start(_cluster(), 2)
    assert not started[0].is_alive()


@pytest.mark.parametrize("number", [20_000, pytest.param(200_000, marks=pytest.mark.soak)])
def test_many_keys_with_dates_and_sequences_are_moved_by_one_process(number: int) -> None:
    """`test_structured_keys_have_different_hashes` compares the hashes of more keys."""
    keys = [b"202611%02d%08d" % (1 + at % 28, at // 28) for at in range(number)]
    _move_alone(_cluster_of(keys), len(keys))


@pytest.mark.parametrize("hashes", [1, 3])
def test_keys_with_one_hash_are_moved_by_one_process(monkeypatch: pytest.MonkeyPatch, hashes: int) -> None:
    def collide(contents: Sequence[bytes], *, is_other: bool = False) -> Hashes:
        found = content_hashes(contents, is_other=is_other)
        return found if is_other else found % np.uint64(hashes)

    monkeypatch.setattr(entry_totals, "content_hashes", collide)
    _move_alone(_cluster_of([b"key %d" % at for at in range(300)]), 300)


def _cluster_of(keys: Sequence[bytes]) -> _SharedCluster:
    cluster = _SharedCluster({_TOPIC: [[], [], []]}, chunk_records=5000)
    cluster.write((_TOPIC, default_partition(key, 3), key, b"value", _TIME, ()) for key in keys)
    return cluster


def _move_alone(cluster: _SharedCluster, number: int) -> None:
    """Move all entries, as several executions would: the second one knows nothing of the first one."""
    ends = {each: end for (_, each), (_, end) in cluster.bounds((_TOPIC, each) for each in range(3)).items()}
    cluster.expand({_TOPIC: 5})
    copied, cleared = _moved(EntryMove(_TRANSFER, cluster, ends, None, report_no_progress), cluster)
    again = EntryMove(_TRANSFER, cluster, ends, None, report_no_progress).find_totals()
    assert list(cleared.partitions) == list(again.partitions) == list(copied.partitions)
    assert sum(each.entries for each in again.partitions) == len(_live(cluster)) == number
    assert not any(again.misplaced)
