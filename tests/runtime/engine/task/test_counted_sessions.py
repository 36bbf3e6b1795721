"""A task that only counts sessions writes the same for columns as for single records."""

import random

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater_spark.engine.key_counts import LATEST_TIME
from headwater_spark.engine.operators import counted_sessions
from headwater_spark.engine.operators.cached_sessions import KeySessions, SessionsOfKeys
from headwater_spark.engine.operators.late_sessions import LateSessions
from headwater_spark.engine.task import Task
from headwater_spark.worker.local_state import MemoryState
from tests.runtime.engine.task.equal_tasks import Stepped, at_times, check_windows_in_columns
from tests.runtime.engine.task.topologies import create_task
from tests.runtime.topology_runner import CACHED, NO_CACHE, programs


def _counted(window: str, then: str = "", kind: str = "string") -> str:
    return (
        f"- stream: {{topic: in, serdes: {{key: {kind}, value: string}}}}\n- groupByKey: null\n"
        f"- windowedBy: {{session: {{{window}}}}}\n- count: null\n{then}"
        "- toStream: null\n- to: {topic: out, serdes: {key: session-windowed, value: long}}\n"
    )


COUNTING = {
    "with grace": _counted("gap: 2s, grace: 10s"),
    "without grace": _counted("gap: 2s, grace: 0s"),
    "of bytes": _counted("gap: 3s, grace: 30s", kind="bytes"),
    "suppressed": _counted("gap: 2s, grace: 1s", "- suppress: {until: windowCloses}\n"),
    "with old values": _counted("gap: 4s, grace: 20s", "- filter: {where: value > 1}\n"),
}
_KEY = st.none() | st.sampled_from([b"a", b"b", b"a", b"b", b"\xff", b"\xfe", b"a longer key"])
_STEP = st.sampled_from([0, 0, 100, 500, 1_000, 1_999, 2_000, 2_001, 3_000, 9_000])
_BACK = st.sampled_from([0, 0, 0, 0, 0, 400, 2_000, 12_000])
_VALUE = st.sampled_from([b"v", b"v", None])
_BATCHES = st.lists(
    st.lists(st.tuples(_STEP, _BACK, _KEY, _VALUE), min_size=1, max_size=14), min_size=1, max_size=5
)


def _in_columns(topology: str, batches: list[list[Stepped]], cache_bytes: int) -> int:
    return check_windows_in_columns(create_task(topology), create_task(topology), batches, cache_bytes)


@pytest.mark.parametrize("topology", COUNTING.values(), ids=COUNTING)
@given(
    batches=_BATCHES,
    cache_bytes=st.sampled_from([1, 90, 100, 200, 300, 500, 1_000, 10_000_000]),
    rows_at_once=st.sampled_from([1, 3, 65_536]),
)
def test_columns_lead_to_the_same_records(
    topology: str, batches: list[list[Stepped]], cache_bytes: int, rows_at_once: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counted_sessions, "_ROWS_AT_ONCE", rows_at_once)
        patch.setattr(counted_sessions, "_FEWEST_ROWS", rows_at_once)
        _in_columns(topology, batches, cache_bytes)


_ASCENDING = [(1_000 * at, b"a" if at % 3 else b"b") for at in range(20)]


@pytest.mark.parametrize("cache_bytes", [1, 300, 10_000_000])
def test_batches_in_the_order_of_time_stay_in_columns(cache_bytes: int) -> None:
    assert _in_columns(COUNTING["with grace"], at_times(*_ASCENDING, (19_500, None)), cache_bytes) == 1


@pytest.mark.parametrize("cache_bytes", [1, 300, 10_000_000])
@pytest.mark.parametrize(
    "late",
    [
        pytest.param([(20_000, b"a"), (5_000, b"a")], id="before the latest session of its key"),
        pytest.param([(60_000, b"a"), (30_000, b"c")], id="closed"),
        pytest.param([(0, b"c"), (60_000, b"a"), (2_000, b"c")], id="perhaps not visible any more"),
    ],
)
def test_late_records_leave_other_keys_in_columns(late: list[tuple[int, bytes]], cache_bytes: int) -> None:
    one_by_one: list[bytes] = []
    of_key = SessionsOfKeys.of_key

    def note(sessions: SessionsOfKeys, key: bytes) -> KeySessions:
        if isinstance(sessions, LateSessions):
            one_by_one.append(key)
        return of_key(sessions, key)

    others = [(time, b"other") for time in (61_000, 62_000)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SessionsOfKeys, "of_key", note)
        assert _in_columns(COUNTING["with grace"], at_times(*late, *others), cache_bytes) == 1
    assert one_by_one == [key for _, key in late if key == late[-1][1]]


def _mixed_batches(chance: random.Random) -> list[list[Stepped]]:
    """Return batches in the order of time with some records that are late, in the future, or have no key."""
    late, batches = chance.choice([0.02, 0.1, 0.3]), list[list[Stepped]]()
    keys = [b"a", b"b", b"c", b"d", b"a longer key", b"\xff", b"\xfe"][: chance.choice([2, 4, 7])]
    steps = [0, 0, 100, 500, 1_000, 1_999, 2_000, 2_001, 3_000]
    for _ in range(chance.randint(1, 3)):
        batches.append([])
        for _ in range(chance.choice([5, 20, 40, 80])):
            step = chance.choice(steps) if chance.random() < 0.95 else chance.choice([9_000, 15_000, 100_000])
            behind = chance.choice([300, 1_500, 2_500, 4_000, 9_000, 13_000, 16_000, 30_000])
            key = chance.choice(keys) if chance.random() < 0.97 else None
            value = b"v" if chance.random() < 0.9 else None
            batches[-1].append((step, behind if chance.random() < late else 0, key, value))
    return batches


def test_few_late_records_lead_to_the_same_records() -> None:
    """Keys with and without late records share caches of any size, which are full within a batch."""
    for seed in range(settings().max_examples):
        chance = random.Random(seed)  # noqa: S311 - the same in each run
        cache_bytes = chance.choice([90, 200, 300, 500, 700, 1_000, 1_500, 2_500, 4_000, 10_000_000])
        batches = _mixed_batches(chance)
        topology = COUNTING[chance.choice(list(COUNTING))]
        with pytest.MonkeyPatch.context() as patch:
            at_once = chance.choice([3, 65_536, 65_536, 65_536])
            patch.setattr(counted_sessions, "_ROWS_AT_ONCE", at_once)
            patch.setattr(counted_sessions, "_FEWEST_ROWS", at_once)
            assert _in_columns(topology, batches, cache_bytes) == len(batches), seed


def test_times_that_are_far_from_each_other_are_counted_in_columns() -> None:
    """With many keys, key and time do not fit into one number."""
    keys = [(1_000 + at, b"%d" % at) for at in range(1_100)]
    far = [(LATEST_TIME, b"far")]
    assert _in_columns(COUNTING["with grace"], at_times(*keys, *keys[:3], *far, *keys[:2]), 10_000_000) == 1


@pytest.mark.parametrize(
    ("before", "after", "batches"),
    [
        pytest.param(
            "gap: 2s, grace: 10s",
            "gap: 9s, grace: 10s",
            [[(1_000, b"a"), (6_000, b"a")], [(7_000, b"a")]],
            id="gap",
        ),
        pytest.param(
            "gap: 9s, grace: 0s",
            "gap: 9s, grace: 60s",
            [[(11_000, b"a")], [(20_000, b"b")], [(19_000, b"a")], [(19_500, b"a")]],
            id="grace",
        ),
    ],
)
def test_sessions_that_an_edit_brings_together_are_merged(
    before: str, after: str, batches: list[list[tuple[int, bytes]]]
) -> None:
    """A longer gap connects sessions; a longer grace period shows an older one again."""

    def edited_task() -> Task:
        state = MemoryState()
        task = Task(programs(_counted(before), CACHED)[0], 0, state)
        for batch in batches[:-1]:
            task.process([("in", 0, 0, time, key, b"v", ()) for time, key in batch], 5)
            state.commit(state.version)
        return Task(programs(_counted(after), CACHED)[0], 0, state)

    last = at_times(*batches[-1])
    assert check_windows_in_columns(edited_task(), edited_task(), last, 10_000_000) == 1


def test_records_that_only_fill_a_session_are_counted_in_columns() -> None:
    batch = at_times((1_000, b"a"), (2_500, b"a"), (1_200, b"a"), (2_500, b"a"))
    assert _in_columns(COUNTING["with grace"], batch, 10_000_000) == 1


def test_only_cached_counts_alone_in_their_cache_take_columns() -> None:
    assert create_task(COUNTING["with grace"]).window_counter is not None
    assert create_task(COUNTING["with grace"], NO_CACHE).window_counter is None
    reduced = COUNTING["with grace"].replace("count: null", "reduce: {add: value}").replace("long", "string")
    assert create_task(reduced).window_counter is None
    shared = _counted("gap: 2s, grace: 10s", "- filter: {where: value > 1, materialized: large}\n")
    assert create_task(shared).window_counter is None
    continued = attrs.evolve(CACHED, on_processing_error="continue")
    assert create_task(COUNTING["with grace"], continued).window_counter is None
