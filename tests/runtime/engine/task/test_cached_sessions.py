"""Sessions kept in lists during a batch lead to the same records as sessions read from their store."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater_spark.engine.operators import windowed_aggregates
from tests.runtime.engine.task.equal_tasks import Drawn, check_equal_results
from tests.runtime.engine.task.topologies import create_task

_STREAM = "- stream: {topics: [in, in-longer], serdes: {key: string, value: string}}\n- groupByKey: null\n"
_GROUPED = f"{_STREAM}- windowedBy: {{session: {{gap: 2s, grace: 3s}}}}\n"
_OUT = "- toStream: null\n- to: {topic: out}\n"
SESSIONS = {
    "count": f"{_GROUPED}- count: null\n{_OUT}",
    "with old values": f"{_GROUPED}- count: null\n- filter: {{where: value > 1}}\n{_OUT}",
    "reduce": f"{_GROUPED}- reduce: {{add: total + value}}\n{_OUT}",
    "aggregate to nothing": (
        f'{_GROUPED}- aggregate: {{init: "\'\'", add: "total + value if len(total) != 2 else None", '
        f"merge: \"(left or '') + (right or '')\"}}\n{_OUT}"
    ),
}
_RECORD = st.tuples(
    st.integers(0, 15_000),
    st.none() | st.sampled_from([b"a", b"b", b"a longer key"]),
    st.sampled_from([b"v", b"w"]),
    st.sampled_from([(), (), (), (("h", b"1"),)]),
    st.sampled_from(["in", "in", "in-longer"]),
)
_BATCHES = st.lists(st.lists(_RECORD, min_size=1, max_size=14), max_size=4)


@contextmanager
def _only_from_the_store() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(windowed_aggregates, "cached_sessions", lambda *parts: parts[-1])
        yield


@pytest.mark.parametrize("topology", SESSIONS.values(), ids=SESSIONS)
@given(batches=_BATCHES, cache_bytes=st.sampled_from([1, 90, 200, 400, 1_000, 10_000_000]))
def test_sessions_in_lists_lead_to_the_same_records(
    topology: str, batches: list[list[Drawn]], cache_bytes: int
) -> None:
    with _only_from_the_store():
        from_store = create_task(topology)
    in_lists = create_task(topology)
    check_equal_results(from_store, in_lists, batches, cache_bytes)
