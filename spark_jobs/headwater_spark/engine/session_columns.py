"""The sessions that records in columns create, extend and delete, computed for many rows at once.

Follows `KStreamSessionWindowAggregate` for keys whose rows stay in the latest session of the key, or begin a
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
    """The latest session of each key in the store, by code; an end of `NONE` = there is none.

    `are_close` are those that a record may connect with the session before: the gap or the grace period was
    shorter when these were written.
    """

    starts: Numbers
    ends: Numbers
    counts: Numbers
    are_close: NDArray[np.bool_]


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

    `is_late` are the rows of keys with a late row, whose sessions are not computed here: None = there are
    none. A row is late if it is before the latest session of its key, if its session is closed, if it may
    connect two sessions of the store, or if it depends on what the cache still has whether a session is
    visible.
    """

    codes: Numbers
    times: Numbers
    starts: Numbers
    ends: Numbers
    counts: Numbers
    before: Numbers
    begins: NDArray[np.bool_]
    previous: Numbers
    is_late: NDArray[np.bool_] | None


@attrs.frozen(eq=False, kw_only=True)
class SessionUpdates:
    """The updates of a flush, in the order in which they are written; `is_deleted` = its session is deleted.

    Sessions that were created and deleted since the last flush are not among them: nothing is written for
    them. `rows` are the rows of the latest updates. The first update belongs to the entry that has left the
    cache if `evicted` is 1, not 0.
    """

    rows: Numbers
    starts: Numbers
    ends: Numbers
    is_deleted: NDArray[np.bool_]
    evicted: int = 0

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
            evicted=self.evicted,
        )


_NO_UPDATES = SessionUpdates(
    rows=np.empty(0, np.int64),
    starts=np.empty(0, np.int64),
    ends=np.empty(0, np.int64),
    is_deleted=np.empty(0, bool),
)


@attrs.frozen
class LeastRecentlyUsed:
    """The entry of a session; `last_use` is the row that has used it last."""

    code: int
    end: int
    last_use: int


def follow_sessions(
    codes: Numbers, times: Numbers, stored: LatestSessions, clock: SessionTimes
) -> SessionRows:
    """Return what each row does. `codes` has a key for each row."""
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
    ends = _largest_so_far(
        is_first, _replace_values(time, firsts[connects], np.maximum(time[firsts], known_end)[connects])
    )
    before = np.concatenate(([NONE], ends[:-1]))
    before[firsts] = np.where(connects, known_end, NONE)
    begins = time - clock.gap > before
    begins[firsts] = ~connects
    heads = np.maximum.accumulate(np.where(begins | is_first, np.arange(len(code)), 0))
    starts = _replace_values(time, firsts[connects], known_start[connects])[heads]
    is_late = (time < starts) | (ends < now - clock.grace - clock.gap)
    is_late |= ~begins & (before < now_before - clock.visible)
    is_late[firsts] |= (time[firsts] < known_start) | stored.are_close[found]
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
        is_late=_with_code(codes, code[is_late]) if is_late.any() else None,
    )


def _with_code(codes: Numbers, wanted: Numbers) -> NDArray[np.bool_]:
    """Return which of the codes are wanted."""
    is_wanted = np.zeros(int(codes.max()) + 1, bool)
    is_wanted[wanted] = True
    found: NDArray[np.bool_] = is_wanted[codes]
    return found


@attrs.frozen(eq=False)
class UnflushedRows:
    """The rows since the last flush, without rows of keys with late rows; `order` is by key, then by row."""

    _rows: SessionRows
    _order: Numbers
    _is_first: NDArray[np.bool_]

    @classmethod
    def between(cls, rows: SessionRows, begin: int, end: int) -> "UnflushedRows":
        """Return the rows from `begin` to before `end`; the last flush was at `begin`."""
        order = begin + np.argsort(rows.codes[begin:end], kind="stable")
        if rows.is_late is not None:
            order = order[~rows.is_late[order]]
        code = rows.codes[order]
        is_first = np.ones(len(code), bool)
        np.not_equal(code[1:], code[:-1], out=is_first[1:])
        return cls(rows, order, is_first)

    def least_recently_used(self, gap: int) -> LeastRecentlyUsed | None:
        """Return the entry that was not used for the longest time; None = there are no rows.

        It is the first entry of its key, in the order of ends: a row uses all entries of its key that end at
        most the gap before it.
        """
        if not len(self._order):
            return None
        rows, order = self._rows, self._order
        firsts = np.flatnonzero(self._is_first)
        first_rows = order[firsts]
        first_ends = np.where(rows.begins[first_rows], rows.ends[first_rows], rows.before[first_rows])
        key = np.cumsum(self._is_first) - 1
        uses = rows.times[order] - gap <= first_ends[key]
        last_uses = np.maximum.reduceat(np.where(uses, order, NONE), firsts)
        oldest = int(np.argmin(last_uses))
        return LeastRecentlyUsed(
            int(rows.codes[first_rows[oldest]]), int(first_ends[oldest]), int(last_uses[oldest])
        )

    def updates(self, evicted: LeastRecentlyUsed | None) -> SessionUpdates:
        """Return what a flush writes. `evicted` has left the cache: it is written first."""
        if not len(self._order):
            return _NO_UPDATES
        rows, order = self._rows, self._order
        ends, begins = rows.ends[order], rows.begins[order]
        heads = np.flatnonzero(self._is_first | begins)
        lasts = np.append(heads[1:], len(order)) - 1
        session = np.repeat(np.arange(len(heads)), np.diff(heads, append=len(order)))
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
        if evicted is None:
            return updates.take(in_order)
        is_evicted = (rows.codes[updates.rows] == evicted.code) & (updates.ends == evicted.end)
        is_evicted = is_evicted[in_order]
        first = updates.take(np.concatenate((in_order[is_evicted], in_order[~is_evicted])))
        return attrs.evolve(first, evicted=int(is_evicted.sum()))


def _largest_so_far(is_first: NDArray[np.bool_], times: Numbers) -> Numbers:
    """Return the largest time up to each row, of the same key."""
    key = np.cumsum(is_first) - 1
    smallest, largest = int(times.min()), int(times.max())
    if (largest - smallest + 1) * (int(key[-1]) + 1) > _MOST:
        different, numbers = np.unique(times, return_inverse=True)
        by_number: Numbers = different[_largest_so_far(is_first, numbers)]
        return by_number
    offsets: Numbers = key * (largest - smallest + 1) - smallest
    so_far: Numbers = np.maximum.accumulate(times + offsets) - offsets
    return so_far


def _replace_values(column: Numbers, at: Numbers, values: Numbers) -> Numbers:
    changed = column.copy()
    changed[at] = values
    return changed


def _in_order_of_rows(column: NDArray[_T], order: Numbers) -> NDArray[_T]:
    rows = np.empty_like(column)
    rows[order] = column
    return rows
