"""One task: a sub-topology and a partition. Records in, records out; no clock, no Kafka, no Spark.

    task = Task(program, partition, state)
    outputs = task.process(records, wall_clock_ms)    # sinks', repartition topics' and changelogs' records

`process` leaves clocks and schedules in `state.metadata` and the stores' changes in `state.changes()`; the
caller persists them (see `task_state`). After a batch that failed the state is rolled back and the task is
made anew.
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from infra.model.nodes import Node, ProcessorNode, SinkNode, SourceNode
from spark_jobs.processors import PunctuationType
from spark_jobs.runtime.engine.error_handlers import Failures, PoisonRecordError
from spark_jobs.runtime.engine.key_counts import (
    NO_KEY_OR_VALUE,
    AddCount,
    KeyCounter,
    KeyCounts,
    counted_source,
)
from spark_jobs.runtime.engine.merging import merged
from spark_jobs.runtime.engine.operators import FACTORIES
from spark_jobs.runtime.engine.operators.interface import NotRunnableError, OperatorContext, Process
from spark_jobs.runtime.engine.program_interface import Program
from spark_jobs.runtime.engine.punctuation import Schedule, Schedules
from spark_jobs.runtime.engine.records import Ambient, InputRecord, OutputRecord, Value
from spark_jobs.runtime.engine.serdes import reads_anything
from spark_jobs.runtime.engine.sources_and_sinks import Consume, serdes_of, sink, source, timestamps
from spark_jobs.runtime.engine.stores.clock import Clock
from spark_jobs.runtime.engine.stores.overlay import Overlay
from spark_jobs.runtime.engine.task_state import TaskState
from spark_jobs.runtime.engine.task_stores import TaskStores

__all__ = ["PoisonRecordError", "Task"]

_TOPIC: Final = 0
_FRAMES_A_NODE = 5
_SPARE_FRAMES = 1000


class Task:
    """Executes a program over the records of one partition.

    Args:
        program: The sub-topology.
        partition: Its number; changelog records carry it.
        state: The stores of this task.
        global_stores: Typed stores of global tables by name, filled by the global task of this process.
    """

    def __init__(
        self,
        program: Program,
        partition: int,
        state: TaskState,
        global_stores: Mapping[str, Value] | None = None,
    ) -> None:
        self.program = program
        self.partition = partition
        self.state = state
        self.task_id = f"{program.name}_{partition}"
        self.ambient = Ambient()
        self.dropped: Counter[tuple[str, str]] = Counter()
        """(node, reason) → records dropped since the task was made."""
        self._outputs: list[OutputRecord] = []
        self.append = self._outputs.append
        self.failures = Failures(program.settings, self.append)
        self._clocks: dict[str, Clock] = {}
        self._wall = 0
        self.stream_time = self.clock("task")
        self._stores = TaskStores(self, global_stores or {})
        self._schedules = {kind: Schedules() for kind in PunctuationType}
        self._scheduled: Counter[str] = Counter()
        self._starts: dict[str, list[Callable[[], None]]] = {}
        self._closes: list[Callable[[], None]] = []
        self._finishes: list[Callable[[], None]] = []
        self._sources: dict[str, Consume] = {}
        self._timestamps: dict[str, Callable[[InputRecord], InputRecord | None]] = {}
        self._consumers: dict[str, Consume] = {}
        self._started = False
        self._told_dropped = 0
        self._add_counts: dict[str, AddCount] = {}
        self._build()
        self.key_counter = self._find_key_counter()

    # what operators, stores and ends ask of their task

    @property
    def application_id(self) -> str:
        return self.program.application_id

    def wall_clock(self) -> int:
        return self._wall

    def clock(self, name: str) -> Clock:
        known = self._clocks.get(name)
        if known is None:
            known = self._clocks[name] = Clock(self.state.metadata.get(name, -1))
        return known

    def overlay(self, name: str) -> Overlay:
        return self.state.store(name)

    def typed_store(self, name: str) -> Value:
        return self._stores.typed(name)

    def is_global_store(self, name: str) -> bool:
        return self._stores.is_global(name)

    def on_key_counts(self, node: str, add_count: AddCount) -> None:
        self._add_counts[node] = add_count

    def drop(self, node: str, reason: str) -> None:
        self.dropped[node, reason] += 1

    def on_open(self, node: str, start: Callable[[], None]) -> None:
        self._starts.setdefault(node, []).append(start)

    def on_close(self, close: Callable[[], None]) -> None:
        self._closes.append(close)

    def on_batch_end(self, finish: Callable[[], None]) -> None:
        self._finishes.append(finish)

    def schedule(
        self, node: str, interval_ms: int, kind: PunctuationType, callback: Callable[[int], None]
    ) -> Schedule:
        self._scheduled[node] += 1
        schedule = Schedule(interval_ms, self.clock(f"{node}/schedule/{self._scheduled[node]}"), callback)
        schedule.start(0 if kind is PunctuationType.STREAM_TIME else self._wall + interval_ms)
        self._schedules[kind].add(schedule)
        return schedule

    # batches

    def process(self, records: Iterable[InputRecord], wall_clock_ms: int) -> list[OutputRecord]:
        """Works one batch off: its records, due punctuations, flushes.

        Records come by offset within each partition, partitions in any order.

        Raises:
            PoisonRecordError: A record cannot be handled and the handlers say to fail.
        """
        self._begin(wall_clock_ms)
        self._consume(records)
        return self._end(wall_clock_ms)

    def process_key_counts(self, counts: KeyCounts, wall_clock_ms: int) -> list[OutputRecord]:
        """`process` where `key_counter` says that this is enough."""
        if self.key_counter is None:
            raise ValueError(f"{self.task_id} does more than count records")
        key_counter = self.key_counter
        self._begin(wall_clock_ms)
        self.stream_time.now = max(self.stream_time.now, counts.latest)
        if counts.dropped:
            self.dropped[key_counter.node, NO_KEY_OR_VALUE] += counts.dropped
        for key, number, latest, record in counts.by_key:
            key_counter.add_count(key_counter.deserialize_key(key), number, latest, record)
        return self._end(wall_clock_ms)

    def _begin(self, wall_clock_ms: int) -> None:
        self._wall = wall_clock_ms
        self._start()

    def _end(self, wall_clock_ms: int) -> list[OutputRecord]:
        self._punctuate(PunctuationType.WALL_CLOCK_TIME, wall_clock_ms)
        for finish in reversed(self._finishes):  # parents are built after their children
            finish()
        self._stores.flush()
        self._keep_clocks()
        outputs = self._outputs.copy()
        self._outputs.clear()
        return outputs

    def take_dropped(self) -> tuple[int, str | None]:
        """Return how many records were left out since this was asked last, and why the handlers did so."""
        total, latest = self.dropped.total() + self.failures.skipped, self.failures.latest
        number, self._told_dropped = total - self._told_dropped, total
        self.failures.latest = None
        return number, latest

    def restore(self, topic: str, records: Iterable[InputRecord]) -> None:
        """Puts records of a changelog topic into its store; they count as changes of the running batch.

        `topic` may be a source topic that serves as changelog. Raises KeyError for another topic.
        """
        restore = self._stores.restore_of(topic)
        for _, _, _, timestamp, key, value, _ in records:
            if key is not None:
                restore(key, value, timestamp)
        self._keep_clocks()

    @property
    def stores(self) -> Mapping[str, Value]:
        """Typed stores by name: what a global task lends to the others."""
        return self._stores.all()

    def close(self) -> None:
        """Closes users' processors."""
        for close in self._closes:
            close()

    def _keep_clocks(self) -> None:
        """Those that never moved are left out: what is kept is committed with offsets, which has a limit."""
        moved = ((name, clock.now) for name, clock in self._clocks.items() if clock.now != -1)
        self.state.metadata.update(moved)

    def _start(self) -> None:
        if not self._started:
            self._started = True
            for node in self.program.nodes:
                for start in self._starts.get(node.name, ()):
                    start()

    def _consume(self, records: Iterable[InputRecord]) -> None:
        if self._timestamps:
            records = self._timed(records)
        scheduled = self._schedules[PunctuationType.STREAM_TIME].all
        topic = ""
        consume: Consume = self._unread
        for record in merged(records):
            if record[_TOPIC] != topic:
                topic = record[_TOPIC]
                consume = self._consumer(topic)
            try:
                consume(record)
            except PoisonRecordError:
                raise
            except Exception as fault:  # noqa: BLE001 - expressions and users' classes raise anything
                self.ambient.node = None
                self.failures.processing(record, fault)
            if scheduled:
                self._punctuate(PunctuationType.STREAM_TIME, self.stream_time.now)

    def _punctuate(self, kind: PunctuationType, now: int) -> None:
        """`processing.exception.handler` decides here, too (KIP-1033)."""
        try:
            self._schedules[kind].punctuate(now)
        except Exception as fault:  # noqa: BLE001 - users' callbacks raise anything
            self.ambient.node = None
            self.failures.punctuation(self.task_id, fault)

    def _timed(self, records: Iterable[InputRecord]) -> Iterator[InputRecord]:
        for record in records:
            self._consumer(record[_TOPIC])
            timed = self._timestamps.get(self.program.source(record[_TOPIC]))
            found = record if timed is None else timed(record)
            if found is not None:
                yield found

    def _consumer(self, topic: str) -> Consume:
        known = self._consumers.get(topic)
        if known is None:
            known = self._consumers[topic] = self._sources[self.program.source(topic)]
        return known

    @staticmethod
    def _unread(record: InputRecord) -> None:
        raise AssertionError(record)

    # wiring

    def _build(self) -> None:
        """Children before parents, so that each node finds what it forwards to."""
        frames = _SPARE_FRAMES + _FRAMES_A_NODE * len(self.program.nodes)  # records go depth first
        sys.setrecursionlimit(max(sys.getrecursionlimit(), frames))
        built: dict[str, Process] = {}
        children = _children(self.program.nodes)
        for node in reversed(self.program.nodes):
            below = {child: built[child] for child in children[node.name]}
            forward = _forward(tuple(below.values()))
            match node:
                case SinkNode():
                    built[node.name] = sink(node, self)
                case ProcessorNode():
                    built[node.name] = self._operator(node, below, forward)
                case SourceNode():
                    self._sources[node.name] = source(node, forward, self)
                    timed = timestamps(node, self)
                    if timed is not None:
                        self._timestamps[node.name] = timed

    def _find_key_counter(self) -> KeyCounter | None:
        found = counted_source(self.program.nodes)
        add_count = self._add_counts.get(found.node.name) if found is not None else None
        if found is None or add_count is None:
            return None
        key, value = serdes_of(found.source.reads, self.program)
        if not (reads_anything(key) and reads_anything(value)):
            return None
        return KeyCounter(found.node.name, key.deserialize, add_count)

    def _operator(self, node: ProcessorNode, children: Mapping[str, Process], forward: Process) -> Process:
        if node.behavior is None:
            raise NotRunnableError(f"{node.name} comes from a text that does not say what it does")
        factory = FACTORIES[type(node.behavior)]
        process = factory(node.behavior, OperatorContext(node, children, forward, self))
        return process if self.failures.stops else self._surviving(process)

    def _surviving(self, process: Process) -> Process:
        """What a node cannot handle is passed over there: its parent and siblings go on (`ProcessorNode`)."""
        ambient, failures = self.ambient, self.failures

        def survive(key: Value, value: Value, timestamp: int, headers: Value) -> None:
            before = ambient.record, ambient.node
            try:
                process(key, value, timestamp, headers)
            except PoisonRecordError:
                raise
            except Exception as fault:  # noqa: BLE001 - expressions and users' classes raise anything
                ambient.record, ambient.node = before
                failures.processing(ambient.record, fault)

        return survive


def _children(nodes: Iterable[Node]) -> dict[str, list[str]]:
    """Node → its children in declaration order."""
    children: dict[str, list[str]] = {}
    for node in nodes:
        children[node.name] = []
        if not isinstance(node, SourceNode):
            for parent in node.parents:
                children[parent].append(node.name)
    return children


def _forward(children: tuple[Process, ...]) -> Process:
    match children:
        case ():
            return _nowhere
        case (only,):
            return only
        case (first, second):

            def both(key: Value, value: Value, timestamp: int, headers: Value) -> None:
                first(key, value, timestamp, headers)
                second(key, value, timestamp, headers)

            return both

    def each(key: Value, value: Value, timestamp: int, headers: Value) -> None:
        for child in children:
            child(key, value, timestamp, headers)

    return each


def _nowhere(key: Value, value: Value, timestamp: int, headers: Value) -> None:
    """A node without children."""
