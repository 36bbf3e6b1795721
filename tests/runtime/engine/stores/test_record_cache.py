"""The bound of record caches: sizes, entries that leave, the order of flushed updates, shares of threads."""

import time
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater_spark.engine.records import NO_RECORD, Context
from headwater_spark.engine.stores.record_cache import (
    RecordCache,
    StoreEntries,
    Update,
    bytes_per_thread,
    header_bytes,
)
from tests.oracle.thread_histories import History, histories

_KEYS = st.sampled_from([b"a", b"b", b"c", b"d", b"e"])
_OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["put", "put", "put", "read", "touch", "delete"]),
        st.integers(0, 2),
        _KEYS,
        st.integers(1, 60),
    ),
    max_size=60,
)


def context(number: int) -> Context:
    return (number, (), NO_RECORD)


class Store:
    """A store that records what is flushed; a flush puts each key into the next store, if there is one."""

    def __init__(self, cache: RecordCache, below: "Store | None") -> None:
        self.entries: StoreEntries = cache.store(self._flush)
        self.flushes: list[list[bytes]] = []
        self.flushed: list[Update] = []
        self.deleted: set[bytes] = set()
        self._below = below

    def put(self, key: bytes, size: int, number: int, *, delete: bool = False) -> None:
        (self.deleted.add if delete else self.deleted.discard)(key)
        self.entries.put(key, size, context(number))

    def _flush(self, updates: Sequence[Update]) -> list[bytes]:
        self.flushes.append([key for key, _ in updates])
        self.flushed += updates
        for key, (number, _, _) in updates:
            if self._below is not None:
                self._below.put(key, 20, number)
        return [key for key, _ in updates if key in self.deleted]


def stores_of(cache: RecordCache) -> list[Store]:
    last = Store(cache, None)
    return [Store(cache, last), Store(cache, None), last]


@given(operations=_OPERATIONS, bound=st.integers(0, 200))
def test_entries_are_within_the_bound_and_sizes_are_exact(
    operations: list[tuple[str, int, bytes, int]], bound: int
) -> None:
    cache = RecordCache(bound)
    stores = stores_of(cache)
    for number, (what, index, key, size) in enumerate(operations):
        store = stores[index]
        match what:
            case "put" | "delete":
                store.put(key, size, number, delete=what == "delete")
            case "read" if key not in store.entries.sizes:
                store.entries.add_entry(key, size)
            case _:
                assert store.entries.touch(key) is (key in store.entries.sizes)
        assert cache.size == sum(sum(each.entries.sizes.values()) for each in stores)
        assert cache.size <= bound or (what != "touch" and not store.entries.sizes)
        assert all(each.entries.updates.keys() <= each.entries.sizes.keys() for each in stores)
    for store in stores:
        store.entries.flush()
        assert not store.entries.updates
    cache.clear()
    assert cache.size == 0
    assert not any(store.entries.sizes for store in stores)


@given(operations=_OPERATIONS, bound=st.integers(0, 200))
def test_the_last_update_of_each_key_is_flushed(
    operations: list[tuple[str, int, bytes, int]], bound: int
) -> None:
    store = Store(RecordCache(bound), None)
    last: dict[bytes, int] = {}
    for number, (what, _, key, size) in enumerate(operations):
        if what == "put":
            store.put(key, size, number)
            last[key] = number
    store.entries.flush()
    assert {key: number for key, (number, _, _) in store.flushed} == last
    assert len({number for _, (number, _, _) in store.flushed}) == len(store.flushed), "each update once"


def test_an_update_that_leaves_flushes_all_updates_of_its_store() -> None:
    cache = RecordCache(100)
    one, other, _ = stores_of(cache)
    other.put(b"x", 10, 0)
    for number, key in enumerate([b"a", b"b", b"c"], start=1):
        one.put(key, 30, number)
    one.put(b"b", 30, 4)
    assert one.flushes == []
    one.put(b"d", 30, 5)
    assert one.flushes == [[b"a", b"c", b"b", b"d"]], "the oldest entry, then the others as they were written"
    assert other.flushes == []
    assert list(one.entries.sizes) == [b"c", b"b", b"d"]


def test_a_read_protects_an_entry_but_not_its_place_in_the_flush() -> None:
    cache = RecordCache(90)
    store = Store(cache, None)
    for number, key in enumerate([b"a", b"b", b"c"]):
        store.put(key, 30, number)
    assert store.entries.touch(b"a")
    store.put(b"d", 30, 3)
    assert store.flushes == [[b"b", b"a", b"c", b"d"]]
    assert list(store.entries.sizes) == [b"c", b"a", b"d"]


def test_entries_without_updates_leave_silently() -> None:
    store = Store(RecordCache(60), None)
    store.entries.add_entry(b"read", 30)
    store.put(b"a", 30, 0)
    store.entries.add_entry(b"read too", 20)
    assert store.flushes == []
    assert list(store.entries.sizes) == [b"a", b"read too"]


def test_deleted_keys_leave_when_they_are_flushed() -> None:
    cache = RecordCache(60)
    store = Store(cache, None)
    store.put(b"gone", 20, 0, delete=True)
    store.put(b"a", 20, 1)
    store.entries.flush()
    assert (store.flushes, list(store.entries.sizes), cache.size) == ([[b"gone", b"a"]], [b"a"], 20)


def test_an_entry_larger_than_the_bound_leaves_at_once() -> None:
    store = Store(RecordCache(10), None)
    store.put(b"large", 11, 0)
    assert (store.flushes, store.entries.sizes) == ([[b"large"]], {})


def _seconds_per_eviction(entries: int) -> float:
    """Return CPU seconds of a put into a cache with room for `entries`, which lets one leave."""
    cache = RecordCache(entries)
    store = cache.store(lambda _: ())
    for number in range(entries):
        store.add_entry(b"%d" % number, 1)
    started = time.process_time()
    for number in range(entries, 3 * entries):
        store.add_entry(b"%d" % number, 1)
    assert len(store.sizes) == entries
    return (time.process_time() - started) / (2 * entries)


def test_the_number_of_entries_does_not_make_evictions_slower() -> None:
    few = min(_seconds_per_eviction(2_000) for _ in range(5))
    many = min(_seconds_per_eviction(50_000) for _ in range(3))
    assert many < 5 * few


def test_header_bytes_are_those_of_names_and_values() -> None:
    assert header_bytes((("one", b"12"), ("two", None))) == 8


@pytest.mark.parametrize(
    ("total", "threads", "has_global_thread", "expected"),
    [(1000, 1, False, 1000), (1000, 3, False, 333), (1001, 3, True, 250), (7, 0, True, 7), (1, 2, False, 0)],
)
def test_threads_have_equal_shares(
    total: int, threads: int, *, has_global_thread: bool, expected: int
) -> None:
    assert bytes_per_thread(total, threads, has_global_thread=has_global_thread) == expected


@pytest.mark.parametrize("history", histories(), ids=lambda history: history.name)
def test_shares_are_those_of_the_real_class(history: History) -> None:
    """A thread that fails and is not replaced leaves the shares of the others as they are until a change."""
    for step in history.steps:
        outcome = step.outcome
        fails = str(step.operation[0]).startswith("fail")
        if outcome.alive and not fails and all(state == "RUNNING" for state in outcome.threads.values()):
            share = bytes_per_thread(
                history.cache_bytes, outcome.alive, has_global_thread=history.global_table
            )
            assert set(outcome.cache_bytes.values()) == {share}
