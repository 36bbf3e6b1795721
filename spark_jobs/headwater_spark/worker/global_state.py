"""Global tables: each process holds all of them and updates them before a batch (`GlobalStreamThread`)."""

import time
from collections.abc import Mapping
from threading import Lock

from headwater_spark.engine.program import SubtopologyProgram
from headwater_spark.engine.records import InputRecord, TopicPartition, Value
from headwater_spark.engine.task import Task
from headwater_spark.worker.local_state import MemoryState
from headwater_spark.worker.messages import BatchRequest
from headwater_spark.worker.restore import OffsetRange, PartitionReader

_PARTITION = 0


class _GlobalTask:
    """One global program over all partitions of its topics."""

    def __init__(self, request: BatchRequest, program: SubtopologyProgram) -> None:
        self._topics = tuple(program.sources)
        self._state = MemoryState()
        self._task = Task(program, _PARTITION, self._state)
        self._reader = PartitionReader(request.connection, request.group)
        self._next_offsets: dict[TopicPartition, int] = {}

    def read_new_records(self, partition_counts: Mapping[str, int]) -> None:
        for topic in self._topics:
            for partition in range(partition_counts.get(topic, 0)):
                range_ = OffsetRange(self._next_offsets.get((topic, partition), 0))
                for chunk in self._reader.read(topic, partition, range_):
                    self._process(chunk.records)
                    self._next_offsets[topic, partition] = chunk.next_offset

    @property
    def stores(self) -> Mapping[str, Value]:
        return self._task.stores

    def _process(self, records: tuple[InputRecord, ...]) -> None:
        if records:
            self._task.process(records, time.time_ns() // 1_000_000)
            self._state.commit(self._state.version)


_TASKS: dict[tuple[str, str], _GlobalTask] = {}
_READING = Lock()


def read_global_stores(request: BatchRequest) -> Mapping[str, Value]:
    """Return store → typed store, after reading the global topics to their ends; raises `KafkaException`."""
    stores: dict[str, Value] = {}
    with _READING:
        for program in request.global_programs:
            name = request.application, program.name
            if name not in _TASKS:
                _TASKS[name] = _GlobalTask(request, program)
            _TASKS[name].read_new_records(request.partition_counts)
            stores |= _TASKS[name].stores
    return stores
