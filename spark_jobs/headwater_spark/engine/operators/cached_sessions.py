"""Sessions with a cache of their own: the sessions of a key are found once per batch, then kept in a list.

Which updates leave the cache, and when, is the same as with the store (`stores.record_cache`).
"""

from bisect import bisect_left
from collections.abc import Callable

import attrs

from headwater.model.behaviors import StreamAggregate
from headwater.model.windows import SessionWindow
from headwater_spark.engine.key_counts import CLOSED, NO_KEY
from headwater_spark.engine.operators.aggregation import functions_of
from headwater_spark.engine.operators.interface import OperatorContext, Process
from headwater_spark.engine.records import Context, Headers, Value
from headwater_spark.engine.stores.cached import Cached
from headwater_spark.engine.stores.record_cache import ENTRY_BYTES, header_bytes
from headwater_spark.engine.stores.segments import TIME
from headwater_spark.engine.stores.windows import SessionBytes


@attrs.define(eq=False)
class _Session:
    """An entry of the store, or of the cache; `value` None = deleted, but perhaps still in the cache."""

    entry_key: bytes
    start: int
    end: int
    value: bytes | None


Sessions = tuple[list[int], list[_Session]]
"""The ends of the sessions of a key, and the sessions, by end, then start."""


class _BatchSessions:
    """The sessions of the keys that a batch has searched for.

    Updates of sessions that were never written below the cache need not be compared with what is there.
    """

    def __init__(self, store: SessionBytes, cached: Cached) -> None:
        self._store = store
        self._overlay = store.below.lowest
        self._batch = self._overlay.batch
        self._of_keys: dict[bytes, Sessions] = {}
        self._unwritten: set[bytes] = set()
        put_below, read_old, unwritten = cached.put_below, cached.read_old, self._unwritten

        def put(entry_key: bytes, value: bytes | None, context: Context) -> None:
            unwritten.discard(entry_key)
            put_below(entry_key, value, context)

        def read(entry_key: bytes) -> bytes | None:
            return None if entry_key in unwritten else read_old(entry_key)

        cached.write_with(put, read)

    def of_key(self, key: bytes) -> Sessions:
        if self._overlay.batch != self._batch:
            self._batch = self._overlay.batch
            self._of_keys.clear()
            self._unwritten.clear()
        known = self._of_keys.get(key)
        if known is None:
            found = [_session(*entry) for entry in self._store.stored_entries(key)]
            known = self._of_keys[key] = ([session.end for session in found], found)
        return known

    def put(self, sessions: Sessions, key: bytes, start: int, end: int, value: bytes | None) -> bytes:
        """Set the value of a session; return the key of its entry."""
        ends, found = sessions
        at = len(ends)
        if ends and end <= ends[-1]:
            at = bisect_left(ends, end)
            while at < len(ends) and ends[at] == end and found[at].start < start:
                at += 1
            if at < len(ends) and ends[at] == end and found[at].start == start:
                found[at].value = value
                return found[at].entry_key
        entry_key = self._store.entry_key(key, start, end)
        ends.insert(at, end)
        found.insert(at, _Session(entry_key, start, end, value))
        self._unwritten.add(entry_key)
        return entry_key


def _session(entry_key: bytes, value: bytes) -> _Session:
    end, start = (int.from_bytes(entry_key[at : at + TIME or None], "big") for at in (-2 * TIME, -TIME))
    return _Session(entry_key, start, end, value)


def cached_sessions(
    behavior: StreamAggregate, window: SessionWindow, context: OperatorContext, general: Process
) -> Process:
    """Return the function of an aggregation with sessions; `general` is used if other stores share the cache."""
    gap, grace = window.gap_ms, window.grace_ms
    functions = functions_of(behavior.aggregation, context)
    init, add, merge = functions.init, functions.add, functions.merge
    store = context.store(behavior.store, SessionBytes)
    if not isinstance(store.below, Cached):
        raise TypeError(f"{behavior.store} has no cache")
    cached = store.below
    cache, entries, written, stores = cached.cache, cached.entries, cached.overlay.written, cached.cache.stores
    sizes, updates, put_entry, touch = entries.sizes, entries.updates, entries.put, entries.sizes.move_to_end
    sessions_of_batch = _BatchSessions(store, cached)
    of_key, put_session = sessions_of_batch.of_key, sessions_of_batch.put
    serialize_key, deserialize, serialize = (
        store.key_serde.serialize,
        store.value_serde.deserialize,
        store.value_serde.serialize,
    )
    current, stored_until, visible_ms = context.task.current, store.observed, store.visible_ms
    observed, name, drop = context.clock(), context.node.name, context.task.drop

    def process(key: Value, value: Value, timestamp: int, headers: Headers) -> None:
        if len(stores) != 1:
            general(key, value, timestamp, headers)
            return
        if key is None:
            drop(name, NO_KEY)
            return
        if cache.limit >= 0:
            cache.settle(cache.bound + 1)
        if timestamp > observed.now:
            observed.now = timestamp
        key_bytes = serialize_key(key)
        sessions = of_key(key_bytes)
        start = end = timestamp
        total, connected = init(), []
        oldest, latest_start = stored_until.now - visible_ms, timestamp + gap
        for session in sessions[1][bisect_left(sessions[0], timestamp - gap) :]:
            entry_key, part = session.entry_key, session.value
            if entry_key in sizes:
                touch(entry_key)
            elif session.end < oldest:
                continue
            if part is not None and session.start <= latest_start:
                connected.append(session)
                total = merge(key, total, deserialize(part))
                if session.start < start:
                    start = session.start
                if session.end > end:
                    end = session.end
        if end < observed.now - grace - gap:
            drop(name, CLOSED)
            return
        record = current.record
        at = (timestamp, headers, record)
        size = ENTRY_BYTES + len(record[0])
        if headers:
            size += header_bytes(headers)
        if start != timestamp or end != timestamp:
            for session in connected:
                entry_key = session.entry_key
                session.value = written[entry_key] = None
                if entry_key in sizes:  # as in `put_entry`
                    updates.pop(entry_key, None)
                    cache.size -= sizes[entry_key]
                    touch(entry_key)
                updates[entry_key] = at
                sizes[entry_key] = bytes_ = size + len(entry_key)
                cache.size += bytes_
                if cache.size > cache.bound:
                    cache.make_room(entries)
        total = add(key, value, total)
        new = None if total is None else serialize(total)
        entry_key = put_session(sessions, key_bytes, start, end, new)
        written[entry_key] = new
        put_entry(entry_key, size + len(entry_key) + (0 if new is None else len(new)), at)

    return process
