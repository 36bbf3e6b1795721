"""Changes are split into requests that a controller accepts."""

import pytest

from infra.observe.batches import MOST_RECORDS, batches


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
    assert [list(batch) for batch in batches(records, int)] == expected
