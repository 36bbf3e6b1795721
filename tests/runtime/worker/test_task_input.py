"""A task's part of a batch: the same as columns and as records; where it begins and ends."""

from collections.abc import Sequence

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_jobs.runtime.engine.key_counts import KeyCounts
from spark_jobs.runtime.engine.records import InputRecord
from spark_jobs.runtime.worker.interleaving import unmarked
from spark_jobs.runtime.worker.key_counts import count_keys
from spark_jobs.runtime.worker.task_input import COLUMNS, Columns, Place, Records, TaskInput

A, B = ("a", 2), ("b", 2)
_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
_KINDS = (pa.string(), pa.int32(), pa.int64(), pa.int64(), pa.binary(), pa.binary(), _HEADERS)


def record(topic: str, offset: int, timestamp: int) -> InputRecord:
    return (topic, 2, offset, timestamp, b"k", b"v", ())


def columns(records: Sequence[InputRecord], at_once: int = 2) -> Columns:
    """Return `records` of one input partition as Spark gives them, `at_once` in an Arrow batch."""
    batches = []
    for first in range(0, len(records), at_once):
        fields = zip(*records[first : first + at_once], strict=True)
        arrays = [pa.array(list(field), kind) for field, kind in zip(fields, _KINDS, strict=True)]
        batches.append(pa.RecordBatch.from_arrays(arrays, names=list(COLUMNS)))
    return Columns(records[0][:2], batches)


BOTH = [record("a", 3, 50), record("b", 7, 40), record("a", 4, 30), record("b", 9, 45)]
ONE = [record("a", 3, 50), record("a", 4, 30), record("a", 8, 45)]


def test_a_position_is_after_the_last_record_and_a_time_the_largest() -> None:
    assert Records(BOTH).reached() == ({A: 5, B: 10}, {A: 50, B: 45})
    assert Records(BOTH[:1]).reached() == ({A: 4}, {A: 50})
    assert Records([]).reached() == ({}, {})


def test_records_below_the_committed_offsets_are_left_out() -> None:
    def after(positions: dict[Place, int]) -> Sequence[InputRecord]:
        return Records(BOTH).after(positions).records()

    assert after({}) == BOTH
    assert after({A: 3, B: 7}) == BOTH
    assert after({A: 3, B: 8}) == [BOTH[0], BOTH[2], BOTH[3]]
    assert after({A: 5, B: 10}) == []
    assert Records([]).after({A: 5}).records() == []


@pytest.mark.parametrize("position", [0, 3, 4, 5, 8, 9])
def test_columns_say_what_records_say(position: int) -> None:
    found: TaskInput = columns(ONE).after({A: position})
    expected = Records(ONE).after({A: position})
    assert len(found) == len(expected)
    assert found.reached() == expected.reached()
    assert found.records() == expected.records()
    assert found.reached() == expected.reached(), "once its columns are gone"
    assert len(found) == len(expected)


def test_single_fields_come_in_the_order_of_records() -> None:
    of = columns(ONE, at_once=2)
    assert list(of.tuples("offset", "time", ["x"] * 2)) == [(3, 50, "x"), (4, 30, "x"), (8, 45, "x")]
    assert of.are_there


_RECORDS = st.lists(
    st.tuples(
        st.integers(-1, 50),
        st.none() | st.sampled_from([b"", b"a", b"b", b"\xff"]),
        st.none() | st.sampled_from([b"", b"v"]),
        st.sampled_from([(), (("h", b"1"),), (("h", None), ("headwater.task", b"3"))]),
    ),
    min_size=1,
    max_size=12,
).map(lambda drawn: [("a", 2, offset, *fields) for offset, fields in enumerate(drawn)])


@given(records=_RECORDS, shares=st.booleans())
def test_counts_per_key_equal_counting_record_by_record(records: list[InputRecord], *, shares: bool) -> None:
    found = count_keys(columns(records, at_once=5), frozenset({"a"} if shares else ()))
    if min(record[3] for record in records) < 0:
        assert found is None
        return
    last: dict[bytes, tuple[bytes, int, int, InputRecord]] = {}
    dropped = 0
    for each in records:
        key, value = each[4], each[5]
        if key is None or value is None:
            dropped += 1
            continue
        _, times, latest, _ = last.pop(key, (key, 0, -1, each))
        last[key] = (key, times + 1, max(latest, each[3]), unmarked(each) if shares else each)
    assert found == KeyCounts(
        by_key=list(last.values()), dropped=dropped, latest=max(record[3] for record in records)
    )
