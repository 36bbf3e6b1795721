"""The batches of a query: when one may begin, and when it is held or stopped.

`BatchSteps` decides what a batch reads, `TaskRunner` runs the tasks.
"""

import threading
import time
from collections.abc import Callable
from types import MappingProxyType

from pyspark.sql import DataFrame

from headwater_spark.driver.offsets import GroupOffsets
from headwater_spark.driver.queries.batch_steps import BatchSteps
from headwater_spark.driver.queries.known_commits import KnownCommits
from headwater_spark.driver.queries.specs import QuerySpec
from headwater_spark.driver.queries.task_runner import BatchStoppedError, TaskRunner
from headwater_spark.engine.records import Commits, Offsets, TopicPartition

_POLL_SECONDS = 0.05
_REPAIR_SECONDS = 5.0
"""How long a repair of commits, or a renewal of offsets, waits for the end of a batch or step."""


class BatchProcessor:
    """Processes the batches of one query; Spark's `foreachBatch` calls it in the query's thread.

    `start` it whenever the query starts. `stop` may be called from any thread. `on_commit` is called in the
    query's thread after each step of a batch that has committed records.
    """

    def __init__(self, spec: QuerySpec, on_commit: Callable[[], None] = lambda: None) -> None:
        self._spec = spec
        self._stopping = threading.Event()
        self._may_begin = threading.Event()
        self._may_begin.set()
        self._running = threading.Lock()
        """Held while a batch is processed."""
        self._processing = threading.Lock()
        """Held while tasks process records: in a batch of several steps, not between them."""
        self._batch = 0
        """The number of the last batch."""
        self._runner = TaskRunner(spec, self._stopping, self._processing)
        self._steps = BatchSteps(spec, self._runner, self._stopping, self._may_begin, on_commit)

    @property
    def thread_names(self) -> tuple[str, ...]:
        """The stream threads of the last tasks: Spark's task i ran on thread i, modulo their number."""
        return self._runner.thread_names

    @property
    def failed_thread(self) -> str:
        """The stream thread of the task whose result is a failure; empty = there is none."""
        return self._runner.failed_thread

    @property
    def known_commits(self) -> KnownCommits:
        """What the tasks have committed since the last start."""
        return self._runner.function.commits

    def start(
        self,
        positions: Offsets,
        committed: Commits = MappingProxyType({}),
        overtaken: Offsets = MappingProxyType({}),
    ) -> None:
        """Begin at offsets of the input partitions.

        `committed` are the commits of the tasks that are compared later (`repair_commits`). `overtaken` are
        the committed offsets before `positions`: the records in between were deleted.
        """
        self._stopping.clear()
        self._runner.forget_threads()
        self._steps.use_new_consumer_group()
        self._begin_at(positions, overtaken)
        self._runner.function.commits.learn(committed)

    def __call__(self, rows: DataFrame, batch: int) -> None:
        """Process and commit a batch.

        Every task processes its part, then the first failure is raised. When the batch is repeated, tasks
        skip the records that they have committed.

        Raises:
            TaskMigrated: A record's partition does not exist yet.
            PoisonRecordError: A record cannot be processed, and the exception handlers fail.
            BatchStoppedError: The query is being stopped.
        """
        self._batch = batch
        is_complete = is_rest = False
        while not is_complete:
            while not self._may_begin.wait(_POLL_SECONDS) and not self._stopping.is_set():
                pass
            with self._running:
                if self._stopping.is_set():
                    raise BatchStoppedError
                is_complete = self._steps.process(rows, batch, is_rest=is_rest)
            is_rest = True

    def stop(self) -> None:
        """End the running batch before its next step; process no other one."""
        self._stopping.set()

    def request_hold(self) -> None:
        """Begin no batch and no step until `cancel_hold` or `release`; one that has begun continues."""
        self._may_begin.clear()

    def cancel_hold(self) -> None:
        self._may_begin.set()

    def hold(self, seconds: float) -> bool:
        """Process nothing until `release`; return False, and hold nothing, if that takes longer.

        A batch or step, and a repair of commits, have to end in `seconds`; without `request_hold`, all steps.
        """
        deadline = time.monotonic() + seconds
        if not self._running.acquire(timeout=seconds):
            return False
        if not self._processing.acquire(timeout=max(0.0, deadline - time.monotonic())):  # a repair
            self._running.release()
            return False
        return True

    def release(self, committed: Commits | None = None) -> None:
        """Process batches again; from what is `committed` now if processors were added.

        Otherwise nothing was committed, and the known commits stay known.
        """
        self._runner.function.versions.forget()
        if committed is not None:
            self._begin_at({partition: offset for partition, (offset, _) in committed.items()})
            if not self._spec.input.services.exactly_once:
                self._runner.function.commits.learn(committed)
        self._processing.release()
        self._running.release()
        self._may_begin.set()

    def forget_commits(self) -> None:
        """Repair no commit until tasks have committed again: a move that failed may have committed."""
        self._runner.function.forget()

    def repair_commits(self, offsets: GroupOffsets) -> tuple[TopicPartition, ...]:
        """Commit again what earlier commits of the tasks have replaced, while no task processes records.

        Return where; nothing happens if a batch or step takes too long. Raises `KafkaException`.
        """
        if not self._processing.acquire(timeout=_REPAIR_SECONDS):
            return ()
        try:
            return self._runner.function.commits.repair(offsets)
        finally:
            self._processing.release()

    def renew_offsets(self) -> bool:
        """Let tasks commit the offsets of partitions that have not advanced since the last call.

        Brokers would forget them (`headwater_spark.driver.queries.offset_renewal`). Any thread may call it.
        Return False if a batch takes too long, or if none may begin.

        Raises:
            Exception: A task, Spark or Kafka failed.
        """
        if not self._running.acquire(timeout=_REPAIR_SECONDS):
            return False
        try:
            has_threads = self._spec.input.services.threads.alive > 0  # to wait for one would prevent a hold
            if self._stopping.is_set() or not self._may_begin.is_set() or not has_threads:
                return False
            idle = self._spec.input.select_renewable(self._runner.uncommitted.take_idle())
            if idle:
                self._runner.renew_offsets(self._batch, idle)
            return True
        finally:
            self._running.release()

    def await_renewal(self) -> None:
        """Wait for the end of a renewal of offsets; after `stop`, its tasks commit nothing later."""
        with self._running:
            pass

    def _begin_at(self, positions: Offsets, overtaken: Offsets = MappingProxyType({})) -> None:
        self._runner.begin_at(positions, overtaken)
        self._steps.begin_at(positions)
