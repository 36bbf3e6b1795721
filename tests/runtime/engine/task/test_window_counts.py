"""A task that only counts in windows writes the same for columns as for single records."""

from collections.abc import Sequence

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater_spark.engine.operators import cached_windows
from headwater_spark.engine.records import Headers, InputRecord, OutputRecord
from headwater_spark.engine.task import Task
from headwater_spark.worker.task_input import number_keys
from tests.runtime.engine.task.topologies import create_task
from tests.runtime.topology_runner import CACHED, NO_CACHE
from tests.runtime.worker.test_task_input import columns

_OUT = "- toStream: null\n- to: {topic: out, serdes: {key: time-windowed, value: long}}\n"


def _counted(window: str, then: str = "", kind: str = "string") -> str:
    return (
        f"- stream: {{topic: in, serdes: {{key: {kind}, value: string}}}}\n- groupByKey: null\n"
        f"- windowedBy: {{{window}}}\n- count: null\n{then}{_OUT}"
    )


COUNTING = {
    "tumbling": _counted("tumbling: {size: 10s, grace: 5s}"),
    "hopping": _counted("hopping: {size: 10s, advance: 3s, grace: 4s}"),
    "hopping of bytes": _counted("hopping: {size: 6s, advance: 2s, grace: 0s}", kind="bytes"),
    "suppressed": _counted("tumbling: {size: 5s, grace: 5s}", "- suppress: {until: windowCloses}\n"),
    "with old values": _counted("tumbling: {size: 10s, grace: 20s}", "- filter: {where: value > 1}\n"),
}
_RECORD = st.tuples(
    st.integers(0, 40_000),
    st.none() | st.sampled_from([b"", b"a", b"b", b"\xff", b"\xfe", b"a longer key"]),
    st.none() | st.just(b"v"),
    st.sampled_from([(), (), (), (), (("h", b"1"),)]),
)
_BATCHES = st.lists(st.lists(_RECORD, min_size=1, max_size=12), max_size=4)
Drawn = list[list[tuple[int, bytes | None, bytes | None, Headers]]]


def _process_columns(task: Task, records: Sequence[InputRecord]) -> list[OutputRecord] | None:
    keyed = number_keys(columns(records, 5))
    assert (keyed is None) is any(record[6] for record in records)
    return task.process(records, 5) if keyed is None else task.process_windows(keyed, 5)


@pytest.mark.parametrize("topology", COUNTING.values(), ids=COUNTING)
@given(
    batches=_BATCHES,
    cache_bytes=st.sampled_from([1, 90, 200, 400, 1_000, 10_000_000]),
    rows_at_once=st.sampled_from([1, 3, 65_536]),
)
def test_columns_lead_to_the_same_records(
    topology: str, batches: Drawn, cache_bytes: int, rows_at_once: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cached_windows, "counts_alone", lambda *_: False)
        with_all_entries = create_task(topology)
    assert with_all_entries.window_counter is None
    one_by_one, by_columns = create_task(topology), create_task(topology)
    tasks = (with_all_entries, one_by_one, by_columns)
    for each in tasks:
        each.resize_cache(cache_bytes)
    assert by_columns.window_counter is not None
    offset = 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cached_windows, "_ROWS_AT_ONCE", rows_at_once)
        for drawn in batches:
            records: list[InputRecord] = [("in", 0, offset + at, *fields) for at, fields in enumerate(drawn)]
            offset += len(records)
            expected = with_all_entries.process(records, 5)
            assert one_by_one.process(records, 5) == expected
            assert _process_columns(by_columns, records) == expected
            for each in tasks:
                assert each.context.dropped == with_all_entries.context.dropped
                assert each.state.metadata == with_all_entries.state.metadata
                assert each.state.changes() == with_all_entries.state.changes()
            for each in tasks:
                each.state.commit(each.state.version)


@pytest.mark.parametrize("kept", [(("h", b"1"),), None])
def test_headers_and_negative_times_are_processed_as_records(kept: tuple[tuple[str, bytes]] | None) -> None:
    record: InputRecord = ("in", 0, 0, -1 if kept is None else 5, b"a", b"v", kept or ())
    assert number_keys(columns([record])) is None


def test_only_cached_counts_alone_in_their_cache_take_columns() -> None:
    assert create_task(COUNTING["tumbling"], NO_CACHE).window_counter is None
    shared = _counted("tumbling: {size: 10s}", "- filter: {where: value > 1, materialized: large}\n")
    assert create_task(shared).window_counter is None
    parsed = COUNTING["tumbling"].replace("value: string}}\n- groupByKey", "value: json}}\n- groupByKey")
    assert create_task(parsed).window_counter is None
    keyed = number_keys(columns([("in", 0, 0, 5, b"a", b"v", ())]))
    assert keyed is not None
    with pytest.raises(ValueError, match="0_0 does not only count in windows"):
        create_task(parsed).process_windows(keyed, 0)
    other_keys = COUNTING["tumbling"].replace(
        "groupByKey: null", "groupByKey: {serdes: {key: long, value: string}}"
    )
    assert other_keys != COUNTING["tumbling"]
    assert create_task(other_keys).window_counter is None
    continued = attrs.evolve(CACHED, on_processing_error="continue")
    assert create_task(COUNTING["tumbling"], continued).window_counter is None
