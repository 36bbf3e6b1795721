"""All tasks of an application on the engine, whose state moves between them: each record is a batch."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache

import attrs

from headwater.compiler import build_nodes, compile_document
from headwater.model.nodes import SourceNode
from headwater.model.offset_metadata import OffsetMetadata, decode_metadata
from headwater.model.topology import TopologyDocument
from headwater.spec import load_text
from headwater_spark.driver.processor_move.checks import check_entries
from headwater_spark.driver.processor_move.moves import Committed, Move, MovedPart
from headwater_spark.driver.processor_move.state_move import StateMove
from headwater_spark.engine.partitioners.hashing import default_partition
from headwater_spark.engine.program import SubtopologyProgram, build_programs
from headwater_spark.engine.records import InputRecord, OutputRecord
from headwater_spark.engine.scaling.moved_stores import moved_stores
from headwater_spark.engine.scaling.processors import Processors
from headwater_spark.engine.stores.backend import BatchedState
from headwater_spark.engine.task import Task
from headwater_spark.worker.local_state import MemoryState
from tests.runtime.driver.memory_move import MemoryCluster

TEXTS = "serdes: {key: string, value: string}"
ORDERS = f"- stream: {{topic: orders, as: orders, {TEXTS}}}"
CUSTOMERS = f"- table: {{topic: customers, as: customers, materialized: customers, {TEXTS}}}"
OUT = "- to: {topic: out}"
COUNTED = """
- groupByKey:
- WINDOW
- count: {materialized: counted}
"""
COUNTED_BY_USER = "keyed: record, serdes: {key: string, value: long}"
TEXT_OUT = """
- toStream:
- mapValues: {value: string(value), serdes: {value: string}}
- to: {topic: out}
"""
_WINDOWS = {
    "tumbling": "windowedBy: {tumbling: {size: 20ms, grace: 5ms}}",
    "sliding": "windowedBy: {sliding: {difference: 10ms, grace: 5ms}}",
    "session": "windowedBy: {session: {gap: 8ms, grace: 5ms}}",
}
TOPOLOGIES: Mapping[str, str] = {
    "counts": f"{ORDERS}\n- groupByKey:\n- count: {{materialized: counted}}{TEXT_OUT}",
    "tables": f"{CUSTOMERS}\n{ORDERS}\n"
    f"- join: {{from: orders, with: customers, value: \"concat(left, '+', right)\"}}\n{OUT}",
    **{
        f"{name} windows": f"{ORDERS}{COUNTED.replace('WINDOW', window)}{TEXT_OUT}"
        for name, window in _WINDOWS.items()
    },
    **{
        f"suppressed {name} windows": f"{ORDERS}{COUNTED.replace('WINDOW', window)}"
        f"- suppress: {{until: windowCloses}}{TEXT_OUT}"
        for name, window in _WINDOWS.items()
    },
    **{
        f"{name} windows on close": f"{ORDERS}"
        f"{COUNTED.replace('WINDOW', window[:-1] + ', emit: onWindowClose}')}{TEXT_OUT}"
        for name, window in _WINDOWS.items()
    },
    "tables of windows": f"{ORDERS}{COUNTED.replace('WINDOW', _WINDOWS['tumbling'])}"
    f"- filter: {{where: value % 2 = 0, materialized: even}}{TEXT_OUT}",
    "limited suppression": f"{CUSTOMERS}\n- suppress: {{until: timeLimit, timeLimit: 500ms, maxRecords: 7}}\n"
    f"- toStream:\n{OUT}",
    **{
        f"{kind} of streams": f"""
{ORDERS}
- stream: {{topic: customers, as: payments, {TEXTS}}}
- {kind}:
    from: orders
    with: payments
    window: {{difference: 10ms, grace: 5ms}}
    value: "concat(coalesce(left, 'none'), '+', coalesce(right, 'none'))"
{OUT}
"""
        for kind in ("join", "outerJoin")
    },
    "versioned tables": f"""
- table:
    topic: customers
    as: customers
    materialized: {{supplier: {{name: customers, kind: versionedKeyValue, retention: 1h}}}}
    {TEXTS}
{ORDERS}
- join: {{from: orders, with: customers, grace: 6ms, value: "concat(left, '+', right)"}}
{OUT}
""",
    "foreign keys": f"""
- table: {{topic: orders, as: orders, materialized: orders, {TEXTS}}}
{CUSTOMERS}
- leftJoin:
    from: orders
    with: customers
    foreignKey: "substring(value, 1, 2)"
    value: "concat(left, '+', coalesce(right, 'none'))"
- toStream:
{OUT}
""",
    "users' processors": f"""
- addStateStore: {{name: visit-totals, {COUNTED_BY_USER}}}
- addStateStore: {{name: visit-windows, kind: window, retention: 1h, windowSize: 10ms, {COUNTED_BY_USER}}}
- addStateStore: {{name: visit-pending, kind: timestampedKeyValue, {COUNTED_BY_USER}}}
{ORDERS}
- process: {{class: "tests.runtime.visiting:Visits", stores: [visit-totals, visit-windows, visit-pending]}}
{OUT}
- process: {{from: orders, class: "tests.runtime.visiting:Reports", stores: [visit-pending]}}
{OUT}
""",
    "users' sessions and versions": f"""
{ORDERS}
- process:
    class: tests.runtime.visiting:Histories
    stores:
      - {{name: sessions, kind: session, retention: 1h, {COUNTED_BY_USER}}}
      - {{name: values, kind: versionedKeyValue, retention: 1h, keyed: record, {TEXTS}}}
{OUT}
""",
    "users' transformers": f"""
- addStateStore: {{name: changes, {COUNTED_BY_USER}}}
{CUSTOMERS}
- transformValues: {{class: "tests.runtime.visiting:Renames", stores: [changes]}}
- toStream:
{OUT}
""",
}
KEYS = [f"k{each}" for each in range(9)]
LATER = 1_000
"""Times of records that close all windows; their results are ignored."""

Sent = tuple[str, str, str, int]
"""(topic, key, value, timestamp)"""


def sent(first: int, last: int) -> Sequence[Sent]:
    """Return records with increasing times: orders, and now and then a customer."""
    found: list[Sent] = []
    for each in range(first, last):
        key = KEYS[each * 7 % len(KEYS)]
        if each % 3 == 0:
            found.append(("customers", KEYS[each // 3 % len(KEYS)], f"name {each}", each))
        found.append(("orders", key, f"k{each * 5 % 9}|{each}", each))
    return found


def closing(processors: Processors) -> Sequence[Sent]:
    """Return records that advance the time of each processor, in small steps, until all windows close."""
    keys: dict[int, str] = {}
    for each in range(1_000):
        keys.setdefault(processors.owner_of_key(b"z%d" % each), f"z{each}")
    return [
        (topic, key, "k0|0", time)
        for time in (*range(120, 180, 3), LATER)
        for key in keys.values()
        for topic in ("customers", "orders")
    ]


@attrs.define
class Application:
    """All tasks of an application on the engine; each record is a batch of its own.

    It has as many partitions as processors at first.
    """

    topology: str
    processors: int
    partitions: int = attrs.field(default=attrs.Factory(lambda self: self.processors, takes_self=True))
    initial: int = attrs.field(default=attrs.Factory(lambda self: self.processors, takes_self=True))
    programs: tuple[SubtopologyProgram, ...] = ()
    results: dict[str, list[str | None]] = attrs.field(factory=lambda: defaultdict(list))
    cluster: MemoryCluster = attrs.field(factory=lambda: MemoryCluster({}, chunk_records=50))
    _tasks: dict[tuple[str, int], Task] = attrs.field(factory=dict)
    _offset: int = 0

    def __attrs_post_init__(self) -> None:
        self._compile()
        for topic in (topic for program in self.programs for topic in program.changelogs.values()):
            self.cluster.topics[topic] = [[] for _ in range(self.processors)]

    @property
    def owners(self) -> Processors:
        return Processors.from_count(self.processors, self.initial)

    def _compile(self) -> None:
        self.programs = _programs(self.topology, self.partitions)

    def process(self, records: Iterable[Sent]) -> None:
        for topic, key, value, time in records:
            self._process(
                topic, default_partition(key.encode(), self.partitions), key.encode(), value.encode(), time
            )

    def _process(self, topic: str, partition: int, key: bytes | None, value: bytes | None, time: int) -> None:
        program = next((each for each in self.programs if topic in each.sources), None)
        if program is None:
            return
        self._offset += 1
        record: InputRecord = (topic, partition, self._offset, time, key, value, ())
        task = self._task(program, self.owners.owner(partition))
        for output in task.process([record], LATER * self._offset):
            self._follow(output)

    def _follow(self, output: OutputRecord) -> None:
        topic, partition, key, value, time, _ = output
        if topic in self.cluster.topics:
            self.cluster.write([output])
        elif topic != "out":
            to = default_partition(key or b"", self.partitions) if partition is None else partition
            self._process(topic, to, key, value, time)
        elif not (key or b"").startswith(b"z"):
            self.results[(key or b"").hex()].append(None if value is None else value.decode())

    def _task(self, program: SubtopologyProgram, number: int) -> Task:
        name = program.name, number
        if name not in self._tasks:
            self._tasks[name] = Task(program, number, MemoryState())
        return self._tasks[name]

    def states(self) -> Sequence[BatchedState]:
        """Return the states of all tasks, in the order of their numbers."""
        return [task.state for _, task in sorted(self._tasks.items())]

    def move(self, after: int, *, keep: bool, partitions: int | None = None) -> None:
        """Move the state; `keep` = the old processors find their local state again.

        There are as many partitions as processors then, unless `partitions` says otherwise.
        """
        self.partitions = partitions or after
        parts = []
        for program in self.programs:
            stores, others = moved_stores(program)
            assert not others
            parts.append(MovedPart(program.name, dict.fromkeys(program.sources, self.partitions), stores))
            for number in range(self.processors):
                state = self._task(program, number).state
                text = OffsetMetadata(1, dict(state.metadata)).encode(-1)
                for topic in program.sources:
                    for each in range(self.partitions):
                        if self.owners.owner(each) == number:
                            found = Committed(1, text) if each == number else Committed(0)
                            self.cluster.offsets[topic, each] = found
        widest = max(map(len, self.cluster.topics.values()))
        move = Move("app", self.processors, after, tuple(parts), known_initial=self.initial, widest=widest)
        check_entries(move, self.cluster, self.cluster.committed(move.partitions), lambda *_: None)
        StateMove(move, self.cluster, {}, lambda *_: None).run()
        taken_over = {move.new.owner(each) for each in range(after, self.processors)}
        old = {name: task for name, task in self._tasks.items() if keep and name[1] not in taken_over}
        self.processors, self._tasks = after, {}
        self._compile()
        for program in self.programs:
            for number in range(after):
                self._restore(program, number, old.get((program.name, number)))

    def _restore(self, program: SubtopologyProgram, number: int, before: Task | None) -> None:
        """Restore a task as `restore_state` does."""
        state = before.state if before is not None else MemoryState()
        state.commit(state.version) if before is not None else None
        task = Task(program, number, state)
        for topic in program.changelogs.values():
            task.restore(topic, self.cluster.topics[topic][number])
        metadata = decode_metadata(self.cluster.offsets[next(iter(program.sources)), number].text)
        assert metadata is not None
        state.metadata.update(metadata.clocks)
        state.commit(state.version)
        self._tasks[program.name, number] = Task(program, number, state)


@cache
def _programs(topology: str, partitions: int) -> tuple[SubtopologyProgram, ...]:
    """Return the programs of a topology; tests compile each of them several times."""
    document = _document(topology)
    counts = dict.fromkeys(("orders", "customers", "out"), partitions)
    compiled = compile_document(document, counts)
    programs = build_programs(document, build_nodes(document), compiled)
    return tuple(program.with_counts(counts) for program in programs)


@cache
def _document(topology: str) -> TopologyDocument:
    lines = "\n".join(f"  {line}" for line in topology.splitlines())
    config = (
        "{statestore.cache.max.bytes: 0, processing.guarantee: exactly_once_v2,"
        " __emit.interval.ms.kstreams.windowed.aggregation__: 0,"
        " __emit.interval.ms.kstreams.outer.join.spurious.results.fix__: 0}"
    )
    loaded = load_text(f"application: {{id: app, config: {config}}}\ntopology:\n{lines}", "app.yaml")
    assert not loaded.problems, loaded.problems
    nodes = build_nodes(loaded.documents[0])
    assert any(isinstance(node, SourceNode) for node in nodes.nodes)
    return loaded.documents[0]


def results_of(app: Application) -> Mapping[str, Sequence[str | None]]:
    """Return the results by key, without the order in which windows of a key are closed."""
    return {key: sorted(values, key=str) for key, values in app.results.items()}
