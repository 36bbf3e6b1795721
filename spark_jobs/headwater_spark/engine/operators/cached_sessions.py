"""Aggregations of sessions with a cache of their own, over the sessions of a batch in lists per key.

A key is searched for in the store once per batch. Reads and updates touch the record cache as they do in the
store (`stores.cached`), so the same updates leave it at the same moments.
"""

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Container

import attrs

from headwater.model.behaviors import StreamAggregate
from headwater.model.windows import SessionWindow
from headwater_spark.engine.key_counts import CLOSED, NO_KEY
from headwater_spark.engine.operators.aggregation import functions_of
from headwater_spark.engine.operators.interface import OperatorContext, Process
from headwater_spark.engine.records import Clock, Context, Headers, Value
from headwater_spark.engine.stores.cached import Cached
from headwater_spark.engine.stores.layers import Put
from headwater_spark.engine.stores.record_cache import ENTRY_BYTES, header_bytes
from headwater_spark.engine.stores.segments import TIME
from headwater_spark.engine.stores.uncounted import KeyRange
from headwater_spark.engine.stores.windows import SessionBytes


def cached_sessions(
    behavior: StreamAggregate, window: SessionWindow, context: OperatorContext, general: Process
) -> Process:
    """Return the function of an aggregation; `general` is called if other stores share the cache."""
    store = context.store(behavior.store, SessionBytes)
    if not isinstance(store.below, Cached):
        raise TypeError(f"{behavior.store} has no cache")
    sessions = BatchSessions(store, store.below, context.clock(), context.task.drop)
    return session_process(behavior, window, context, general, sessions)


def session_process(
    behavior: StreamAggregate,
    window: SessionWindow,
    context: OperatorContext,
    general: Process,
    sessions_of_batch: "SessionsOfKeys",
) -> Process:
    """Return the function that adds a record to the sessions of its key."""
    gap, grace = window.gap_ms, window.grace_ms
    functions = functions_of(behavior.aggregation, context)
    init, add, merge = functions.init, functions.add, functions.merge
    store, stores = sessions_of_batch.store, sessions_of_batch.cached.cache.stores
    of_key, update = sessions_of_batch.of_key, sessions_of_batch.update
    cached_keys, touch_range = sessions_of_batch.cached_keys, sessions_of_batch.touch_range
    serialize_key, serialize = store.key_serde.serialize, store.value_serde.serialize
    deserialize, current = store.value_serde.deserialize, context.task.current
    stored_until, visible_ms = store.observed, store.visible_ms
    observed, name, drop = sessions_of_batch.observed, context.node.name, sessions_of_batch.drop

    def process(key: Value, value: Value, timestamp: int, headers: Headers) -> None:
        if len(stores) != 1:
            general(key, value, timestamp, headers)
            return
        if key is None:
            drop(name, NO_KEY)
            return
        observed.now = max(observed.now, timestamp)
        key_bytes = serialize_key(key)
        known = of_key(key_bytes)
        start = end = timestamp
        total, connected = init(), list[Session]()
        oldest, latest_start = stored_until.now - visible_ms, timestamp + gap
        for session in known.sessions[bisect_left(known.times, timestamp - gap) :]:
            if session.start <= latest_start and (
                session.time >= oldest or session.entry_key in cached_keys()
            ):
                connected.append(session)
                total = merge(key, total, deserialize(session.value))
                start, end = min(start, session.start), max(end, session.time)
        touch_range(known, timestamp - gap)
        if end < observed.now - grace - gap:
            drop(name, CLOSED)
            return
        at = (timestamp, headers, current.record)
        if start != timestamp or end != timestamp:
            for session in connected:
                update(known, key_bytes, session.time, session.start, None, at)
        total = add(key, value, total)
        update(known, key_bytes, end, start, None if total is None else serialize(total), at)

    return process


@attrs.define(eq=False)
class Session:
    """A session in the store; `time` is its end."""

    entry_key: bytes
    time: int
    start: int
    value: bytes


@attrs.frozen(eq=False)
class KeySessions:
    """The sessions of a key, by time, then start.

    `times` are the times of `sessions`. `all_times` and `all_keys` belong to all entries that were there in
    this batch, as deleted ones remain in the cache.
    """

    times: list[int]
    sessions: list[Session]
    all_times: list[int]
    all_keys: list[bytes]


class SessionsOfKeys(ABC):
    """The sessions of the keys that a batch has searched for; subclasses note what is read and written.

    Args:
        observed: The largest time of a record.
        drop: Counts a dropped record: (node, reason).
    """

    put: Put
    """Puts an update into the cache; None = deletes the entry."""

    def __init__(
        self, store: SessionBytes, cached: Cached, observed: Clock, drop: Callable[[str, str], None]
    ) -> None:
        self.store = store
        self.cached = cached
        self.observed = observed
        self.drop = drop
        self._overlay = cached.lowest
        self._batch = self._overlay.batch
        self._of_keys: dict[bytes, KeySessions] = {}
        self._unwritten: set[bytes] = set()

    @abstractmethod
    def cached_keys(self) -> Container[bytes]:
        """Return the keys of all entries that are in the cache now."""

    @abstractmethod
    def touch_range(self, known: KeySessions, first: int) -> None:
        """Touch the entries from time `first` on, also deleted ones, if they are in the cache."""

    def of_key(self, key: bytes) -> KeySessions:
        """Return the sessions of a key: all that may be visible."""
        if self._overlay.batch != self._batch:
            self._batch = self._overlay.batch
            self._of_keys.clear()
            self._unwritten.clear()
        known = self._of_keys.get(key)
        if known is None:
            found = [self._stored(*pair) for pair in self.store.stored_entries(key)]
            times = [entry.time for entry in found]
            known = KeySessions(times, found, times.copy(), [entry.entry_key for entry in found])
            self._of_keys[key] = known
        return known

    def update(  # noqa: PLR0917 - called for each record
        self, known: KeySessions, key: bytes, time: int, start: int, value: bytes | None, context: Context
    ) -> None:
        """Put the value of a session of `key`, whose sessions are `known`; None = delete it."""
        times, each = known.times, known.sessions
        at = len(times)
        if times and time <= times[-1]:
            at = bisect_left(times, time)
            while at < len(times) and times[at] == time and each[at].start < start:
                at += 1
        if at < len(times) and times[at] == time and each[at].start == start:
            entry_key = each[at].entry_key
            if value is None:
                del times[at], each[at]
            else:
                each[at].value = value
        else:
            entry_key = self.store.entry_key(key, start, time)
            self._register(known, entry_key, time)
            if value is not None:
                times.insert(at, time)
                each.insert(at, Session(entry_key, time, start, value))
        self.put(entry_key, value, context)

    def _register(self, known: KeySessions, entry_key: bytes, time: int) -> None:
        keys = known.all_keys
        at = len(keys)
        if keys and entry_key <= keys[-1]:
            at = bisect_left(keys, entry_key)
            if keys[at] == entry_key:
                return
        keys.insert(at, entry_key)
        known.all_times.insert(at, time)
        self._unwritten.add(entry_key)

    def _stored(self, entry_key: bytes, value: bytes) -> Session:
        time, start = (
            int.from_bytes(entry_key[at : (at + TIME) or None], "big") for at in (-2 * TIME, -TIME)
        )
        return Session(entry_key, time, start, value)


class BatchSessions(SessionsOfKeys):
    """The sessions of a batch with their entries in the record cache.

    Updates of entries that were never written below the cache are not compared with what is there.
    """

    def __init__(
        self, store: SessionBytes, cached: Cached, observed: Clock, drop: Callable[[str, str], None]
    ) -> None:
        super().__init__(store, cached, observed, drop)
        self.put = make_putter(cached)
        self._sizes = cached.entries.sizes
        self._written = cached.overlay.written
        put_below, read_old, unwritten = cached.put_below, cached.read_old, self._unwritten

        def write(entry_key: bytes, value: bytes | None, context: Context) -> None:
            unwritten.discard(entry_key)
            put_below(entry_key, value, context)

        def read(entry_key: bytes) -> bytes | None:
            return None if entry_key in unwritten else read_old(entry_key)

        cached.write_with(write, read)

    def cached_keys(self) -> Container[bytes]:
        return self._written if self.cached.cache.limit >= 0 else self._sizes

    def touch_range(self, known: KeySessions, first: int) -> None:
        times, keys = known.all_times, known.all_keys
        begin = bisect_left(times, first)
        if begin == len(times):
            return
        if self.cached.cache.limit >= 0:
            self.cached.touch_range(KeyRange(keys, keys[begin], keys[-1]))
            return
        sizes, touch = self._sizes, self._sizes.move_to_end
        for entry_key in keys[begin:]:
            if entry_key in sizes:
                touch(entry_key)


def make_putter(cached: Cached) -> Put:
    """Return a function that puts a value into a cache; once entries are counted, as `StoreEntries.put`."""
    cache, entries, written, put_uncounted = cached.cache, cached.entries, cached.overlay.written, cached.put
    sizes, updates = entries.sizes, entries.updates
    take, touch = updates.pop, sizes.move_to_end

    def put(entry_key: bytes, value: bytes | None, context: Context) -> None:
        if cache.limit >= 0:
            put_uncounted(entry_key, value, context)
            return
        written[entry_key] = value
        size = ENTRY_BYTES + len(entry_key) + len(context[2][0])
        if value is not None:
            size += len(value)
        if context[1]:
            size += header_bytes(context[1])
        if entry_key in sizes:
            take(entry_key, None)
            cache.size -= sizes[entry_key]
            touch(entry_key)
        updates[entry_key] = context
        sizes[entry_key] = size
        cache.size += size
        if cache.size > cache.bound:
            cache.make_room(entries)

    return put
