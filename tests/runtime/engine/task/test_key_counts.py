"""A task that only counts writes the same for counts per key as for single records."""

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater_spark.engine.columns import OutputColumns
from headwater_spark.engine.key_counts import KeyCounts
from headwater_spark.engine.program_interface import EngineSettings
from headwater_spark.engine.task import Task
from headwater_spark.engine.wiring import ignores_values
from headwater_spark.worker.local_state import MemoryState
from headwater_spark.worker.task_input import count_keys
from tests.runtime.engine.task.topologies import CLASSES, TOPOLOGIES, create_task
from tests.runtime.topology_runner import CACHED, NO_CACHE, programs
from tests.runtime.worker.test_task_input import columns

if TYPE_CHECKING:
    from headwater_spark.engine.records import InputRecord

_GROUPED = "- stream: {topic: in, serdes: {key: string, value: string}}\n- groupByKey: null\n"
_OUT = "- to: {topic: out, serdes: {key: string, value: long}}\n"
COUNTING = {
    "count": f"{_GROUPED}- count: null\n- toStream: null\n{_OUT}",
    "then grouped": f"{_GROUPED}- count: null\n- groupBy: {{key: str(value), value: '1'}}\n- count: null\n",
    "then filtered": (
        f"{_GROUPED}- count: {{materialized: n}}\n- filter: {{where: value > 2}}\n- toStream: null\n{_OUT}"
    ),
    "then suppressed": (
        f"{_GROUPED}- count: null\n- suppress: {{until: timeLimit, timeLimit: 8s, maxRecords: 2}}\n"
        f"- toStream: null\n{_OUT}"
    ),
    "of bytes": (
        "- stream: {topic: in, serdes: {key: bytes, value: bytes}}\n- groupByKey: null\n- count: null\n"
        "- toStream: null\n- to: {topic: out, serdes: {key: bytes, value: long}}\n"
    ),
}
_BATCHES = st.lists(
    st.lists(
        st.tuples(
            st.integers(-1, 30_000),
            st.none() | st.sampled_from([b"", b"a", b"b", b"\xff", b"\xfe"]),
            st.none() | st.sampled_from([b"", b"v"]),
            st.sampled_from([(), (("h", b"1"),)]),
        ),
        min_size=1,
        max_size=8,
    ),
    max_size=4,
)


@pytest.mark.parametrize("topology", COUNTING.values(), ids=COUNTING)
@given(batches=_BATCHES, cache_bytes=st.sampled_from([1, 200, 400, 1_000, 10_000_000]))
def test_counts_per_key_lead_to_the_same_records(
    topology: str,
    batches: list[list[tuple[int, bytes | None, bytes | None, tuple[tuple[str, bytes], ...]]]],
    cache_bytes: int,
) -> None:
    one_by_one, by_key_counts = create_task(topology), create_task(topology)
    one_by_one.resize_cache(cache_bytes)
    by_key_counts.resize_cache(cache_bytes)
    assert by_key_counts.key_counter is not None
    offset = 0
    for drawn in batches:
        records: list[InputRecord] = [("in", 0, offset + at, *fields) for at, fields in enumerate(drawn)]
        offset += len(records)
        found = count_keys(columns(records))
        expected = one_by_one.process(records, 5)
        fits = found is not None and by_key_counts.can_process_key_counts(found)
        assert (
            by_key_counts.process_key_counts(found, 5)
            if fits and found
            else by_key_counts.process(records, 5)
        ) == expected
        assert by_key_counts.context.dropped == one_by_one.context.dropped
        assert by_key_counts.state.metadata == one_by_one.state.metadata


def test_only_cached_counts_of_a_plain_source_take_counts_per_key() -> None:
    counting = {
        name for name, topology in TOPOLOGIES.items() if create_task(topology).key_counter is not None
    }
    assert counting == {"count", "count of counts"}
    assert create_task(COUNTING["count"], NO_CACHE).key_counter is None
    for text in ("key: long, value: string", "key: string, value: json"):
        assert create_task(COUNTING["count"].replace("key: string, value: string", text)).key_counter is None
    other_keys = COUNTING["count"].replace(
        "groupByKey: null", "groupByKey: {serdes: {key: long, value: string}}"
    )
    assert other_keys != COUNTING["count"]
    assert create_task(other_keys).key_counter is None
    nothing = KeyCounts(by_key=(), dropped=0, latest=-1)
    with pytest.raises(ValueError, match="0_0 does not only count these records"):
        create_task(TOPOLOGIES["reduce"]).process_key_counts(nothing, 0)


_WINDOWED = f"{_GROUPED}- windowedBy: {{tumbling: {{size: 10s}}}}\n- count: null\n"


@pytest.mark.parametrize("topology", [*COUNTING.values(), _WINDOWED])
@given(batches=_BATCHES)
def test_where_values_are_ignored_empty_ones_lead_to_the_same_records(
    topology: str, batches: list[list[tuple[int, bytes | None, bytes | None, tuple[tuple[str, bytes], ...]]]]
) -> None:
    program = programs(topology, NO_CACHE, CLASSES)[0]
    assert ignores_values(program)
    with_values, with_empty = (Task(program, 0, MemoryState()) for _ in range(2))
    offset = 0
    for batch in batches:
        records: list[InputRecord] = [
            ("in", 0, offset + number, time, key, value, headers)
            for number, (time, key, value, headers) in enumerate(batch)
        ]
        offset += len(batch)
        empty: list[InputRecord] = [
            (*record[:5], None if record[5] is None else b"", record[6]) for record in records
        ]
        assert with_empty.process(empty, 0) == with_values.process(records, 0)


@pytest.mark.parametrize(
    "topology",
    [
        COUNTING["count"].replace("value: string}}\n- groupByKey", "value: json}}\n- groupByKey"),
        f"{_GROUPED}- reduce: {{add: 'max(total, value)'}}\n- toStream: null\n",
        "- stream: {topic: in, serdes: {key: string, value: string}}\n- to: {topic: out}\n",
    ],
)
def test_values_are_read_if_they_are_parsed_or_used(topology: str) -> None:
    assert not ignores_values(programs(topology, NO_CACHE, CLASSES)[0])


def test_values_are_read_for_the_dead_letter_queue() -> None:
    settings = EngineSettings(dead_letter_topic="failed")
    assert not ignores_values(programs(COUNTING["count"], settings, CLASSES)[0])


EACH_UPDATE = {name: text for name, text in COUNTING.items() if name in {"count", "of bytes"}}


@pytest.mark.parametrize("topology", EACH_UPDATE.values(), ids=EACH_UPDATE)
@given(batches=_BATCHES)
def test_columns_lead_to_the_same_updates(
    topology: str,
    batches: list[list[tuple[int, bytes | None, bytes | None, tuple[tuple[str, bytes], ...]]]],
) -> None:
    one_by_one, by_columns = create_task(topology, NO_CACHE), create_task(topology, NO_CACHE)
    offset = 0
    for drawn in batches:
        records: list[InputRecord] = [("in", 0, offset + at, *fields) for at, fields in enumerate(drawn)]
        offset += len(records)
        expected = one_by_one.process(records, 5)
        parts = list(columns(records).columns())
        is_counted = all(time >= 0 for _, _, times, _ in parts for time in times)
        found = by_columns.process_columns(parts, 5) if is_counted else by_columns.process(records, 5)
        for topic in ("out", "app-KSTREAM-AGGREGATE-STATE-STORE-0000000001-changelog"):
            of_topic = [record for record in expected if record[0] == topic]
            assert [record for record in found if record[0] == topic] == of_topic
            if isinstance(found, OutputColumns):
                assert found.count_by_topic()[topic] == len(of_topic)
        assert len(list(found)) == len(expected)
        assert by_columns.context.dropped == one_by_one.context.dropped
        assert by_columns.state.changes() == one_by_one.state.changes()
        assert by_columns.state.metadata == one_by_one.state.metadata
        for each in (one_by_one, by_columns):
            each.state.commit(each.state.version)


@pytest.mark.parametrize("name", sorted(COUNTING.keys() - EACH_UPDATE.keys()))
def test_updates_that_other_nodes_read_are_not_counted_in_columns(name: str) -> None:
    assert create_task(COUNTING[name], NO_CACHE).column_counter is None
    assert create_task(COUNTING["count"], CACHED).column_counter is None


@pytest.mark.parametrize("written", ["{key: string, value: string}", "{key: bytes, value: long}"])
def test_a_sink_of_another_format_reports_each_record_as_before(written: str) -> None:
    """Not the start of the task: `production.exception.handler` may skip the record."""
    topology = COUNTING["count"].replace("{key: string, value: long}", written)
    assert create_task(topology, NO_CACHE).column_counter is None
