"""Changes are split into requests that a controller accepts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.kafka.pending_requests import MOST_RECORDS, split_batches


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([], []),
        ([1, 2], [[1, 2]]),
        ([MOST_RECORDS - 1, 1, 1], [[MOST_RECORDS - 1, 1], [1]]),
        ([MOST_RECORDS, 1], [[MOST_RECORDS], [1]]),
        # A single topic cannot be split: the controller answers for it.
        ([1, 3 * MOST_RECORDS, 1], [[1], [3 * MOST_RECORDS], [1]]),
        ([3 * MOST_RECORDS], [[3 * MOST_RECORDS]]),
    ],
)
def test_batches_have_limited_records(records: list[int], expected: list[list[int]]) -> None:
    assert [list(batch) for batch in split_batches(records, int)] == expected


@given(st.lists(st.integers(1, 3 * MOST_RECORDS), max_size=30))
def test_batches_have_all_items_in_their_order(records: list[int]) -> None:
    found = list(split_batches(records, int))
    assert [item for batch in found for item in batch] == records
    assert all(len(batch) == 1 or sum(batch) <= MOST_RECORDS for batch in found)
