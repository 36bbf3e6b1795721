"""Batches in rounds: each sub-topology processes all records that wait for it, and commits.

`KafkaStreams.run_rounds` does the same with the real Kafka Streams: its test driver has one task for all
sub-topologies, so they take turns. Offsets have gaps. Its caches are empty when a batch begins, and it
commits when a batch ends, as the runtime does.
"""

import base64
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from headwater.compiler.java.collections import JavaQueue
from headwater_spark.engine.program import SubtopologyProgram
from headwater_spark.engine.records import InputRecord, OutputRecord, TopicPartition
from headwater_spark.engine.task import Task
from headwater_spark.worker.local_state import MemoryState
from tests.runtime.partition_columns import columns_of
from tests.runtime.replay import open_tasks

_TIMESTAMP = 3
Written = Iterator[tuple[int, OutputRecord]]
"""(number of the batch, record)"""


@attrs.define
class Rounds:
    """The tasks of an application, one for each sub-topology, with one partition per topic."""

    programs: Sequence[SubtopologyProgram]
    in_columns: bool = False
    """Whether batches are processed in columns where that is planned."""
    tasks: dict[str, Task] = attrs.field(factory=dict)
    _states: dict[str, MemoryState] = attrs.field(factory=dict)
    _offsets: defaultdict[str, int] = attrs.field(factory=lambda: defaultdict(int))
    _waiting: list[OutputRecord] = attrs.field(factory=list)
    _logged: defaultdict[str, list[InputRecord]] = attrs.field(factory=lambda: defaultdict(list))
    """The records of each changelog topic, and of each source topic."""
    _clock: int = 0

    def __attrs_post_init__(self) -> None:
        self._states = {program.name: MemoryState() for program in self.programs}
        self.reopen()

    @property
    def groups(self) -> list[list[str]]:
        """The source topics of each sub-topology, without global ones, in the order of processing."""
        return [list(program.sources) for program in self.programs if not program.is_global]

    def reopen(self) -> None:
        """Create new tasks on the same states, as when they move to another worker."""
        self.tasks = open_tasks(self.programs, self._states)

    def restore(self, *, compacts: bool) -> None:
        """Create new tasks on states that are restored as by `restore_state`; `compacts`: the latest per key.

        Stores of global programs stay as they are.
        """
        for program in self.programs:
            if not program.is_global:
                self._states[program.name] = self._restored(program, compacts=compacts)
        self.reopen()

    def _restored(self, program: SubtopologyProgram, *, compacts: bool) -> MemoryState:
        before, state = self._states[program.name], MemoryState()
        task = Task(program, 0, state, self._global_stores())
        for topic in (*program.changelogs.values(), *program.source_changelogs.values()):
            logged = self._logged[topic]
            task.restore(topic, latest_of_keys(logged) if compacts else logged)
        state.metadata.update(before.metadata)
        state.commit(before.version - 1)
        return state

    def _global_stores(self) -> dict[str, Any]:
        return {
            name: store
            for each in self.programs
            if each.is_global
            for name, store in self.tasks[each.name].stores.items()
        }

    def start(self) -> None:
        """Process an empty batch at the time 0: the test driver schedules before the first record, too."""
        for program in self.programs:
            self._process(program, [])

    def process(self, batch: Sequence[Mapping[str, Any]]) -> Iterator[OutputRecord]:
        """Process records, or an advance of the clock (`advance`)."""
        for each in batch:
            if "advance" in each:
                self._clock += each["advance"]
                for program in self.programs:
                    yield from self._process(program, [])
            else:
                self._waiting.append(_record_of(each))
        while self._waiting:
            yield from self._round()

    def _round(self) -> Iterator[OutputRecord]:
        for program in sorted(self.programs, key=lambda each: not each.is_global):
            records = [record for record in self._waiting if record[0] in program.sources]
            if records:
                self._waiting = [record for record in self._waiting if record[0] not in program.sources]
                yield from self._process(program, records)

    def _process(self, program: SubtopologyProgram, records: Sequence[OutputRecord]) -> list[OutputRecord]:
        task, inputs = self.tasks[program.name], [self._input(each) for each in records]
        if self.in_columns:
            outputs = list(task.process_partitions(columns_of(inputs), (), self._clock)[0])
        else:
            outputs = task.process(inputs, self._clock)
        state = self._states[program.name]
        state.commit(state.version)
        for topic, _, key, value, timestamp, headers in outputs:
            if topic in program.changelogs.values():
                logged = self._logged[topic]
                logged.append((topic, 0, len(logged), timestamp, key, value, headers))
        read = {topic for each in self.programs for topic in each.sources}
        self._waiting += [output for output in outputs if output[0] in read]
        return outputs

    def _input(self, record: OutputRecord) -> InputRecord:
        topic, _, key, value, timestamp, headers = record
        offset = self._offsets[topic]
        self._offsets[topic] += 1 if (offset + 2) % 4 else 2  # as the marker of a transaction
        made: InputRecord = (topic, 0, offset, timestamp, key, value, headers)
        self._logged[topic].append(made)
        return made


def latest_of_keys(records: Iterable[InputRecord]) -> list[InputRecord]:
    """Return the latest record of each key, as a compacted topic has them."""
    latest: dict[bytes | None, InputRecord] = {}
    for record in records:
        key = record[4]
        latest.pop(key, None)
        latest[key] = record
    return list(latest.values())


def _record_of(given: Mapping[str, Any]) -> OutputRecord:
    key, value = (None if given[part] is None else given[part].encode() for part in ("key", "value"))
    if value is not None and "base64" in given:
        value = base64.b64decode(value)
    headers = tuple((name, name.encode()) for name in given["headers"])
    return (given["topic"], None, key, value, given["timestamp"], headers)


def in_order_of_test_driver(records: Iterable[InputRecord]) -> Iterator[InputRecord]:
    """Merge the records of several partitions as `smallest_heads`."""
    queues: defaultdict[TopicPartition, list[InputRecord]] = defaultdict(list)
    for record in records:
        queues[record[:2]].append(record)
    return smallest_heads({partition: iter(queue) for partition, queue in queues.items()})


def smallest_heads(queues: Mapping[TopicPartition, Iterator[Any]]) -> Iterator[Any]:
    """Merge queues as `PartitionGroup`: heads with equal timestamps in the order of a `PriorityQueue`."""
    heads: dict[TopicPartition, Any] = {partition: next(rest, None) for partition, rest in queues.items()}
    order = JavaQueue[TopicPartition](lambda partition: heads[partition][_TIMESTAMP])
    for partition, head in heads.items():
        if head is not None:
            order.offer(partition)
    while order:
        partition = order.poll()
        head = heads[partition]
        yield head
        heads[partition] = next(queues[partition], None)
        if heads[partition] is not None:
            order.offer(partition)
