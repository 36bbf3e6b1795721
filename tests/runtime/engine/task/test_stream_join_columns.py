"""Inner joins of two streams in columns lead to the same records, stores and clocks as records one by one."""

import re
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater_spark.engine.column_operators import stream_joins
from headwater_spark.engine.program_interface import EngineSettings
from headwater_spark.engine.records import InputRecord, OutputRecord
from headwater_spark.engine.task import Task
from headwater_spark.worker.local_state import MemoryState
from tests.runtime.engine.task.test_column_plan import BATCHES, Drawn, all_batches_attempted, batches_of
from tests.runtime.engine.task.topologies import CLASSES
from tests.runtime.partition_columns import by_topic, columns_of
from tests.runtime.topology_runner import programs

__all__ = ["all_batches_attempted"]

_TEXT = "serdes: {key: string, value: string}"
_STREAMS = f"- stream: {{topic: in, as: left, {_TEXT}}}\n- stream: {{topic: other, as: right, {_TEXT}}}\n"
_BOTH = "from: left, with: right, value: \"left + '+' + right + str(len(key))\", serdes: {value: string}"
_OUT = "- to: {topic: out}\n"
_MINUTE = 60_000


def _join(window: str, then: str = "", before: str = "", kind: str = "join") -> str:
    return f"{_STREAMS}{before}- {kind}: {{{_BOTH}, window: {{{window}}}}}\n{then}{_OUT}"


_JOINS = {
    "difference": _join("difference: 5ms, grace: 10ms"),
    "no grace": _join("difference: 3ms, grace: 0ms"),
    "only before": _join("before: 4ms, after: 0ms, grace: 2ms"),
    "only after": _join("before: 0ms, after: 2ms, grace: 1ms"),
    "a window that begins after the record": _join("before: -1ms, after: 4ms, grace: 20ms"),
    "a window that ends before the record": _join("before: 5ms, after: -2ms, grace: 20ms"),
    "longer than all times": _join("difference: 999999999d, grace: 0ms"),
    "minutes": _join("difference: 2m, grace: 0ms"),
    "minutes with grace": _join("difference: 1m, grace: 5m"),
    "other steps": (
        f"{_STREAMS}- to: {{from: left, topic: copies}}\n"
        "- filter: {from: left, where: \"value != 'b'\", as: kept}\n"
        '- mapValues: {from: right, value: "value and value * 2", as: mapped}\n'
        f"- join: {{{_BOTH.replace('from: left', 'from: kept').replace('with: right', 'with: mapped')}, "
        "window: {difference: 6ms, grace: 3ms}}\n"
        "- filter: {where: \"len(value) < 7\"}\n- map: {key: 'value[:1]', value: key}\n"
        f"{_OUT}"
    ),
    "two joins": (
        f"{_STREAMS}- join: {{{_BOTH}, window: {{difference: 6ms, grace: 3ms}}, as: first}}\n"
        f"- join: {{{_BOTH}, window: {{difference: 1ms, grace: 3ms}}, as: second}}\n"
        "- to: {from: first, topic: out}\n- to: {from: second, topic: pairs}\n"
    ),
    "other formats": (
        _join("difference: 5ms, grace: 10ms")
        .replace(_TEXT, "serdes: {key: bytes, value: bytes}")
        .replace("left + '+' + right + str(len(key))", "(left + right).hex()")
    ),
}
_NOT_IN_COLUMNS = {
    "left": _join("difference: 5ms, grace: 1ms", kind="leftJoin"),
    "outer": _join("difference: 5ms, grace: 1ms", kind="outerJoin")
    .replace("left +", "str(left) +")
    .replace("+ right", "+ str(right)"),
    "with itself": _join("difference: 5ms, grace: 1ms").replace("with: right", "with: left"),
    "with a table": (
        f"{_join('difference: 5ms, grace: 1ms')}- table: {{topic: third, materialized: rows, {_TEXT}}}\n"
        f"- join: {{from: left, with: rows, value: left + right, serdes: {{value: string}}}}\n"
        "- to: {topic: pairs}\n"
    )
    .replace("with: rows", "with: third")
    .replace("topic: third,", "topic: third, as: third,"),
    "of results": (
        f"{_STREAMS}- join: {{{_BOTH}, window: {{difference: 6ms, grace: 3ms}}, as: first}}\n"
        f"- join: {{{_BOTH.replace('from: left', 'from: first')}, window: {{difference: 1ms, grace: 3ms}}}}\n"
        f"{_OUT}"
    ),
    "before a count": _join(
        "difference: 5ms, grace: 1ms", "- groupByKey: null\n- count: null\n- toStream: null\n"
    ).replace("topic: out}", "topic: out, serdes: {key: string, value: long}}"),
}


def _task(topology: str, *, in_memory: bool = False, sequence: int | None = None) -> Task:
    settings = EngineSettings(emit_interval_ms=0, stores_in_memory=in_memory)
    state = MemoryState()
    program = programs(topology, settings, CLASSES)[0]
    if sequence is not None:
        state.metadata.update({f"{store.name}/sequence": sequence for store in program.stores})
    return Task(program, 0, state)


def _run(task: Task, records: list[InputRecord], *, columns: bool) -> Mapping[str, list[OutputRecord]]:
    outputs = task.process_partitions(columns_of(records), (), 5)[0] if columns else task.process(records, 5)
    found = by_topic(outputs)
    task.state.prepare(task.state.version)
    return found


@pytest.mark.usefixtures("all_batches_attempted")
@pytest.mark.parametrize("topology", _JOINS.values(), ids=_JOINS)
@given(
    drawn=BATCHES,
    unit=st.sampled_from([1, 1, 20_000, _MINUTE]),
    in_memory=st.booleans(),
    sequence=st.sampled_from([None, 2**31 - 4]),
)
def test_columns_lead_to_the_same_records(
    topology: str, drawn: Drawn, unit: int, sequence: int | None, *, in_memory: bool
) -> None:
    single, columnar = (_task(topology, in_memory=in_memory, sequence=sequence) for _ in range(2))
    assert columnar.is_columnar
    for batch in batches_of(topology, drawn):
        records = [(*record[:3], record[3] * unit, *record[4:]) for record in batch]
        expected = _run(single, records, columns=False)
        assert _run(columnar, records, columns=True) == expected
        assert columnar.context.dropped == single.context.dropped
        assert columnar.state.metadata == single.state.metadata
        assert columnar.state.changes() == single.state.changes()
        for each in (single, columnar):
            each.state.commit(each.state.version)


def _records(topic: str, times: range) -> list[InputRecord]:
    return [(topic, 0, at, time, b"k", b"%d" % time, ()) for at, time in enumerate(times)]


@pytest.mark.parametrize("topology", _JOINS.values(), ids=_JOINS)
def test_a_batch_is_processed_in_columns(topology: str) -> None:
    task = _task(topology)
    plan = task._column_plan
    assert plan is not None
    task._begin_batch(0)
    records = [*_records("in", range(20)), *_records("other", range(4, 24))]
    assert plan.run(columns_of(records)) is not None


@pytest.mark.parametrize("topology", _NOT_IN_COLUMNS.values(), ids=_NOT_IN_COLUMNS)
def test_single_records_matter(topology: str) -> None:
    (joining,) = (
        program
        for program in programs(topology, EngineSettings(emit_interval_ms=0), CLASSES)
        if any("WINDOWED" in node.name for node in program.nodes)
    )
    assert not Task(joining, 0, MemoryState()).is_columnar


def test_too_many_pairs_are_joined_record_by_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_joins, "_MOST_PAIRS", 0)
    topology = _JOINS["minutes"]
    single, columnar = _task(topology), _task(topology)
    records = [*_records("in", range(40)), *_records("other", range(40))]
    expected = _run(single, records, columns=False)
    assert len(expected["out"]) == 40 * 40
    assert _run(columnar, records, columns=True) == expected


def test_a_join_that_fails_names_its_record() -> None:
    topology = re.sub(r'value: "[^"]*"', 'value: "left + right[2]"', _JOINS["difference"])
    records = [*_records("in", range(3)), *_records("other", range(3))]
    messages = []
    for columns in (False, True):
        with pytest.raises(Exception, match="record of other, partition 0, offset 0") as caught:
            _run(_task(topology), records, columns=columns)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
