"""Sliding windows kept in lists during a batch lead to the same records as windows read from their store."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater_spark.engine.operators import windowed_aggregates
from tests.runtime.engine.task.equal_tasks import Drawn, check_equal_results
from tests.runtime.engine.task.topologies import create_task

_STREAM = "- stream: {topics: [in, in-longer], serdes: {key: string, value: string}}\n- groupByKey: null\n"
_OUT = "- toStream: null\n- to: {topic: out}\n"
_WINDOWS = {"short": "{difference: 2s, grace: 3s}", "long": "{difference: 40s, grace: 50s}"}
COUNTS = {
    f"{name}, {how}": f"{_STREAM}- windowedBy: {{sliding: {window}}}\n- count: null\n{then}{_OUT}"
    for name, window in _WINDOWS.items()
    for how, then in {"latest": "", "with old values": "- filter: {where: value > 1}\n"}.items()
}
_RECORD = st.tuples(
    st.integers(0, 15_000) | st.integers(0, 20).map(lambda time: time * 1_000) | st.integers(0, 200_000),
    st.none() | st.sampled_from([b"a", b"a", b"b", b"a longer key"]),
    st.none() | st.sampled_from([b"v", b"w"]),
    st.sampled_from([(), (), (), (("h", b"1"),)]),
    st.sampled_from(["in", "in", "in-longer"]),
)
_BATCHES = st.lists(st.lists(_RECORD, min_size=1, max_size=14), max_size=4)


@pytest.mark.parametrize("topology", COUNTS.values(), ids=COUNTS)
@given(batches=_BATCHES, cache_bytes=st.sampled_from([1, 90, 200, 400, 1_000, 10_000_000]))
def test_windows_in_lists_lead_to_the_same_records(
    topology: str,
    batches: list[list[Drawn]],
    cache_bytes: int,
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(windowed_aggregates, "cached_sliding_counts", lambda *parts: parts[-1])
        from_store = create_task(topology)
    in_lists = create_task(topology)
    check_equal_results(from_store, in_lists, batches, cache_bytes)


def test_reads_of_a_segment_need_no_memory_for_each_window() -> None:
    """Without earlier windows nearby, each record reads all windows of its key in the segment."""
    task = create_task(COUNTS["long, latest"].replace("50s", "24h").replace("40s", "10s"))
    (settings,) = task.program.stores
    store = task.context.stores.typed_store(settings.name).below
    reads = []

    def note(*_: object) -> None:
        reads.append(len(store._uncounted.reads))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(task, "_end_batch", note)
        task.process([("in", 0, at, 1_000_000 + 25_000 * at, b"a", b"v", ()) for at in range(100)], 5)
    assert 0 < reads[0] < 400
