"""Processes that move the entries of a reshard, a share of the partitions each.

Reading and writing of records needs CPU time, and Python uses one core for each process. Each process writes
with a transactional id of its own. A reshard fences all ids before it writes, and also the ids of processes
that it does not start: another execution may have more. A process whose parent has ended cannot report its
progress any more, and ends; what it has not committed is aborted when its id is fenced.
"""

import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from multiprocessing import get_context
from multiprocessing.connection import Connection as Pipe
from multiprocessing.connection import wait
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
from confluent_kafka import KafkaError, KafkaException

from headwater.kafka import Connection
from headwater.model.problems import Problem, ProblemsError
from headwater_spark.driver.processor_move.entry_copy import MoveProducer, Report
from headwater_spark.driver.processor_move.kafka_cluster import KafkaMoveCluster
from headwater_spark.driver.reshard.entry_checks import check_entries
from headwater_spark.driver.reshard.entry_move import EntryMove, Share
from headwater_spark.driver.reshard.entry_passes import (
    FAILED,
    EntryPasses,
    WritingRound,
    await_partitions,
    check_round,
    one_each,
    run_pass,
    summed_copies,
    summed_found,
)
from headwater_spark.driver.reshard.entry_totals import EntryTotals, FoundTotals
from headwater_spark.driver.reshard.plan import WRITERS, Reshard, worker_names
from headwater_spark.driver.reshard.problems import kafka_failed
from headwater_spark.engine.partitioners.hashing import PartitionerError
from headwater_spark.engine.records import TopicPartition
from headwater_spark.engine.scaling.transfers import Transfer
from headwater_spark.worker.interpreter import cheap_collections

if TYPE_CHECKING:
    from multiprocessing.context import SpawnProcess

_FEW_RECORDS = 1_000_000
"""So many records are moved sooner than processes start."""
_LEAST_CORES = 4
_QUOTA = Path("/sys/fs/cgroup/cpu.max")
_CLOSE_SECONDS = 5.0


def useful_processes(reshard: Reshard, records: int) -> int:
    """Return how many processes move `records` entries: 1 = this one alone.

    Several need more CPU time in all, so they are slower than one unless there are cores that nothing uses.
    """
    partitions = max((each.before for each in reshard.transfers), default=1)
    if records < _FEW_RECORDS or any(each.partitioner is not None for each in reshard.transfers):
        return 1
    return min(WRITERS, partitions) if _free_cores() >= _LEAST_CORES else 1


def _free_cores() -> float:
    """Return how many cores this process may use (affinity, quota of the cgroup), less the load."""
    cores = float(len(os.sched_getaffinity(0)))
    try:
        quota, period = _QUOTA.read_text().split()
        cores = min(cores, int(quota) / int(period))
    except (OSError, ValueError):
        pass  # there is no quota
    return cores - os.getloadavg()[0]


class EntryWorkers:
    """Processes that check and move entries. Raises `OSError` if one cannot be started.

    Methods raise `ProblemsError`, `PartitionerError` and `KafkaException`.

    `open_producers` has to be called before entries are moved.
    """

    def __init__(self, connection: Connection, application: str, number: int, report: Report) -> None:
        self._report = report
        self._names = worker_names(application, number)
        self._pipes: list[Pipe] = []
        self._processes: list[SpawnProcess] = []
        if not 1 <= number <= WRITERS:
            raise ValueError(f"{number} processes: 1 to {WRITERS} can move entries")
        try:
            for index, name in enumerate(self._names):
                self._start(_run_worker, connection, application, name, Share(index, number))
        except BaseException:
            self.close()
            raise

    def _start(self, target: Callable[..., None], *arguments: object) -> None:
        context = get_context("spawn")  # a client of Kafka does not survive a fork
        own, other = context.Pipe()
        self._pipes.append(own)
        with closing(other):
            process = context.Process(target=target, args=(other, *arguments), daemon=True)
            process.start()
        self._processes.append(process)

    @property
    def writers(self) -> int:
        return len(self._names)

    def check_entries(self, reshard: Reshard) -> Sequence[Problem]:
        """Return a problem for each changelog topic with an entry that is not in the partition of its key."""
        needed = attrs.evolve(reshard, inputs=())
        return one_each(self.call("check_entries", needed))

    def open_producers(self) -> Sequence[str]:
        self.call("open_producer")
        return self._names

    def move(
        self, transfer: Transfer, ends: Mapping[int, int], limit: int | None, writing: WritingRound
    ) -> EntryPasses:
        self.call("begin_move", transfer, ends, limit, writing.location, writing.number)
        return _SharedMove(self)

    def call(self, method: str, *arguments: object) -> Sequence[Any]:
        """Call a method in all processes, and return what each returns."""
        for index, pipe in enumerate(self._pipes):
            try:
                pipe.send((method, arguments))
            except OSError as error:
                raise self._ended_error(index) from error
        results: dict[int, Any] = {}
        progress: dict[int, tuple[int, int]] = {}
        while len(results) < len(self._pipes):
            open_ = [each for index, each in enumerate(self._pipes) if index not in results]
            ready = wait(open_)
            for index in [index for index, each in enumerate(self._pipes) if each in ready]:
                try:
                    kind, content = self._pipes[index].recv()
                except (EOFError, OSError) as error:
                    raise self._ended_error(index) from error
                if kind == "progress":
                    what, *progress[index] = content
                    done, total = map(sum, zip(*progress.values(), strict=True))
                    self._report(what, done, total)
                elif kind == "result":
                    results[index] = content
                else:
                    raise _FAILURES[kind](content)
        return [results[index] for index in sorted(results)]

    def _ended_error(self, index: int) -> KafkaException:
        process = self._processes[index]
        process.join(_CLOSE_SECONDS)
        code = process.exitcode
        how = f"with exit code {code}"
        if code is None:
            how = "its communication"
        elif code < 0:
            how = f"by signal {signal.Signals(-code).name}"
        return KafkaException(KafkaError(FAILED, f"a process that moves entries has ended {how}"))

    def close(self) -> None:
        for pipe in self._pipes:
            pipe.close()
        for process in self._processes:
            process.join(_CLOSE_SECONDS)
            if process.is_alive():
                process.kill()
                process.join()
            process.close()


@attrs.define
class _SharedMove:
    """The passes of one transfer, of which each process executes its share."""

    _workers: EntryWorkers
    written: int = 0
    skipped: int = 0

    def delete_leftovers(self, producer: MoveProducer) -> None:
        del producer  # each process has its own
        self._workers.call("run_pass", "delete_leftovers")

    def copy(self, producer: MoveProducer) -> Sequence[EntryTotals]:
        del producer
        totals, self.written, self.skipped = summed_copies(self._workers.call("run_pass", "copy"))
        return totals

    def find_totals(self) -> FoundTotals:
        return summed_found(self._workers.call("find_totals"))

    def clear(self, producer: MoveProducer) -> None:
        del producer
        self._workers.call("run_pass", "clear")


class _Worker:
    """What a process does for its share of the partitions."""

    def __init__(self, cluster: KafkaMoveCluster, name: str, share: Share, report: Report) -> None:
        self._cluster = cluster
        self._name = name
        self._share = share
        self._report = report
        self._opened = cluster.producer(name)
        self._producer: MoveProducer | None = None
        self._move: EntryMove | None = None

    def check_entries(self, reshard: Reshard) -> Sequence[Problem]:
        return check_entries(reshard, self._cluster, self._report, self._share)

    def open_producer(self) -> None:
        self._producer = self._opened.__enter__()

    def begin_move(
        self,
        transfer: Transfer,
        ends: Mapping[int, int],
        limit: int | None,
        location: TopicPartition,
        number: int,
    ) -> None:
        """Begin the passes over a topic, unless another execution has begun (`WritingRound`)."""
        check_round(self._cluster, location, number)
        await_partitions(self._cluster, transfer.target, transfer.after)
        self._move = EntryMove(transfer, self._cluster, ends, limit, self._report, share=self._share)

    def run_pass(self, method: str) -> object:
        move, producer = self._open_move()
        return run_pass(move, method, producer)

    def find_totals(self) -> FoundTotals:
        move, _ = self._open_move()
        return move.find_totals()

    def close(self) -> None:
        if self._producer is not None:
            self._opened.__exit__(None, None, None)

    def _open_move(self) -> tuple[EntryMove, MoveProducer]:
        if self._move is None or self._producer is None:
            raise RuntimeError("no move has begun")
        return self._move, self._producer


def _run_worker(pipe: Pipe, connection: Connection, application: str, name: str, share: Share) -> None:
    """Execute what the parent requests, until it closes the pipe."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends, and with it this process

    def report(what: str, done: int, total: int) -> None:
        pipe.send(("progress", (what, done, total)))

    try:
        with cheap_collections(), ExitStack() as stack:
            worker: _Worker | None = None

            def execute(method: str, arguments: Sequence[object]) -> object:
                nonlocal worker
                if worker is None:
                    cluster = KafkaMoveCluster(connection, application, kafka_failed)
                    stack.enter_context(closing(cluster))
                    worker = stack.enter_context(closing(_Worker(cluster, name, share, report)))
                return getattr(worker, method)(*arguments)

            while True:
                pipe.send(_answer_request(execute, *pipe.recv()))
    except (EOFError, OSError):
        return  # the parent has closed the pipe, or has ended


def _answer_request(execute: Callable[..., object], *arguments: object) -> tuple[str, object]:
    try:
        return "result", execute(*arguments)
    except ProblemsError as error:
        return "problems", tuple(error.problems)
    except PartitionerError as error:
        return "partitioner", (error.name, error.reason)
    except KafkaException as error:
        return "kafka", (error.args[0].code(), error.args[0].str())
    except Exception as error:  # noqa: BLE001 - the parent raises it
        return "kafka", (FAILED, f"a process that moves entries failed: {type(error).__name__}: {error}")


_FAILURES: Mapping[str, Callable[[Any], Exception]] = {
    "problems": ProblemsError,
    "partitioner": lambda content: PartitionerError(*content),
    "kafka": lambda content: KafkaException(KafkaError(*content)),
}
"""Kind of an answer → what the parent raises for its content."""
