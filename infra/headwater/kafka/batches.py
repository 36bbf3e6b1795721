"""Split changes of topics into requests that a controller accepts."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")
MOST_RECORDS = 5_000
"""Metadata records of a request; the controller refuses more than 10,000 (`MAX_RECORDS_PER_USER_OP`)."""


def batches(items: Sequence[T], records_of: Callable[[T], int]) -> Iterator[Sequence[T]]:
    """Yield `items` in their order, in batches of at most `MOST_RECORDS` records or one item each."""
    start = total = 0
    for index, item in enumerate(items):
        records = records_of(item)
        if index > start and total + records > MOST_RECORDS:
            yield items[start:index]
            start, total = index, 0
        total += records
    if start < len(items):
        yield items[start:]
