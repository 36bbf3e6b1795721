"""The windows that records in columns touch, computed for many rows at once.

Workers import this module when they count in windows, not before they are forked: numpy starts threads.
"""

import attrs
import numpy as np
from numpy.typing import NDArray

from headwater_spark.engine.key_counts import TimeWindows

Numbers = NDArray[np.int64]
_MOST = 2**62


@attrs.frozen(eq=False, kw_only=True)
class OpenWindows:
    """The windows of each row that are not closed when it is processed: from `first` to `last`.

    There is none if `first` is larger. `closed` is the number of closed ones, of all rows. `observed` is the
    largest time up to each row of rows with a key, `stream_times` of all rows.
    """

    first: Numbers
    last: Numbers
    observed: Numbers
    stream_times: Numbers
    closed: int


@attrs.frozen(eq=False, kw_only=True)
class TouchedWindows:
    """Keys and windows that some rows touch: how often, the largest time, the first and the last row.

    They are in the order of their last rows; windows of the same row in the order of time.
    """

    codes: Numbers
    windows: Numbers
    counts: Numbers
    latest: Numbers
    first_rows: Numbers
    last_rows: Numbers


def open_windows(
    times: Numbers, has_key: NDArray[np.bool_], observed: int, shape: TimeWindows
) -> OpenWindows:
    """Return the open windows of each row; rows without a key have none, and do not advance the time."""
    now = np.maximum.accumulate(np.where(has_key, times, observed))
    np.maximum(now, observed, out=now)
    last = times // shape.advance
    first = np.maximum(times - shape.size + shape.advance, 0) // shape.advance
    last_closed = (now - shape.grace - shape.size) // shape.advance
    closed = np.clip(last_closed - first + 1, 0, last - first + 1)
    first = np.where(has_key, first + closed, last + 1)
    return OpenWindows(
        first=first,
        last=last,
        observed=now,
        stream_times=np.maximum.accumulate(times),
        closed=int(closed[has_key].sum()),
    )


def touch_windows(
    codes: Numbers, windows: OpenWindows, times: Numbers, begin: int, end: int
) -> TouchedWindows:
    """Return what the rows from `begin` to before `end` touch."""
    rows = begin + np.flatnonzero(windows.first[begin:end] <= windows.last[begin:end])
    first, last, codes, times = windows.first[rows], windows.last[rows], codes[rows], times[rows]
    more = last - first
    order, starts = _group_rows(codes, last, more)
    heads = order[starts]
    counts = np.diff(starts, append=len(order))
    latest = _reduce_groups(np.maximum, times[order], starts)
    first_rows, last_rows = rows[heads], rows[order[starts + counts - 1]]
    codes, found = codes[heads], first[heads]
    if more.any():
        repeats = more[heads] + 1
        group = np.repeat(np.arange(len(heads)), repeats)
        found = found[group] + np.arange(len(group)) - np.repeat(np.cumsum(repeats) - repeats, repeats)
        order, starts = _group_rows(codes[group], found)
        group, found = group[order], found[order][starts]
        codes = codes[group[starts]]
        counts = _reduce_groups(np.add, counts[group], starts)
        latest = _reduce_groups(np.maximum, latest[group], starts)
        first_rows = _reduce_groups(np.minimum, first_rows[group], starts)
        last_rows = _reduce_groups(np.maximum, last_rows[group], starts)
    order = np.lexsort((found, last_rows))
    return TouchedWindows(
        codes=codes[order],
        windows=found[order],
        counts=counts[order],
        latest=latest[order],
        first_rows=first_rows[order],
        last_rows=last_rows[order],
    )


def _group_rows(*columns: Numbers) -> tuple[Numbers, Numbers]:
    """Return the rows sorted by the columns, equal ones in their order, and where each group starts."""
    combined = columns[0]
    for column in columns[1:]:
        combined = _combine_codes(combined, column)
    order = np.argsort(combined, kind="stable")
    ordered = combined[order]
    is_start = np.ones(len(order), bool)
    np.not_equal(ordered[1:], ordered[:-1], out=is_start[1:])
    return order, np.flatnonzero(is_start)


def _combine_codes(left: Numbers, right: Numbers) -> Numbers:
    """Return one number for each pair of numbers."""
    if not len(left):
        return left
    left, right = left - left.min(), right - right.min()
    if (int(left.max()) + 1) * (int(right.max()) + 1) > _MOST:
        left, right = (np.unique(each, return_inverse=True)[1] for each in (left, right))
    combined: Numbers = left * (int(right.max()) + 1) + right
    return combined


def _reduce_groups(function: np.ufunc, values: Numbers, starts: Numbers) -> Numbers:
    """Return the function of each group; `reduceat` accepts no empty array."""
    if not len(starts):
        return values[:0]
    reduced: Numbers = function.reduceat(values, starts)
    return reduced
