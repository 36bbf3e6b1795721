"""Where a batch begins and ends in each of a task's input partitions."""

from spark_jobs.runtime.records import InputRecord
from spark_jobs.runtime.worker.owned import _fresh, _positions


def record(topic: str, offset: int, timestamp: int) -> InputRecord:
    return (topic, 2, offset, timestamp, b"k", b"v", ())


BOTH = [record("a", 3, 50), record("b", 7, 40), record("a", 4, 30), record("b", 9, 45)]


def test_a_position_is_after_the_last_record_and_a_time_the_largest() -> None:
    assert _positions(BOTH) == ({("a", 2): 5, ("b", 2): 10}, {("a", 2): 50, ("b", 2): 45})
    assert _positions(BOTH[:1]) == ({("a", 2): 4}, {("a", 2): 50})
    assert _positions([]) == ({}, {})


def test_records_below_the_committed_offsets_are_left_out() -> None:
    assert _fresh(BOTH, {}) == BOTH
    assert _fresh(BOTH, {("a", 2): 3, ("b", 2): 7}) == BOTH
    assert _fresh(BOTH, {("a", 2): 3, ("b", 2): 8}) == [BOTH[0], BOTH[2], BOTH[3]]
    assert _fresh(BOTH, {("a", 2): 5, ("b", 2): 10}) == []
    assert _fresh([], {("a", 2): 5}) == []
