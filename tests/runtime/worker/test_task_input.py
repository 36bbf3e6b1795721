"""A task's part of a batch: columns and records give the same; rows are split by task."""

import pickle
from collections.abc import Sequence

import attrs
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headwater_spark.engine.key_counts import KeyCounts
from headwater_spark.engine.records import InputRecord, TopicPartition
from headwater_spark.engine.stores.record_cache import header_bytes
from headwater_spark.worker.task_input import (
    COLUMNS,
    ColumnInput,
    PartitionedInput,
    RecordInput,
    TaskInput,
    count_keys,
    input_sizes,
)
from headwater_spark.worker.task_rows import split_by_task
from tests.runtime.partition_columns import column_input

A, B = ("a", 2), ("b", 2)
columns = column_input


def record(topic: str, offset: int, timestamp: int) -> InputRecord:
    return (topic, 2, offset, timestamp, b"k", b"v", ())


BOTH = [record("a", 3, 50), record("b", 7, 40), record("a", 4, 30), record("b", 9, 45)]
ONE = [record("a", 3, 50), record("a", 4, 30), record("a", 8, 45)]


def test_progress_is_the_next_offset_and_the_largest_timestamp() -> None:
    assert RecordInput(BOTH).progress() == ({A: 5, B: 10}, {A: 50, B: 45})
    assert RecordInput(BOTH[:1]).progress() == ({A: 4}, {A: 50})
    assert RecordInput([]).progress() == ({}, {})


def test_records_below_the_committed_offsets_are_skipped() -> None:
    def starting_at(offsets: dict[TopicPartition, int]) -> Sequence[InputRecord]:
        return RecordInput(BOTH).starting_at(offsets).records()

    assert starting_at({}) == BOTH
    assert starting_at({A: 3, B: 7}) == BOTH
    assert starting_at({A: 3, B: 8}) == [BOTH[0], BOTH[2], BOTH[3]]
    assert starting_at({A: 5, B: 10}) == []
    first = [record("a", 0, 50), record("b", 0, 40), record("b", 1, 40)]
    assert RecordInput(first).starting_at({B: 1}).records() == [first[0], first[2]]
    assert RecordInput([]).starting_at({A: 5}).records() == []
    unchanged = RecordInput(BOTH)
    assert unchanged.starting_at({A: 3, B: 7}) is unchanged
    assert RecordInput(first[:1]).starting_at({}).records() == first[:1]


def test_columns_are_kept_if_no_record_is_skipped() -> None:
    for offsets in ({}, {A: 0}, {B: 9}):
        input_ = columns([record("a", 0, 50), record("a", 1, 30)])
        assert input_.starting_at(offsets) is input_
        assert input_.has_columns
    input_ = columns(ONE)
    assert input_.starting_at({A: 3}) is input_
    assert input_.has_columns
    input_.records()
    assert input_.starting_at({A: 3}).records() == ONE


@pytest.mark.parametrize("at_once", [1, 2, 3])
def test_columns_stay_columns_without_the_records_that_are_skipped(at_once: int) -> None:
    input_ = columns(ONE, at_once)
    found = input_.starting_at({A: 4})
    assert isinstance(found, ColumnInput)
    assert found.has_columns
    assert found.records() == ONE[1:]
    assert len(input_) == len(ONE)
    assert not columns(ONE, at_once).starting_at({A: 9})
    of_b = [record("b", 7, 40), record("b", 9, 45)]
    both = PartitionedInput([columns(ONE, at_once), columns(of_b, at_once)])
    assert isinstance(both.starting_at({A: 4}), PartitionedInput)
    assert both.starting_at({A: 4}).records() == ONE[1:] + of_b
    assert both.starting_at({A: 9, B: 8}).records() == of_b[1:]
    assert not both.starting_at({A: 9, B: 10})


def test_each_partition_of_a_topic_has_its_own_progress() -> None:
    """A processor may have several partitions."""
    records: list[InputRecord] = [("a", 0, 7, 40, b"k", b"v", ()), ("a", 2, 3, 50, b"k", b"v", ())]
    input_ = RecordInput(records)
    assert input_.progress() == ({("a", 0): 8, ("a", 2): 4}, {("a", 0): 40, ("a", 2): 50})
    assert input_.starting_at({("a", 0): 8}).records() == records[1:]
    assert input_.starting_at({("a", 2): 3}).records() == records


@pytest.mark.parametrize("at_once", [1, 2, 3])
@pytest.mark.parametrize("position", [0, 3, 4, 5, 8, 9])
def test_columns_and_records_give_the_same(position: int, at_once: int) -> None:
    found: TaskInput = columns(ONE, at_once).starting_at({A: position})
    expected = RecordInput(ONE).starting_at({A: position})
    assert len(found) == len(expected)
    assert found.progress() == expected.progress()
    assert found.records() == expected.records()
    assert found.progress() == expected.progress(), "after its columns are released"
    assert len(found) == len(expected)


@pytest.mark.parametrize("are_converted", [False, True])
def test_columns_and_their_records_can_be_sent_to_another_process(*, are_converted: bool) -> None:
    sent = columns(ONE)
    if are_converted:
        sent.records()
    received = pickle.loads(pickle.dumps(sent))  # noqa: S301 - own data
    assert isinstance(received, RecordInput if are_converted else ColumnInput)
    assert received.progress() == columns(ONE).progress()
    assert received.records() == ONE


@pytest.mark.parametrize("are_converted", [False, True])
def test_columns_of_several_partitions_can_be_processed_again(*, are_converted: bool) -> None:
    """A task whose first attempt has failed gets the same input again, or another process does."""
    of_a, of_b = BOTH[::2], BOTH[1::2]
    input_ = PartitionedInput([columns(of_a), columns(of_b)])
    if are_converted:
        input_.partition_columns()
    sent = pickle.loads(pickle.dumps(input_))  # noqa: S301 - own data
    assert isinstance(sent, RecordInput if are_converted else PartitionedInput)
    for again in (input_, sent):
        assert len(again) == len(BOTH)
        assert again.starting_at({A: 3, B: 7}) is again
        assert again.progress() == ({A: 5, B: 10}, {A: 50, B: 45})
        assert again.starting_at({A: 4, B: 8}).records() == [of_a[1], of_b[1]]
        assert again.records() == of_a + of_b


def test_output_columns_are_in_the_order_of_the_records() -> None:
    of = columns(ONE, at_once=2)
    rows = [row for part in of.columns() for row in zip(*part, strict=True)]
    assert rows == [(key, value, time, headers) for _, _, _, time, key, value, headers in ONE]
    assert of.has_columns


_RECORDS = st.lists(
    st.tuples(
        st.integers(-1, 50),
        st.none() | st.sampled_from([b"", b"a", b"b", b"\xff"]),
        st.none() | st.sampled_from([b"", b"v"]),
        st.sampled_from([(), (("h", b"1"),), (("h", None), ("other", b"3"))]),
    ),
    min_size=1,
    max_size=12,
).map(lambda drawn: [("a", 2, offset, *fields) for offset, fields in enumerate(drawn)])


@example(records=ONE)  # no key or value is null
@given(records=_RECORDS)
def test_counts_per_key_equal_counting_record_by_record(records: list[InputRecord]) -> None:
    found = count_keys(columns(records, at_once=5))
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
        last[key] = (key, times + 1, max(latest, each[3]), each)
    assert found is not None
    assert found.header_bytes >= sum(header_bytes(record[6]) for record in records)
    assert attrs.evolve(found, header_bytes=0) == KeyCounts(
        by_key=list(last.values()), dropped=dropped, latest=max(record[3] for record in records)
    )


@pytest.mark.parametrize(("records_per_key", "are_counted"), [(1, False), (2, True), (10, True)])
def test_a_large_batch_is_counted_if_its_keys_repeat(records_per_key: int, *, are_counted: bool) -> None:
    """Unique keys would be grouped for nothing."""
    records: list[InputRecord] = [
        ("a", 2, at, 5, b"%d" % (at // records_per_key), b"v", ()) for at in range(2_000)
    ]
    found = count_keys(columns(records))
    assert (found is not None) is are_counted
    assert found is None or len(found.by_key) == 2_000 / records_per_key


def batch(*rows: tuple[object, ...]) -> pa.RecordBatch:
    kinds = (pa.string(), pa.int32(), pa.int64(), pa.int64(), pa.binary(), pa.binary())
    header = pa.struct([("key", pa.string()), ("value", pa.binary())])
    columns = zip(*rows, strict=True)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(list(column), kind)
            for column, kind in zip(columns, (*kinds, pa.list_(header)), strict=True)
        ],
        names=list(COLUMNS),
    )


def test_rows_are_converted_to_records() -> None:
    rows = batch(
        ("in", 1, 5, 99, b"k", None, [{"key": "h", "value": b"x"}, {"key": "h", "value": None}]),
        ("in", 1, 6, 98, None, b"v", None),
        ("in", 1, 7, 97, b"k", b"v", []),
    )
    (partition, task), *more = split_by_task([rows], None, shuffled=False).items()
    assert not more
    assert partition == 1
    assert task.input.records() == [
        ("in", 1, 5, 99, b"k", None, (("h", b"x"), ("h", None))),
        ("in", 1, 6, 98, None, b"v", ()),
        ("in", 1, 7, 97, b"k", b"v", ()),
    ]


def test_rows_in_order_are_split_by_partition() -> None:
    """A batch of Spark's can end in the middle of a partition."""

    def row(partition: int, offset: int) -> tuple[object, ...]:
        return ("in", partition, offset, 99, b"k", b"v", None)

    batches = [batch(row(1, 5), row(1, 6)), batch(row(1, 7), row(2, 3)), batch(row(2, 4)), batch(row(0, 1))]
    tasks = split_by_task([batches[0].slice(0, 0), *batches], None, shuffled=False)
    found = {
        partition: (task.input, [record[1:3] for record in task.input.records()])
        for partition, task in tasks.items()
    }
    for partition, offsets in {1: (5, 6, 7), 2: (3, 4), 0: (1,)}.items():
        input_, records = found.pop(partition)
        assert isinstance(input_, ColumnInput)
        assert input_.topic_partition == ("in", partition)
        assert records == [(partition, offset) for offset in offsets]
    assert not found


def test_shuffled_rows_are_sorted_and_ticks_go_to_their_tasks() -> None:
    rows = batch(
        ("b", 0, 1, 1, b"k", b"v", []),
        ("a", 0, 2, 1, b"k", b"v", []),
        (None, 2, None, None, None, None, None),
        ("a", 0, 1, 1, b"k", b"v", None),
    )
    tasks = split_by_task([rows], None, shuffled=True)
    assert [record[:3] for record in tasks[0].input.records()] == [("a", 0, 1), ("a", 0, 2), ("b", 0, 1)]
    assert {record[6] for record in tasks[0].input.records()} == {()}
    assert not tasks[0].tick
    assert tasks[2].tick
    assert tasks[2].input.records() == []


def test_shuffled_rows_of_several_partitions_are_the_input_of_one_processor() -> None:
    rows = batch(
        ("a", 2, 1, 1, b"k", b"v", []),
        ("a", 1, 4, 1, b"k", b"v", []),
        ("a", 0, 9, 1, b"k", b"v", []),
        (None, 0, None, None, None, None, None),
        ("a", 2, 0, 1, b"k", b"v", []),
    )
    tasks = split_by_task([rows], None, lambda partition: partition % 2, shuffled=True)
    assert [record[1:3] for record in tasks[0].input.records()] == [(0, 9), (2, 0), (2, 1)]
    assert [record[1:3] for record in tasks[1].input.records()] == [(1, 4)]
    assert (tasks[0].tick, tasks[1].tick) == (True, False)


@pytest.mark.parametrize("shuffled", [False, True])
def test_rows_need_no_column_for_a_single_topic(*, shuffled: bool) -> None:
    rows = batch(("in", 1, 5, 99, b"k", b"v", []), ("in", 0, 6, 98, b"k", b"v", []))
    found, expected = (
        {
            number: task.input.records()
            for number, task in split_by_task([each], topic, shuffled=shuffled).items()
        }
        for each, topic in [(rows.drop_columns(["topic"]), "in"), (rows, None)]
    )
    assert found == expected
    assert found[1] == [("in", 1, 5, 99, b"k", b"v", ())]


def test_the_sizes_of_columns_are_known_until_they_are_converted() -> None:
    parts = [
        columns([(topic, 0, offset, 1_000, b"key", bytes(size), ()) for offset in range(number)])
        for topic, number, size in (("large", 2, 50_000), ("small", 3, 10))
    ]
    large, small = input_sizes(PartitionedInput(parts))
    assert (large[:2], small[:2]) == (("large", 2), ("small", 3))
    assert 100_006 <= large[2] < 101_000
    assert 39 <= small[2] < 1_000
    parts[0].records()
    assert [topic for topic, _, _ in input_sizes(PartitionedInput(parts))] == ["small"]
    assert not list(input_sizes(RecordInput([])))
