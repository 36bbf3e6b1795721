"""Global tables: each worker process has them all, and reads on before each batch (`GlobalStreamThread`)."""

import time
from collections.abc import Mapping
from threading import Lock

from spark_jobs.runtime.engine.program import SubtopologyProgram
from spark_jobs.runtime.engine.records import InputRecord, Value
from spark_jobs.runtime.engine.task import Task
from spark_jobs.runtime.worker.local_state import MemoryState
from spark_jobs.runtime.worker.messages import WorkOrder
from spark_jobs.runtime.worker.restoring import Span, SpanReader

_PARTITION = 0


class _GlobalTask:
    """One global program over all partitions of its topics."""

    def __init__(self, order: WorkOrder, program: SubtopologyProgram) -> None:
        self._topics = tuple(program.sources)
        self._state = MemoryState()
        self._task = Task(program, _PARTITION, self._state)
        self._reader = SpanReader(order.connection, f"{order.group}-global")
        self._next: dict[tuple[str, int], int] = {}

    def read_on(self, counts: Mapping[str, int]) -> None:
        for topic in self._topics:
            for partition in range(counts.get(topic, 0)):
                place = topic, partition
                for chunk in self._reader.read(topic, partition, Span(self._next.get(place, 0))):
                    self._process(chunk.records)
                    self._next[place] = chunk.next

    @property
    def stores(self) -> Mapping[str, Value]:
        return self._task.stores

    def _process(self, records: tuple[InputRecord, ...]) -> None:
        if records:
            self._task.process(records, time.time_ns() // 1_000_000)
            self._state.commit(self._state.version)


_TASKS: dict[tuple[str, str], _GlobalTask] = {}
_READING = Lock()


def global_stores(order: WorkOrder) -> Mapping[str, Value]:
    """Return store → typed store, as of what the global topics hold now; raises `KafkaException`."""
    stores: dict[str, Value] = {}
    with _READING:
        for program in order.global_programs:
            name = order.application, program.name
            if name not in _TASKS:
                _TASKS[name] = _GlobalTask(order, program)
            _TASKS[name].read_on(order.counts)
            stores |= _TASKS[name].stores
    return stores
