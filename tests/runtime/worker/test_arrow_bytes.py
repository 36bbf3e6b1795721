"""A column of Arrow arrays gives the same as a list, whichever of its forms it has by then."""

import gc

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater_spark.engine.key_counts import NULL_KEY
from headwater_spark.engine.partition_columns import MergedBytes, NumberedBytes, number_bytes
from headwater_spark.worker.arrow_bytes import ArrowBytes

_VALUES = st.lists(st.none() | st.sampled_from([b"", b"a", b"bb", b"\xff", b"\0", b"a\0"]), max_size=9)
_KINDS = (pa.binary(), pa.large_binary())
_FORMS = ("arrays", "numbers", "list", "both")


def _column(
    values: list[bytes | None], form: str, at_once: int = 2, kind: pa.DataType = _KINDS[0]
) -> ArrowBytes:
    arrays = [pa.array(values[first : first + at_once], kind) for first in range(0, len(values), at_once)]
    column = ArrowBytes(arrays)
    if form in ("list", "both"):
        column.to_list()
    if form in ("numbers", "both"):
        column.number_values()
    return column


@pytest.mark.parametrize("kind", _KINDS, ids=str)
@pytest.mark.parametrize("form", _FORMS)
@given(values=_VALUES, data=st.data())
def test_a_column_gives_the_values_of_a_list(
    form: str, kind: pa.DataType, values: list[bytes | None], data: st.DataObject
) -> None:
    positions = sorted(data.draw(st.sets(st.integers(0, len(values) - 1)) if values else st.just(set[int]())))
    column = _column(values, form, kind=kind)
    assert len(column) == len(values)
    assert list(column.take(np.array(positions, np.int64))) == [values[at] for at in positions]
    assert [column[at] for at in positions] == [values[at] for at in positions]
    assert column.lengths().tolist() == [len(value or b"") for value in values]
    number = data.draw(st.integers(0, len(values)))
    assert list(column.first_rows(number).to_list()) == values[:number]
    numbered = column.number_values()
    assert column.lengths().tolist() == [len(value or b"") for value in values]
    assert numbered.to_list() == values
    assert sorted(numbered.different) == sorted({value for value in values if value is not None})
    assert (numbered.codes == NULL_KEY).sum() == values.count(None)
    last = {value: at for at, value in enumerate(values) if value is not None}
    assert numbered.last_positions().tolist() == sorted(last.values())
    assert list(column.to_list()) == values


@given(values=_VALUES)
def test_a_list_is_numbered_as_arrays_are(values: list[bytes | None]) -> None:
    numbered = number_bytes(values)
    assert numbered.to_list() == values
    assert len(set(numbered.different)) == len(numbered.different)


@given(parts=st.lists(_VALUES, min_size=2, max_size=3), data=st.data())
def test_columns_are_merged_in_an_order(parts: list[list[bytes | None]], data: st.DataObject) -> None:
    every = [value for part in parts for value in part]
    order = data.draw(st.permutations(range(len(every))))
    merged = MergedBytes([_column(part, "arrays") for part in parts], np.array(order, np.int64))
    expected = [every[at] for at in order]
    assert len(merged) == len(expected)
    assert merged.number_values().to_list() == expected
    assert merged.lengths().tolist() == [len(value or b"") for value in expected]
    assert list(merged.to_list()) == expected
    assert list(merged.take(np.arange(len(expected)))) == expected


def test_a_value_of_numbers_is_read_without_the_other_values() -> None:
    """Records are read one by one: with a list of all values for each, a batch would take minutes."""
    column = _column([b"a", b"b", None, b"b"], "numbers")
    with pytest.MonkeyPatch.context() as patch:
        patch.delattr(NumberedBytes, "to_list")
        assert [column[2], column[3], *column.take(np.array([1, 2]))] == [None, b"b", b"b", None]


def test_numbers_release_the_arrays() -> None:
    """A batch is in memory once: what was read of it keeps no Arrow buffer."""
    gc.collect()
    before = pa.total_allocated_bytes()
    column = _column([b"%d" % at for at in range(10_000)], "arrays", at_once=1_000)
    assert pa.total_allocated_bytes() > before
    column.number_values()
    assert pa.total_allocated_bytes() == before
