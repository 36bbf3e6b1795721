"""The sessions that records in columns create, extend and delete, computed for many rows at once.

Follows `KStreamSessionWindowAggregate` for rows that stay in the latest session of their key, or begin a
later one. Then a row deletes at most the session that the row of its key before it has put, or the latest
session in the store. And the row writes each entry of the record cache that it reads, unless the entry was
written since the last flush. So entries that were written since then are used later than all others.

Workers import this module when they count sessions, not before they are forked: numpy starts threads.
"""

from typing import TypeVar

import attrs
import numpy as np
from numpy.typing import NDArray

from headwater_spark.engine.window_columns import Numbers

NONE = -1
_MOST = 2**62
_T = TypeVar("_T", bound=np.generic)


@attrs.frozen(eq=False, kw_only=True)
class LatestSessions:
    """The latest session of each key in the store, by code; an end of `NONE` = there is none."""

    starts: Numbers
    ends: Numbers
    counts: Numbers


@attrs.frozen(kw_only=True)
class SessionTimes:
    """Times in milliseconds. `observed` is the largest time of a record, `stored` of a session in the store.

    A session in the store is visible if its end is at most `visible` before `stored`.
    """

    gap: int
    grace: int
    visible: int
    observed: int
    stored: int


@attrs.frozen(eq=False, kw_only=True)
class SessionRows:
    """For each row, the session that it puts: start, end and number of records.

    `before` is the end of the session that it replaces, whose start is the same; `begins` are the rows that
    replace none. `previous` is the row of the same key before it, or `NONE`.
    """

    codes: Numbers
    times: Numbers
    starts: Numbers
    ends: Numbers
    counts: Numbers
    before: Numbers
    begins: NDArray[np.bool_]
    previous: Numbers


@attrs.frozen(eq=False, kw_only=True)
class SessionUpdates:
    """The updates of a flush, in the order in which they are written; `is_deleted` = its session is deleted.

    Sessions that were created and deleted since the last flush are not among them: nothing is written for
    them. `rows` are the rows of the latest updates.
    """

    rows: Numbers
    starts: Numbers
    ends: Numbers
    is_deleted: NDArray[np.bool_]

    def before_put_of(self, row: int, rows: SessionRows) -> "SessionUpdates":
        """Return the updates up to the deletion of the session that `row`, the last one, replaces."""
        is_put = (self.rows == row) & ~self.is_deleted
        if rows.ends[row] == rows.before[row]:
            return attrs.evolve(self, is_deleted=self.is_deleted | is_put)
        return self.take(np.flatnonzero(~is_put))

    def take(self, positions: Numbers) -> "SessionUpdates":
        """Return the updates at these positions, in this order."""
        return SessionUpdates(
            rows=self.rows[positions],
            starts=self.starts[positions],
            ends=self.ends[positions],
            is_deleted=self.is_deleted[positions],
        )


def follow_sessions(
    codes: Numbers, times: Numbers, stored: LatestSessions, clock: SessionTimes
) -> SessionRows | None:
    """Return what each row does. `codes` has a key for each row.

    None = a row is before the latest session of its key, its session is closed, or it depends on what the
    cache still has whether a session is visible.
    """
    order = np.argsort(codes, kind="stable")
    code, time = codes[order], times[order]
    now = np.maximum.accumulate(np.maximum(times, clock.observed))
    now_before = np.concatenate(([max(clock.observed, clock.stored)], np.maximum(now[:-1], clock.stored)))
    now, now_before = now[order], now_before[order]
    is_first = np.ones(len(code), bool)
    np.not_equal(code[1:], code[:-1], out=is_first[1:])
    firsts = np.flatnonzero(is_first)
    found = code[firsts]
    known_start, known_end = stored.starts[found], stored.ends[found]
    connects = (known_end >= max(0, clock.stored - clock.visible)) & (time[firsts] - clock.gap <= known_end)
    if (time[firsts] < known_start).any() or (
        known_end[connects] < now_before[firsts][connects] - clock.visible
    ).any():
        return None
    ends = _largest_so_far(
        is_first, _replace_values(time, firsts[connects], np.maximum(time[firsts], known_end)[connects])
    )
    if ends is None:
        return None
    before = np.concatenate(([NONE], ends[:-1]))
    before[firsts] = np.where(connects, known_end, NONE)
    begins = time - clock.gap > before
    begins[firsts] = ~connects
    heads = np.maximum.accumulate(np.where(begins | is_first, np.arange(len(code)), 0))
    starts = _replace_values(time, firsts[connects], known_start[connects])[heads]
    is_next = ~begins & ~is_first
    if (
        (time < starts).any()
        or (ends < now - clock.grace - clock.gap).any()
        or (before[is_next] < now_before[is_next] - clock.visible).any()
    ):
        return None
    counted = _replace_values(np.zeros_like(time), firsts[connects], stored.counts[found][connects])
    previous = np.concatenate(([NONE], order[:-1]))
    previous[firsts] = NONE
    columns = (starts, ends, np.arange(1, len(code) + 1) - heads + counted[heads], before, previous)
    starts, ends, counts, before, previous = (_in_order_of_rows(column, order) for column in columns)
    return SessionRows(
        codes=codes,
        times=times,
        starts=starts,
        ends=ends,
        counts=counts,
        before=before,
        begins=_in_order_of_rows(begins, order),
        previous=previous,
    )


def session_updates(rows: SessionRows, begin: int, end: int, gap: int, *, evicts: bool) -> SessionUpdates:
    """Return what a flush writes after the rows from `begin` to before `end`; the last flush was at `begin`.

    `evicts`: an entry leaves the full cache, the least recently used one. It is written first.
    """
    order = begin + np.argsort(rows.codes[begin:end], kind="stable")
    code, ends = rows.codes[order], rows.ends[order]
    is_first = np.ones(len(code), bool)
    np.not_equal(code[1:], code[:-1], out=is_first[1:])
    begins = rows.begins[order]
    heads = np.flatnonzero(is_first | begins)
    lasts = np.append(heads[1:], len(code)) - 1
    session = np.repeat(np.arange(len(heads)), np.diff(heads, append=len(code)))
    before = np.where(begins[heads], _MOST, rows.before[order[heads]])
    unchanged = np.add.reduceat((ends <= before[session]).astype(np.int64), heads)
    are_replaced = (unchanged <= lasts - heads) & ~begins[heads]
    deleting = order[(heads + unchanged)[are_replaced]]
    putting = order[lasts]
    updates = SessionUpdates(
        rows=np.concatenate((deleting, putting)),
        starts=np.concatenate((rows.starts[deleting], rows.starts[putting])),
        ends=np.concatenate((before[are_replaced], rows.ends[putting])),
        is_deleted=np.repeat((True, False), (len(deleting), len(putting))),
    )
    in_order = np.lexsort((~updates.is_deleted, updates.rows))
    if evicts:
        in_order = _evicted_first(updates, in_order, _least_recently_used(rows, order, is_first, gap), rows)
    return updates.take(in_order)


def _least_recently_used(
    rows: SessionRows, order: Numbers, is_first: NDArray[np.bool_], gap: int
) -> tuple[int, int]:
    """Return (code, end) of the entry that was not used for the longest time.

    It is the first entry of its key, in the order of ends: a row uses all entries of its key that end at most
    the gap before it.
    """
    firsts = np.flatnonzero(is_first)
    first_rows = order[firsts]
    first_ends = np.where(rows.begins[first_rows], rows.ends[first_rows], rows.before[first_rows])
    key = np.cumsum(is_first) - 1
    uses = rows.times[order] - gap <= first_ends[key]
    last_uses = np.maximum.reduceat(np.where(uses, order, NONE), firsts)
    oldest = int(np.argmin(last_uses))
    return int(rows.codes[first_rows[oldest]]), int(first_ends[oldest])


def _evicted_first(
    updates: SessionUpdates, order: Numbers, evicted: tuple[int, int], rows: SessionRows
) -> Numbers:
    """Return the order of the updates with the evicted one first; it may be none of them."""
    code, end = evicted
    is_evicted = (rows.codes[updates.rows[order]] == code) & (updates.ends[order] == end)
    return np.concatenate((order[is_evicted], order[~is_evicted]))


def _largest_so_far(is_first: NDArray[np.bool_], times: Numbers) -> Numbers | None:
    """Return the largest time up to each row, of the same key; None = the numbers are too large."""
    times = times - (smallest := int(times.min()))
    span = int(times.max()) + 1
    key = np.cumsum(is_first) - 1
    if span * (int(key[-1]) + 1) > _MOST:
        return None
    offsets: Numbers = key * span
    largest: Numbers = np.maximum.accumulate(times + offsets) - offsets + smallest
    return largest


def _replace_values(column: Numbers, at: Numbers, values: Numbers) -> Numbers:
    changed = column.copy()
    changed[at] = values
    return changed


def _in_order_of_rows(column: NDArray[_T], order: Numbers) -> NDArray[_T]:
    rows = np.empty_like(column)
    rows[order] = column
    return rows
