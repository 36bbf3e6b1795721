"""A task that this process has: its session, its local state, its operators, from batch to batch.

The order of steps is what makes a crash harmless:

    1. the session: nobody else can commit for this task from now on; what is committed is known
    2. the local state is brought to the committed version (prepared batch, else changelogs)
    3. records below the committed offsets are left out, the others processed
    4. the state's changes are prepared on disk
    5. one transaction: records of sinks and changelogs, input offsets with the marker
    6. the prepared changes are applied

Killed before 5 nothing has happened; killed after it, 2 of the next owner applies what was prepared.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from operator import itemgetter

import structlog

from spark_jobs.runtime.engine.records import OutputRecord
from spark_jobs.runtime.engine.task import Task
from spark_jobs.runtime.worker.global_state import global_stores
from spark_jobs.runtime.worker.interleaving import interleaved, marked
from spark_jobs.runtime.worker.key_counts import count_keys
from spark_jobs.runtime.worker.local_state import LocalState, MemoryState
from spark_jobs.runtime.worker.messages import Outcome, WorkOrder
from spark_jobs.runtime.worker.native_task import NativeTask
from spark_jobs.runtime.worker.offset_metadata import Marker
from spark_jobs.runtime.worker.restore import catch_up
from spark_jobs.runtime.worker.session import open_session
from spark_jobs.runtime.worker.task_input import Columns, Place, TaskInput

_BLOCK_BYTES = 512
"""The unit of `st_blocks`, whatever the file system's own is."""


def _logger(node: str) -> Callable[..., None]:
    log: Callable[..., None] = structlog.get_logger(node).info
    return log


class OwnedTask:
    """Steps 1 and 2 on construction, 3 to 6 in `work`; after an exception it is of no use but to `close`."""

    def __init__(self, order: WorkOrder, partition: int) -> None:
        self.edition = order.edition
        self._partition = partition
        self._session = open_session(order, partition)
        is_stateful = any(not store.is_global for store in order.program.stores)
        self._folder = order.state_folder / f"{order.query}_{partition}"
        self._state = LocalState(self._folder) if is_stateful else MemoryState()
        self._restored = catch_up(order, partition, self._state, self._session)
        self._task: Task | NativeTask = (
            NativeTask(order.program)
            if order.is_native
            else Task(order.program, partition, self._state, global_stores(order), _logger)
        )

    def work(self, order: WorkOrder, input_: TaskInput, *, tick: bool) -> Outcome:
        """Do the task's part of a batch; `tick` = also without records, for punctuations by the wall clock.

        Raises `TaskMigrated`, `PoisonRecordError`, `KafkaException`.
        """
        fresh = input_.after(self._session.positions)
        if not fresh and not tick:
            return Outcome(partition=self._partition, skipped=len(input_))
        positions, times = fresh.reached()
        global_stores(order)
        outputs = self._outputs(fresh, order.shared)
        written = self._settle(order, positions, times, marked(outputs, order.shared, self._partition))
        restored, self._restored = self._restored, 0
        dropped, passed_over = self._task.take_dropped()
        return Outcome(
            partition=self._partition,
            read=len(fresh),
            skipped=len(input_) - len(fresh),
            written=written,
            dropped=dropped,
            passed_over=passed_over,
            stream_time=max(times.values(), default=-1),
            restored=restored,
            state_bytes=self._state_bytes(),
        )

    def _outputs(self, fresh: TaskInput, shared: frozenset[str]) -> Iterable[OutputRecord]:
        task = self._task
        if isinstance(task, NativeTask):
            return task.process(fresh, shared)
        now = time.time_ns() // 1_000_000
        if task.key_counter is not None and isinstance(fresh, Columns) and fresh.are_there:
            counts = count_keys(fresh, shared)
            if counts is not None:
                return task.process_key_counts(counts, now)
        return task.process(interleaved(fresh.records(), shared), now)

    def close(self) -> None:
        """Let go: what was not committed never happened."""
        self._session.outbox.abort()
        self._task.close()
        if isinstance(self._state, LocalState):
            self._state.release()

    def _state_bytes(self) -> int:
        if not isinstance(self._state, LocalState):
            return 0
        return sum(file.stat().st_blocks for file in self._folder.iterdir()) * _BLOCK_BYTES

    def _settle(
        self,
        order: WorkOrder,
        positions: Mapping[Place, int],
        times: Mapping[Place, int],
        outputs: Iterable[OutputRecord],
    ) -> int:
        """Make the batch hold, outside in Kafka and here on disk; return how many records were written."""
        version = self._session.marker.version
        sent = self._session.outbox.send(outputs)
        self._state.prepare(version)
        if not positions:  # a tick: the marker needs a place to stand
            place = order.inputs(self._partition)[0]
            positions = {place: self._session.positions.get(place, 0)}
        positions = {place: max(offset, order.ends.get(place, 0)) for place, offset in positions.items()}
        self._session.commit(positions, times, Marker(version + 1, dict(self._state.metadata)))
        self._state.commit(version, self._changelog_offsets(order, outputs, positions))
        return sent

    def _changelog_offsets(
        self, order: WorkOrder, written: Iterable[OutputRecord], positions: Mapping[Place, int]
    ) -> Mapping[str, int]:
        """Return where to go on restoring from: never after the true ends; before them lie only markers."""
        known = self._state.offsets()
        counts = Counter(map(itemgetter(0), written)) if known else {}
        after = {topic: offset + counts[topic] for topic, offset in known.items() if topic in counts}
        sources = set(order.program.source_changelogs.values())
        return after | {topic: next_ for (topic, _), next_ in positions.items() if topic in sources}
