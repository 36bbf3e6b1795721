"""Typed stores compared with simple models based on dictionaries."""

from typing import Any, NoReturn

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.model.formats import Format
from headwater_spark.engine.records import Clock, CurrentRecord, OutputRecord, Windowed
from headwater_spark.engine.serdes import serde_of
from headwater_spark.engine.stores.buffers import BufferSize, JoinBufferBytes, SuppressBytes
from headwater_spark.engine.stores.cached import Cached
from headwater_spark.engine.stores.interfaces import (
    NOT_PUT,
    KeyValueStore,
    SessionStore,
    TimestampedKeyValueStore,
    VersionedKeyValueStore,
    WindowStore,
)
from headwater_spark.engine.stores.key_value import KeyValueBytes, ListBytes, TimestampedKeyValueBytes
from headwater_spark.engine.stores.layers import Logged
from headwater_spark.engine.stores.record_cache import RecordCache
from headwater_spark.engine.stores.versioned import VersionedBytes
from headwater_spark.engine.stores.windows import SessionBytes, WindowBytes
from headwater_spark.worker.local_state import MemoryState

STRING = serde_of(Format("string"), {})
QUICK = settings(max_examples=6 * settings().max_examples // 5)
KEYS = st.sampled_from(["", "a", "ab", "b", "long" * 200])
VALUES = st.sampled_from(["x", "y", None])


def what_users_get(
    plain: KeyValueBytes,
    timestamped: TimestampedKeyValueBytes,
    versioned: VersionedBytes,
    window: WindowBytes,
    session: SessionBytes,
) -> tuple[KeyValueStore, TimestampedKeyValueStore, VersionedKeyValueStore, WindowStore, SessionStore]:
    """Check the types of the stores: they implement the interfaces."""
    return plain, timestamped, versioned, window, session


class Opened:
    """A store whose batches can be committed between operations."""

    def __init__(self, *, prefix: int = 0, timestamped: bool = False, cache: bool = False) -> None:
        self.state = MemoryState()
        self.log: list[OutputRecord] = []
        overlay = self.state.store("s")
        self.logged = Logged(overlay, ("changes", 3, self.log.append), prefix=prefix, timestamped=timestamped)
        self.below = self._cached() if cache else self.logged
        self.context = CurrentRecord().write_context

    def _cached(self) -> Cached:
        return Cached(self.logged, CurrentRecord(), RecordCache(100), self._fail)

    @staticmethod
    def _fail(error: Exception) -> NoReturn:
        raise error

    def commit(self) -> None:
        if isinstance(self.below, Cached):
            self.below.flush()
            self.below.clear()
            self.below.cache.clear()
        self.state.commit(self.state.version)


@pytest.mark.parametrize("cache", [False, True])
@QUICK
@given(steps=st.lists(st.tuples(KEYS, VALUES, st.booleans()), max_size=30))
def test_key_value_stores_behave_like_a_sorted_dictionary(
    cache: bool,  # noqa: FBT001 - a parameter of the test
    steps: list[tuple[str, str | None, bool]],
) -> None:
    opened = Opened(cache=cache)
    store = KeyValueBytes(opened.below, STRING, STRING, opened.context)
    model: dict[str, str] = {}
    for key, value, commits in steps:
        assert store.put_if_absent(key, None) == model.get(key)
        store.put(key, value)
        if value is None:
            model.pop(key, None)
        else:
            model[key] = value
        if commits:
            opened.commit()
        assert list(store.all()) == sorted(model.items())
        assert list(store.reverse_all()) == sorted(model.items(), reverse=True)
        assert list(store.range("a", "b")) == sorted(kv for kv in model.items() if "a" <= kv[0] <= "b")
        assert list(store.prefix_scan(b"a")) == sorted(kv for kv in model.items() if kv[0].startswith("a"))
    opened.commit()
    last = {key: value for _, _, key, value, _, _ in opened.log}
    assert {key: value for key, value in last.items() if value} == {
        key.encode(): value.encode() for key, value in model.items()
    }


def test_timestamped_values_are_logged_with_their_timestamp() -> None:
    opened = Opened(timestamped=True)
    store = TimestampedKeyValueBytes(opened.below, STRING, STRING, opened.context)
    store.put("k", ("v", 77))
    assert store.get("k") == ("v", 77)
    store.put("k", None)
    assert opened.log == [("changes", 3, b"k", b"v", 77, ()), ("changes", 3, b"k", None, -1, ())]


TIMES = st.integers(0, 400).map(lambda seconds: seconds * 1000)


@pytest.mark.parametrize("duplicates", [False, True])
@QUICK
@given(steps=st.lists(st.tuples(KEYS, VALUES, TIMES, st.booleans()), max_size=30), first=TIMES, last=TIMES)
def test_windows_are_visible_for_the_retention(
    duplicates: bool,  # noqa: FBT001
    steps: list[tuple[str, str | None, int, bool]],
    first: int,
    last: int,
) -> None:
    opened = Opened(prefix=8)
    retention = 130_000
    store = WindowBytes(
        opened.below,
        STRING,
        STRING,
        opened.context,
        retention_ms=retention,
        size_ms=10,
        observed=Clock(),
        sequence=Clock() if duplicates else None,
    )
    model: list[tuple[str, int, str]] = []
    for key, value, start, commits in steps:
        store.put(key, value, start)
        if not duplicates:
            model = [entry for entry in model if entry[:2] != (key, start)]
        if value is not None:
            model.append((key, start, value))
        if commits:
            store.expire()
            opened.commit()
        seen = [entry for entry in model if entry[1] > store.observed.now - retention]
        for each in {key, "a"}:
            expected = sorted((s, v) for k, s, v in seen if k == each and first <= s <= last)
            assert sorted(store.fetch_range(each, first, last)) == expected
            found = [s for s, _ in store.fetch_range(each, first, last)]
            assert found == sorted(found)
            assert [s for s, _ in store.backward_fetch_range(each, first, last)] == found[::-1]
        if not duplicates:
            alive = value if start > store.observed.now - retention else None
            assert store.fetch(key, start) == alive
        everything = sorted((Windowed(k, s, s + 10), v) for k, s, v in seen)
        assert sorted(store.all()) == everything
        in_range = [entry for entry in everything if first <= entry[0].start <= last]
        assert sorted(store.fetch_all(first, last)) == in_range
        assert list(store.backward_fetch_all(first, last)) == list(store.fetch_all(first, last))[::-1]


@QUICK
@given(
    steps=st.lists(
        st.tuples(KEYS, VALUES, TIMES, st.integers(0, 9).map(lambda n: n * 1000), st.booleans()), max_size=25
    ),
    end=TIMES,
    start=TIMES,
)
def test_sessions_are_found_by_end_and_start(
    steps: list[tuple[str, str | None, int, int, bool]], end: int, start: int
) -> None:
    opened = Opened(prefix=8)
    retention = 130_000
    store = SessionBytes(
        opened.below, STRING, STRING, opened.context, retention_ms=retention, observed=Clock()
    )
    model: dict[Windowed, str] = {}
    for key, value, begins, length, commits in steps:
        session = Windowed(key, begins, begins + length)
        store.put(session, value)
        model.pop(session, None)
        if value is not None:
            model[session] = value
        if commits:
            store.expire()
            opened.commit()
        seen = {s: v for s, v in model.items() if s.end > store.observed.now - retention}
        for each in {key, "a"}:
            expected = sorted(
                ((s, v) for s, v in seen.items() if s.key == each and s.end >= end and s.start <= start),
                key=lambda entry: (entry[0].end, entry[0].start),
            )
            assert list(store.find_sessions(each, end, start)) == expected
        assert store.fetch_session(*session) == seen.get(session)


@QUICK
@given(
    steps=st.lists(st.tuples(KEYS, VALUES, st.integers(0, 60), st.booleans()), max_size=30),
    as_of=st.integers(0, 60),
)
def test_versions_are_valid_until_the_next(
    steps: list[tuple[str, str | None, int, bool]], as_of: int
) -> None:
    opened = Opened()
    store = VersionedBytes(
        opened.state.store("s"), STRING, STRING, lambda *_: None, retention_ms=20, observed=Clock()
    )
    history: dict[str, dict[int, str | None]] = {}
    for key, value, time, commits in steps:
        late = time < store.observed.now - 20
        valid_to = store.put(key, value, time)
        if late:
            assert valid_to == NOT_PUT
            continue
        versions = history.setdefault(key, {})
        versions[time] = value
        later = [other for other in versions if other > time]
        assert valid_to == (min(later) if later else None)
        if commits:
            opened.commit()
        assert store.get(key) == _version(versions, 10**6)
        if as_of >= store.observed.now - 20:
            assert store.get(key, as_of) == _version(versions, as_of)


def _version(versions: dict[int, str | None], as_of: int) -> Any:  # noqa: ANN401
    valid = [time for time in versions if time <= as_of]
    if not valid or versions[max(valid)] is None:
        return None
    later = [time for time in versions if time > max(valid)]
    return versions[max(valid)], max(valid), min(later) if later else None


def test_versions_before_the_history_are_found_only_if_still_valid() -> None:
    opened = Opened()
    store = VersionedBytes(
        opened.state.store("s"), STRING, STRING, lambda *_: None, retention_ms=20, observed=Clock()
    )
    store.put("old", "x", 5)
    store.put("changed", "x", 5)
    store.put("changed", "y", 50)
    assert store.get("old", 10) == ("x", 5, None)
    assert store.get("changed", 10) is None
    assert store.get("changed", 40) == ("x", 5, 50)


def test_a_deletion_before_the_history_returns_and_deletes_no_version() -> None:
    """`RocksDBVersionedStore#delete` checks the time first; `get` at that time returns the latest version."""
    logged: list[tuple[bytes, bytes | None, int]] = []
    store = VersionedBytes(
        Opened().state.store("s"),
        STRING,
        STRING,
        lambda *entry: logged.append(entry),
        retention_ms=100,
        observed=Clock(),
    )
    store.put("k", "x", 5)
    store.put("other", "y", 1_000)
    assert store.get("k", 500) == ("x", 5, None)
    assert store.delete("k", 500) is None
    assert store.get("k") == ("x", 5, None)
    assert logged[-1] == (b"k", None, 500)
    assert store.delete("k", 900) == ("x", 5, None)
    assert store.get("k") is None


@QUICK
@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("put"), st.sampled_from("abc"), st.integers(0, 9)),
            st.tuples(st.sampled_from(["pop", "commit"]), st.none(), st.none()),
        ),
        max_size=30,
    )
)
def test_suppressed_keys_keep_their_time_and_are_emitted_in_order(steps: list[tuple[str, Any, Any]]) -> None:
    opened = Opened()
    log: list[tuple[bytes, bytes | None, Any]] = []
    size = BufferSize(Clock(), Clock())
    buffer = SuppressBytes(opened.state.store("s"), STRING, STRING, lambda *entry: log.append(entry), size)
    model: dict[str, tuple[int, str | None, str, int]] = {}  # key → time, prior, new, offset
    for number, (step, key, time) in enumerate(steps):
        if step == "put":
            old = model[key][2] if key in model else f"before {number}"
            first, prior = (model[key][:2]) if key in model else (time, old)
            model[key] = (first, prior, f"new {number}", number)
            buffer.put(time, key, (f"new {number}", old), (time, number, "in", 0, ()))
            assert buffer.prior(key) == (prior, -1)
        elif step == "pop" and model:
            expected = min(model, key=lambda each: (model[each][0], each))
            popped, (new, _), context = buffer.oldest()
            assert buffer.prior(popped) == (model[popped][1], -1)
            buffer.drop_oldest()
            assert (popped, new, context[1]) == (expected, model[expected][2], model[expected][3])
            del model[expected]
        else:
            buffer.flush()
            opened.commit()
        assert buffer.records == len(model)
        earliest = min((entry[0] for entry in model.values()), default=2**63)
        assert not buffer.is_due(earliest - 1)
        assert buffer.is_due(earliest) == bool(model)
        assert buffer.prior("z") is False
    if not model:
        assert buffer.size == 0
    buffer.flush()
    restored = SuppressBytes(
        MemoryState().store("s"), STRING, STRING, lambda *_: None, BufferSize(Clock(), Clock())
    )
    for plain, stored, headers in log:
        assert headers == ((("v", b"\3"),) if stored is not None else ())
        restored.restore(plain, stored)
    assert (restored.records, restored.size) == (buffer.records, buffer.size)
    for _ in range(len(model)):
        assert restored.oldest() == buffer.oldest()
        restored.drop_oldest()
        buffer.drop_oldest()


def test_lists_are_written_as_by_kafka_streams() -> None:
    opened = Opened()
    store = ListBytes(opened.logged, STRING, STRING, STRING, opened.context)
    store.add(5, True, "k", "left")  # noqa: FBT003
    store.add(5, True, "k", "again")  # noqa: FBT003
    store.add(5, False, "k", "right")  # noqa: FBT003
    left_key, right_key = bytes(7) + b"\5\1k", bytes(7) + b"\5\0k"
    assert list(store.all()) == [
        (right_key, 5, False, "k", "right"),
        (left_key, 5, True, "k", "left"),
        (left_key, 5, True, "k", "again"),
    ]
    assert opened.log[1][2:4] == (
        left_key,
        b"\1\0\0\0\2" + b"\0\0\0\5\1left" + b"\0\0\0\6\1again",
    )
    store.clear(5, True, "k")  # noqa: FBT003
    assert list(store.all()) == [(right_key, 5, False, "k", "right")]
    store.delete(right_key)
    assert not list(store.all())


def test_waiting_records_leave_by_time_then_in_arrival_order() -> None:
    opened = Opened()
    buffer = JoinBufferBytes(
        opened.state.store("s"),
        STRING,
        STRING,
        lambda *_: None,
        grace_ms=10,
        observed=Clock(),
        sequence=Clock(),
    )
    for number, time in enumerate((20, 12, 20, 15)):
        assert buffer.put("k", f"v{number}", (time, number, "in", 0, ()))
    assert not buffer.put("k", "late", (9, 9, "in", 0, ()))
    assert [value for _, value, _ in buffer.pop_until(15)] == ["v1", "v3"]
    assert [value for _, value, _ in buffer.pop_until(99)] == ["v0", "v2"]
    assert not list(buffer.pop_until(99))
