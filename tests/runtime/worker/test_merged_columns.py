"""Columns of several writers are merged in the order of their records."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater_spark.engine.columns import Columns, OutputColumns, TopicColumns
from headwater_spark.engine.records import Headers, InputRecord, OutputRecord
from headwater_spark.worker import merged_columns as worker_columns
from headwater_spark.worker.interleaving import interleaved, with_task_header
from headwater_spark.worker.merged_columns import merged_columns
from headwater_spark.worker.partition_input import PartitionedInput
from headwater_spark.worker.task_input import ColumnInput, RecordInput
from tests.runtime.worker.test_task_input import columns

SHARED = frozenset({"shared"})
_NULLABLE = st.none() | st.binary(max_size=2)
_OWN: st.SearchStrategy[Headers] = st.sampled_from(
    [(), (), (("a", b"1"),), (("a", None), ("headwater.task", b"2"))]
)
_Row = tuple[int, int, bytes | None, bytes | None, Headers]
_RECORDS = st.lists(
    st.tuples(st.integers(0, 12), st.integers(-3, 20), _NULLABLE, _NULLABLE, _OWN), min_size=1
)


def _written(rows: list[_Row], partition: int = 0) -> list[InputRecord]:
    """Return records of (writer, time, key, value, own headers) as their reader gets them."""
    return [
        ("shared", partition, offset, time, key, value, (*own, ("headwater.task", b"%d" % writer)))
        for offset, (writer, time, key, value, own) in enumerate(rows)
    ]


def _merged(records: list[InputRecord], at_once: int) -> ColumnInput | None:
    found = merged_columns(columns(records, at_once), SHARED)
    assert found is None or isinstance(found, ColumnInput)
    return found


@given(_RECORDS, st.integers(1, 5))
def test_columns_are_merged_like_records(rows: list[_Row], at_once: int) -> None:
    records = _written(rows)
    merged = _merged(records, at_once)
    assert merged is not None
    assert merged.has_columns
    assert merged.records() == interleaved(records, SHARED)


@given(_RECORDS, _RECORDS)
def test_each_shared_partition_is_merged(
    rows: list[_Row],
    others: list[_Row],
) -> None:
    parts = [_written(rows), _written(others, 1)]
    table: list[InputRecord] = [("table", 0, at, 9 - at, b"k", b"v", ()) for at in range(3)]
    merged = merged_columns(PartitionedInput([*map(columns, parts), columns(table)]), SHARED)
    assert isinstance(merged, PartitionedInput)
    found = [part.records() for part in merged.parts]
    assert found == [*(interleaved(part, SHARED) for part in parts), table]


def test_columns_are_kept_for_a_later_attempt() -> None:
    records = _written([(1, 5, b"k", b"v", ()), (2, 3, b"k", b"v", ())])
    input_ = columns(records)
    assert merged_columns(input_, SHARED) is not None
    assert input_.has_columns
    assert input_.records() == records


@pytest.mark.parametrize(
    "headers",
    [
        (),
        (("trace", b"1"),),
        (("headwater.task", None),),
        (("headwater.task", b"1"), ("trace", b"1")),
    ],
)
def test_records_that_do_not_name_their_writer_are_merged_one_by_one(headers: Headers) -> None:
    first, last = _written([(1, 5, b"k", b"v", ()), (2, 3, b"k", b"v", ())])
    assert _merged([first, (*last[:6], headers)], 2) is None
    if headers:
        assert _merged([first, (*last[:6], ()), (*last[:6], (*headers, *headers))], 3) is None


def test_only_columns_of_shared_topics_are_merged() -> None:
    input_ = columns(_written([(1, 5, b"k", b"v", ())]))
    assert merged_columns(input_, frozenset({"other"})) is input_
    assert merged_columns(RecordInput(_written([(1, 5, b"k", b"v", ())])), SHARED) is None
    input_.records()
    assert merged_columns(input_, SHARED) is None
    assert merged_columns(PartitionedInput([input_]), SHARED) is None


def test_large_columns_are_merged_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    input_ = columns(_written([(1, 5, b"k", b"v", ()), (2, 3, b"k", b"v", ())]))
    monkeypatch.setattr(worker_columns, "_MOST_BYTES", input_.size)
    assert merged_columns(input_, SHARED) is not None
    monkeypatch.setattr(worker_columns, "_MOST_BYTES", input_.size - 1)
    assert merged_columns(input_, SHARED) is None


def test_large_records_are_merged_one_by_one() -> None:
    """Columns need up to twice the memory of single records, and no less time."""

    def written(size: int) -> list[InputRecord]:
        return _written([(1, 5, b"k", b"v" * size, ()), (2, 3, b"k", b"v" * size, ())])

    assert _merged(written(500), 2) is not None
    assert _merged(written(1_000), 2) is None
    small, large = columns(written(1)), columns(_written([(1, 5, b"k", b"v" * 1_100, ())], 1))
    assert merged_columns(PartitionedInput([small]), SHARED) is not None
    assert merged_columns(PartitionedInput([small, large]), SHARED) is None


def test_columns_are_not_in_memory_more_than_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """The batches of the input are joined, and merged records can be released in parts."""
    monkeypatch.setattr(worker_columns, "_ROWS_AT_ONCE", 2)
    records = _written([(at % 2, at, b"k", b"v", ()) for at in range(5)])
    input_ = columns(records, 1)
    merged = merged_columns(input_, SHARED)
    assert isinstance(merged, ColumnInput)
    assert [batch.num_rows for batch in merged.batches] == [2, 2, 1]
    assert [batch.num_rows for batch in input_.batches] == [5]
    assert input_.records() == records


def test_output_columns_get_the_header_of_the_task() -> None:
    headers: list[Headers] = [(), (("trace", b"1"),)]
    parts: list[Columns] = [([b"a", b"b"], [b"1", None], [3, 4], headers), ([b"c"], [b"3"], [5], [()])]
    rest: list[OutputRecord] = [("shared", 1, b"d", b"4", 6, ()), ("own", 1, b"d", b"4", 6, ())]
    outputs = OutputColumns([TopicColumns("shared", parts), TopicColumns("own", parts)], rest)
    found = with_task_header(outputs, SHARED, 7)
    assert isinstance(found, OutputColumns)
    assert list(found) == with_task_header(list(outputs), SHARED, 7)
    assert list(found) == list(found)
