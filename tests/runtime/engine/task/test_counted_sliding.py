"""A task that only counts sliding windows writes the same for columns as for single records."""

from collections.abc import Iterator

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.spec import load_text
from headwater_spark.engine.stores.interfaces import Pair
from headwater_spark.engine.stores.overlay import Overlay
from headwater_spark.engine.task import Task
from headwater_spark.worker.local_state import MemoryState
from tests.runtime.engine.task.equal_tasks import Stepped, at_times, check_windows_in_columns
from tests.runtime.engine.task.topologies import create_task
from tests.runtime.replay import runnable_programs
from tests.runtime.topology_runner import CACHED, NO_CACHE


def _counted(window: str, then: str = "", kind: str = "string") -> str:
    return (
        f"- stream: {{topic: in, serdes: {{key: {kind}, value: string}}}}\n- groupByKey: null\n"
        f"- windowedBy: {{sliding: {{{window}}}}}\n- count: null\n{then}"
        "- toStream: null\n- to: {topic: out, serdes: {key: time-windowed, value: long}}\n"
    )


COUNTING = {
    "with grace": _counted("difference: 2s, grace: 10s"),
    "without grace": _counted("difference: 2s, grace: 0s"),
    "of bytes": _counted("difference: 3s, grace: 30s", kind="bytes"),
    "suppressed": _counted("difference: 2s, grace: 1s", "- suppress: {until: windowCloses}\n"),
    "with old values": _counted("difference: 4s, grace: 20s", "- filter: {where: value > 1}\n"),
}
_KEY = st.none() | st.sampled_from([b"a", b"b", b"a", b"b", b"\xff", b"\xfe", b"a longer key"])
_STEP = st.sampled_from([0, 0, 100, 500, 1_000, 1_999, 2_000, 2_001, 3_000, 9_000])
_BACK = st.sampled_from([0, 0, 0, 0, 0, 400, 2_000, 12_000])
_VALUE = st.sampled_from([b"v", b"v", None])
_BATCHES = st.lists(
    st.lists(st.tuples(_STEP, _BACK, _KEY, _VALUE), min_size=1, max_size=14), min_size=1, max_size=5
)


def _in_columns(topology: str, batches: list[list[Stepped]], cache_bytes: int, begin: int) -> int:
    tasks = create_task(topology), create_task(topology)
    return check_windows_in_columns(*tasks, batches, cache_bytes, begin)


@pytest.mark.parametrize("topology", COUNTING.values(), ids=COUNTING)
@given(
    batches=_BATCHES,
    cache_bytes=st.sampled_from([1, 90, 100, 200, 300, 500, 1_000, 10_000_000]),
    begin=st.sampled_from([0, 100_000, 100_000]),
)
def test_columns_lead_to_the_same_records(
    topology: str, batches: list[list[Stepped]], cache_bytes: int, begin: int
) -> None:
    _in_columns(topology, batches, cache_bytes, begin)


@pytest.mark.parametrize("cache_bytes", [1, 300, 10_000_000])
def test_late_records_and_small_caches_are_counted_in_columns(cache_bytes: int) -> None:
    times = [(1_000 * at - at % 4 * 700, b"a" if at % 3 else b"b") for at in range(20)]
    late = [(90_000, b"a"), (70_000, b"b"), (9_000, b"a"), (89_000, None)]
    assert _in_columns(COUNTING["with grace"], at_times(*times, *late), cache_bytes, begin=100_000) == 1


def test_windows_that_start_at_zero_are_counted_one_by_one() -> None:
    assert _in_columns(COUNTING["with grace"], at_times((1_999, b"a")), 10_000_000, begin=0) == 0


def test_closed_records_near_time_zero_stay_in_columns() -> None:
    """As a producer without a clock writes them."""
    batch = at_times((50_000, b"a"), (0, b"a"), (51_000, b"b"), (1, b"c"))
    assert _in_columns(COUNTING["with grace"], batch, 10_000_000, begin=0) == 1


@pytest.mark.parametrize("cache_bytes", [300, 10_000_000])
def test_late_records_of_few_keys_stay_in_columns(cache_bytes: int) -> None:
    times = [(100 * at - (1_500 if at % 10 == 9 else 0), b"a") for at in range(20, 220)]
    assert _in_columns(COUNTING["with grace"], at_times(*times), cache_bytes, begin=100_000) == 1


def test_many_records_far_from_each_other_are_counted_one_by_one() -> None:
    apart = at_times(*((2_001 * at, b"a") for at in range(20)))
    assert _in_columns(COUNTING["with grace"], apart, 10_000_000, begin=100_000) == 0
    assert _in_columns(COUNTING["with grace"], [apart[0][:15]], 10_000_000, begin=100_000) == 1


def test_a_full_cache_drops_windows_that_are_not_visible_any_more() -> None:
    """A window that has left the cache is not found again, once the store has a later one."""
    batch = at_times((0, b"a"), (30_000, b"b"), (30_500, b"b"), (25_000, b"a"), (26_000, b"a"))
    for cache_bytes in (100, 200, 300, 400, 10_000_000):
        assert _in_columns(COUNTING["without grace"], batch, cache_bytes, begin=100_000) == 1


def test_a_record_of_the_distant_past_reads_no_segment_since_then() -> None:
    read: list[bytes] = []
    read_range = Overlay.range

    def count_range(overlay: Overlay, start: bytes = b"", end: bytes | None = None) -> Iterator[Pair]:
        read.append(start)
        return read_range(overlay, start, end)

    batches = [*at_times((0, b"a")), *at_times((100, b"a"), (0, b"b"))]
    batches[1][1] = (0, 900_000_000, b"b", b"v")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Overlay, "range", count_range)
        assert _in_columns(COUNTING["with grace"], batches, 10_000_000, begin=1_000_000_000) == 2
    assert 0 < len(read) < 30


def test_updates_that_only_go_to_one_sink_pass_no_node() -> None:
    direct = {name: create_task(topology).context.direct_sink for name, topology in COUNTING.items()}
    assert {name for name, sink in direct.items() if sink is not None} == {
        "with grace",
        "without grace",
        "of bytes",
    }


@pytest.mark.parametrize(
    "window", ["sliding: {difference: 2s, grace: 10s}", "session: {gap: 2s, grace: 10s}"]
)
def test_records_of_a_window_have_the_partition_of_its_key(window: str) -> None:
    topology = COUNTING["with grace"].replace("sliding: {difference: 2s, grace: 10s}", window)
    if "session" in window:
        topology = topology.replace("time-windowed", "session-windowed")
    loaded = load_text(f"application: {{id: app}}\ntopology:\n{topology}", "t.yaml").documents[0]
    (program,) = runnable_programs(loaded, (), CACHED)
    tasks = [Task(attrs.evolve(program, counts={"out": 7}), 0, MemoryState()) for _ in range(2)]
    assert (tasks[0].context.direct_sink is not None) == ("sliding" in window)
    batch = at_times(*((100 * at, b"%d" % (at % 9)) for at in range(40)))
    assert check_windows_in_columns(tasks[0], tasks[1], batch, 10_000_000, begin=100_000) == 1


def test_only_cached_counts_alone_in_their_cache_take_columns() -> None:
    assert create_task(COUNTING["with grace"]).window_counter is not None
    assert create_task(COUNTING["with grace"], NO_CACHE).window_counter is None
    reduced = COUNTING["with grace"].replace("count: null", "reduce: {add: value}").replace("long", "string")
    assert create_task(reduced).window_counter is None
    shared = _counted("difference: 2s, grace: 10s", "- filter: {where: value > 1, materialized: large}\n")
    assert create_task(shared).window_counter is None
    continued = attrs.evolve(CACHED, on_processing_error="continue")
    assert create_task(COUNTING["with grace"], continued).window_counter is None
