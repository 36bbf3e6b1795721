"""An application in memory that joins two tables by a foreign key; records wait between its tasks."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache

import attrs

from headwater.compiler import build_nodes, compile_document
from headwater.model.offset_metadata import OffsetMetadata, decode_metadata
from headwater.model.problems import errors
from headwater.spec import load_text
from headwater_spark.driver.processor_move.checks import check_entries, check_input
from headwater_spark.driver.processor_move.entry_copy import EntryCopy, report_no_progress
from headwater_spark.driver.processor_move.moves import Committed, Move, MovedPart
from headwater_spark.driver.processor_move.state_move import StateMove
from headwater_spark.engine.partitioners.hashing import default_partition
from headwater_spark.engine.program import SubtopologyProgram, build_programs
from headwater_spark.engine.records import InputRecord, OutputRecord, TopicPartition
from headwater_spark.engine.scaling.moved_stores import moved_stores
from headwater_spark.engine.scaling.processors import Processors
from headwater_spark.engine.stores.backend import BatchedState
from headwater_spark.engine.task import Task
from headwater_spark.worker.local_state import MemoryState
from tests.runtime.driver.memory_move import MemoryCluster

PARTITIONS = 8
ORDERS, CUSTOMERS, OUT = "orders", "customers", "out"
SUBSCRIPTIONS = "app-joined-subscription-registration-topic"
RESPONSES = "app-joined-subscription-response-topic"
STORE = "app-joined-subscription-store-changelog"
_CONFIG = "config: {processing.guarantee: exactly_once_v2, statestore.cache.max.bytes: 0}"
_TOPOLOGY = """
topology:
  - table: {topic: orders, as: orders, materialized: orders, serdes: {key: string, value: string}}
  - table: {topic: customers, as: customers, materialized: customers, serdes: {key: string, value: string}}
  - leftJoin:
      name: joined
      from: orders
      with: customers
      foreignKey: "split(value, '-')[0]"
      value: "concat(left, '+', coalesce(right, 'none'))"
  - toStream:
  - to: {topic: out}
"""


@cache
def _programs(declared: str, partitions: int) -> tuple[SubtopologyProgram, ...]:
    """Return the programs of the document: properties need the same ones for each example."""
    loaded = load_text(f"application: {{id: app, {declared}{_CONFIG}}}{_TOPOLOGY}", "app.yaml")
    assert not loaded.problems, loaded.problems
    document = loaded.documents[0]
    compiled = compile_document(document, dict.fromkeys((ORDERS, CUSTOMERS, OUT), partitions))
    assert not errors(compiled.problems), compiled.problems
    return build_programs(document, build_nodes(document), compiled)


@attrs.define
class Joining:
    """Orders name their customer: `c1-7`. Tasks process single records, in any order of partitions.

    `is_declared`: the document declares `processors`. Otherwise each input partition has its own task.
    """

    processors: int = PARTITIONS
    is_declared: bool = False
    cluster: MemoryCluster = attrs.field(factory=lambda: MemoryCluster({}))
    orders: dict[str, str] = attrs.field(factory=dict)
    customers: dict[str, str] = attrs.field(factory=dict)
    out: dict[str, str] = attrs.field(factory=dict)
    partitions: int = PARTITIONS
    doubles: bool = True
    """Whether an expansion doubles the processors; otherwise there are 2, 3, 5 and 8."""
    initial: int = attrs.field(default=attrs.Factory(lambda self: self.processors, takes_self=True))
    _programs: tuple[SubtopologyProgram, ...] = ()
    _tasks: dict[tuple[str, int], Task] = attrs.field(factory=dict)
    _versions: dict[tuple[str, int], int] = attrs.field(factory=lambda: defaultdict(int))
    _copy: EntryCopy | None = None
    _time: int = 0

    def __attrs_post_init__(self) -> None:
        self._compile()
        self._add_input_partitions()
        for program in self._programs:
            for topic in program.changelogs.values():
                self.cluster.topics[topic] = [[] for _ in range(self.processors)]

    def _compile(self) -> None:
        declared = f"processors: {self.processors}, " if self.is_declared else ""
        self._programs = _programs(declared, self.partitions)

    def grow(self, partitions: int) -> None:
        """Add partitions to all inputs, whose records are processed."""
        assert not self.waiting()
        self.partitions = partitions
        self._add_input_partitions()
        self.declare(self._tasks)

    def _add_input_partitions(self) -> None:
        for topic in (topic for program in self._programs for topic in program.sources):
            partitions = self.cluster.topics.setdefault(topic, [])
            for number in range(len(partitions), self.partitions):
                partitions.append([])
                self.cluster.offsets[topic, number] = Committed(0)

    def order(self, key: str, customer: str | None) -> None:
        """Write an order of a customer; None deletes it."""
        self._time += 1
        value = None if customer is None else f"{customer}-{self._time}"
        self._put(ORDERS, self.orders, key, value)

    def name(self, customer: str, *, is_deleted: bool = False) -> None:
        self._time += 1
        self._put(CUSTOMERS, self.customers, customer, None if is_deleted else f"name {self._time}")

    def _put(self, topic: str, rows: dict[str, str], key: str, value: str | None) -> None:
        rows.pop(key, None)
        if value is not None:
            rows[key] = value
        self._write((topic, None, key.encode(), None if value is None else value.encode(), self._time, ()))

    def _write(self, record: OutputRecord) -> None:
        topic, partition, key, value, _, _ = record
        if topic == OUT:
            name = (key or b"").decode()
            self.out.pop(name, None)
            if value is not None:
                self.out[name] = value.decode()
            return
        if partition is None:
            partition = default_partition(key or b"", len(self.cluster.topics[topic]))
        self.cluster.write([(topic, partition, *record[2:])])

    def waiting(self) -> Sequence[TopicPartition]:
        """Return the partitions with unprocessed records."""
        return [
            each
            for program in self._programs
            for topic in sorted(program.sources)
            for each in ((topic, partition) for partition in range(self.partitions))
            if self._next(each) is not None
        ]

    def _next(self, partition: TopicPartition) -> InputRecord | None:
        topic, number = partition
        offset = self.cluster.offsets.get(partition, Committed()).offset or 0
        return next((each for each in self.cluster.topics[topic][number] if each[2] >= offset), None)

    def process_one(self, partition: TopicPartition) -> None:
        record = self._next(partition)
        assert record is not None
        program = next(each for each in self._programs if partition[0] in each.sources)
        owners = Processors.from_count(self.processors, self.initial)
        number = owners.owner(partition[1])
        task = self._task(program, number)
        for output in task.process([record], self._time):
            self._write(output)
        self._versions[program.name, number] += 1
        metadata = OffsetMetadata(self._versions[program.name, number], dict(task.state.metadata))
        owner = None if number == partition[1] else number
        text = metadata.encode(-1, processor=owner, initial=owners.recorded_initial)
        self.cluster.offsets[partition] = Committed(record[2] + 1, text)

    def process_all(self) -> None:
        while waiting := self.waiting():
            self.process_one(waiting[0])

    def _task(self, program: SubtopologyProgram, number: int) -> Task:
        name = program.name, number
        if name not in self._tasks:
            self._tasks[name] = Task(program, number, MemoryState())
        return self._tasks[name]

    def copy(self) -> None:
        """Copy what was written since the last call, as a running application does before the cut."""
        move = self._move()
        if self._copy is None:
            self.cluster.expand(dict.fromkeys(move.changelogs, move.after))
            self._copy = EntryCopy(move, self.cluster, report_no_progress)
        with self.cluster.producer(move.producer_name) as producer:
            producer.commit(dict.fromkeys(move.announcements, (0, move.announcement)))
            self._copy.advance(producer)

    def expand(self, *, keep: bool) -> None:
        """Add processors between two batches; `keep` = tasks find their local state again.

        Raises:
            ProblemsError: A record has to be processed first.
        """
        move = self._move()
        observed = self.cluster.committed(move.partitions)
        check_input(move, self.cluster, observed, report_no_progress)
        check_entries(move, self.cluster, observed, report_no_progress)
        StateMove(move, self.cluster, observed, report_no_progress, self._copy).run()
        self.processors, self._copy, old = move.after, None, self._tasks if keep else {}
        self.declare(old)

    def declare(self, old: Mapping[tuple[str, int], Task] | None = None) -> None:
        """Start again with a document that declares the present number of processors."""
        self.is_declared, self._tasks = True, {}
        self._compile()
        for program in self._programs:
            for number in range(self.processors):
                before = (old or {}).get((program.name, number))
                self._restore(program, number, MemoryState() if before is None else before.state)

    def _restore(self, program: SubtopologyProgram, number: int, state: BatchedState) -> None:
        """Restore a task as `restore_state` does."""
        state.commit(state.version)
        task = Task(program, number, state)
        for topic in program.changelogs.values():
            task.restore(topic, self.cluster.topics[topic][number])
        committed = self.cluster.offsets.get((next(iter(program.sources)), number), Committed())
        metadata = decode_metadata(committed.text) or OffsetMetadata()
        state.metadata.update(metadata.clocks)
        state.commit(state.version)
        self._versions[program.name, number] = metadata.version
        self._tasks[program.name, number] = Task(program, number, state)

    def _move(self) -> Move:
        after, parts = self.processors * 2 if self.doubles else (self.processors * 3 + 1) // 2, []
        for program in self._programs:
            stores, others = moved_stores(program)
            assert not others
            inputs = dict.fromkeys(program.sources, self.partitions)
            subscriptions = frozenset({SUBSCRIPTIONS} & program.sources.keys())
            parts.append(MovedPart(program.name, inputs, stores, subscriptions))
        return Move("app", self.processors, after, tuple(parts), is_live=True, known_initial=self.initial)

    def check_results(self) -> None:
        """Check the rows of the join when all records are processed."""
        expected = {
            key: f"{order}+{self.customers.get(order.partition('-')[0], 'none')}"
            for key, order in self.orders.items()
        }
        assert self.out == expected
