"""A task that only counts in windows, with an update per record, writes the same for columns."""

from collections.abc import Sequence

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater_spark.engine.counted_windows import WindowColumnCounter
from headwater_spark.engine.partitioners.hashing import InnerKeyPartition
from headwater_spark.engine.program_interface import Partition
from headwater_spark.engine.records import Headers, InputRecord, OutputRecord
from headwater_spark.engine.stores.backend import BatchedState
from headwater_spark.engine.task import Task
from headwater_spark.worker.local_state import MemoryState
from tests.runtime.engine.fuzzing.rounds import latest_of_keys
from tests.runtime.engine.task.topologies import create_task
from tests.runtime.topology_runner import CACHED, NO_CACHE, PythonProgram, programs
from tests.runtime.worker.test_task_input import columns

_OUT = "- toStream: null\n- to: {topic: out, serdes: {key: time-windowed, value: long}}\n"


def _counted(window: str, then: str = "", kind: str = "string", count: str = "count: null") -> str:
    return (
        f"- stream: {{topic: in, serdes: {{key: {kind}, value: string}}}}\n- groupByKey: null\n"
        f"- windowedBy: {{{window}}}\n- {count}\n{then}{_OUT}"
    )


_TUMBLING = "tumbling: {size: 10s, grace: 5s}"
COUNTING = {
    "tumbling": _counted(_TUMBLING),
    "tumbling, kept longer": _counted(
        "tumbling: {size: 3s, grace: 0s}", count="count: {materialized: {store: counts, retention: 90s}}"
    ),
    "tumbling, not logged": _counted(
        _TUMBLING, count="count: {materialized: {store: counts, logging: false}}"
    ),
    "hopping": _counted("hopping: {size: 10s, advance: 3s, grace: 4s}"),
    "hopping of bytes": _counted("hopping: {size: 6s, advance: 2s, grace: 0s}", kind="bytes"),
}
_RECORD = st.tuples(
    st.integers(0, 40_000) | st.integers(0, 400_000),
    st.sampled_from([b"", b"a", b"b", b"c", b"a longer key"]),
    st.just(b"v"),
    st.sampled_from([(), (), (("h", b"1"),)]),
)
_UNUSUAL = st.tuples(
    st.integers(-1, 9_000), st.sampled_from([None, b"a", b"\xff", b"\xfe"]), st.none(), st.just(())
)
_INCOMPLETE = st.tuples(
    st.integers(0, 40_000),
    st.sampled_from([None, b"a", b"\xff", b"\xfe"]),
    st.sampled_from([None, b"v"]),
    st.just(()),
)
_BATCHES = st.lists(
    st.lists(_RECORD, min_size=1, max_size=12)
    | st.lists(_RECORD | _RECORD | _INCOMPLETE, min_size=1, max_size=12)
    | st.lists(_UNUSUAL, min_size=1),
    max_size=5,
)
Drawn = list[list[tuple[int, bytes | None, bytes | None, Headers]]]


def _task(topology: str, partition_of: Partition | None, state: BatchedState | None = None) -> Task:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PythonProgram, "partition", lambda *_: partition_of)
        return Task(programs(topology, NO_CACHE)[0], 0, state or MemoryState())


def _by_partition(records: Sequence[OutputRecord]) -> dict[tuple[str, int | None], list[OutputRecord]]:
    found: dict[tuple[str, int | None], list[OutputRecord]] = {}
    for record in records:
        found.setdefault(record[:2], []).append(record)
    return found


@pytest.mark.parametrize("topology", COUNTING.values(), ids=COUNTING)
@given(
    batches=_BATCHES,
    partition_of=st.sampled_from([None, InnerKeyPartition({"out": 1}, 8), InnerKeyPartition({"out": 3}, 8)]),
)
def test_columns_lead_to_the_same_updates(
    topology: str, batches: Drawn, partition_of: InnerKeyPartition | None
) -> None:
    one_by_one, by_columns = _task(topology, partition_of), _task(topology, partition_of)
    assert isinstance(by_columns.column_counter, WindowColumnCounter)
    offset = 0
    for drawn in batches:
        records: list[InputRecord] = [("in", 0, offset + at, *fields) for at, fields in enumerate(drawn)]
        offset += len(records)
        expected = one_by_one.process(records, 5)
        parts = list(columns(records, 5).columns())
        if all(time >= 0 for time, *_ in drawn):
            outputs = by_columns.process_columns(parts, 5)
            found = list(outputs)
            numbers = dict.fromkeys(outputs.count_by_topic(), 0)
            for record in expected:
                numbers[record[0]] += 1
            assert outputs.count_by_topic() == numbers
        else:
            found = by_columns.process(records, 5)
        assert _by_partition(found) == _by_partition(expected)
        assert by_columns.context.dropped == one_by_one.context.dropped
        assert by_columns.state.metadata == one_by_one.state.metadata
        assert by_columns.state.changes() == one_by_one.state.changes()
        for each in (one_by_one, by_columns):
            each.state.commit(each.state.version)


def _restored(topology: str, task: Task, written: Sequence[OutputRecord], *, compacts: bool) -> Task:
    """Return a task whose state is restored from the changelog records, as on another host."""
    state = MemoryState()
    logged: list[InputRecord] = [
        (topic, 0, offset, time, key, value, headers)
        for offset, (topic, _, key, value, time, headers) in enumerate(written)
        if topic.endswith("-changelog")
    ]
    if logged:
        _task(topology, None, state).restore(logged[0][0], latest_of_keys(logged) if compacts else logged)
    state.metadata.update(task.state.metadata)
    state.commit(task.state.version - 1)
    return _task(topology, None, state)


@attrs.frozen
class Step:
    """A batch, the way in which it is processed, and what happens before."""

    in_columns: bool
    before: str
    """`restored`, `compacted`, `failed` (the batch is prepared in the other way), or nothing."""


_STEPS = st.builds(
    Step, in_columns=st.booleans(), before=st.sampled_from(["", "", "failed", "restored", "compacted"])
)


@pytest.mark.parametrize("topology", [COUNTING[name] for name in COUNTING if name != "tumbling, not logged"])
@given(batches=st.lists(st.tuples(_STEPS, st.lists(_RECORD, min_size=1, max_size=12)), max_size=6))
def test_each_way_continues_with_the_state_of_the_other(
    topology: str, batches: Sequence[tuple[Step, list[tuple[int, bytes, bytes, Headers]]]]
) -> None:
    """Also after a restore, and after a batch that was processed in either way, but not committed."""
    one_by_one, task = _task(topology, None), _task(topology, None)
    written: list[OutputRecord] = []
    offset = dropped = 0
    for step, drawn in batches:
        records: list[InputRecord] = [("in", 0, offset + at, *fields) for at, fields in enumerate(drawn)]
        offset += len(records)
        if step.before == "failed":
            _process(task, records, in_columns=not step.in_columns)
            task.state.prepare(task.state.version)
            task = _task(topology, None, BatchedState(task.state._backend))
        elif step.before:
            task = _restored(topology, task, written, compacts=step.before == "compacted")
        before = task.context.count_dropped()
        expected = one_by_one.process(records, 5)
        found = _process(task, records, in_columns=step.in_columns)
        assert _by_partition(found) == _by_partition(expected)
        assert task.state.metadata == one_by_one.state.metadata
        assert task.context.count_dropped() - before == one_by_one.context.count_dropped() - dropped
        dropped = one_by_one.context.count_dropped()
        written += found
        for each in (one_by_one, task):
            each.state.commit(each.state.version)


def _process(task: Task, records: Sequence[InputRecord], *, in_columns: bool) -> list[OutputRecord]:
    if in_columns:
        return list(task.process_columns(list(columns(records, 5).columns()), 5))
    return task.process(records, 5)


@pytest.mark.parametrize(
    "topology",
    [
        _counted(f"{_TUMBLING}, emit: onWindowClose"),
        _counted("unlimited: {}"),
        _counted(_TUMBLING, "- filter: {where: value > 1}\n"),
        _counted(_TUMBLING, count="reduce: {add: value}").replace("value: long", "value: string"),
        COUNTING["tumbling"].replace("value: long", "value: string"),
        COUNTING["tumbling"].replace("key: time-windowed", "key: session-windowed"),
        COUNTING["tumbling"].replace("value: string}}\n- groupByKey", "value: json}}\n- groupByKey"),
    ],
)
def test_other_windows_and_formats_are_processed_record_by_record(topology: str) -> None:
    assert create_task(topology, NO_CACHE).column_counter is None


def test_other_partitions_and_caches_are_processed_record_by_record() -> None:
    assert create_task(COUNTING["tumbling"], CACHED).column_counter is None
    assert _task(COUNTING["tumbling"], lambda *_: 0).column_counter is None
    assert _task(COUNTING["tumbling"], InnerKeyPartition({"other": 1}, 8)).column_counter is None
    skipping = attrs.evolve(NO_CACHE, on_processing_error="continue")
    assert create_task(COUNTING["tumbling"], skipping).column_counter is not None  # no record can fail
