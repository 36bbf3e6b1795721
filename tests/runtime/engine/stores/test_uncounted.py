"""Entries that are counted later are those of a record cache that counts each read and write."""

from typing import NoReturn

from hypothesis import given
from hypothesis import strategies as st

from headwater_spark.engine.records import NO_RECORD, Context, CurrentRecord, InputRecord
from headwater_spark.engine.stores.cached import Cached
from headwater_spark.engine.stores.layers import Logged
from headwater_spark.engine.stores.record_cache import RecordCache
from headwater_spark.worker.local_state import MemoryState

_KEYS = [b"a", b"b", b"c", b"dd", b"eeee"]
_RECORDS: list[InputRecord] = [
    NO_RECORD,
    ("in", 0, 0, 0, None, None, ()),
    ("longer-topic", 0, 0, 0, None, None, ()),
]
_OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(
            ["put", "put", "put", "delete", "get", "update", "touch", "range", "flush", "settle"],
        ),
        st.integers(0, 1),
        st.sampled_from(_KEYS),
        st.integers(0, 40),
    ),
    min_size=10,
    max_size=60,
)


class Stores:
    """Two stores with a cache; what the first one flushes is put into the second one, some also into it."""

    def __init__(self, bound: int, *, counts: bool, keeps_reads: bool) -> None:
        self.cache = RecordCache(bound)
        self.cache.add_topic("longer-topic")
        self.flushed: list[tuple[bytes, bytes | None, bytes | None, Context]] = []
        state = MemoryState()
        self.stores = []
        for name in ("one", "other"):
            overlay = state.store(name)
            for key in _KEYS[::2]:
                overlay.put(key, b"stored" * 30)
            self.stores.append(
                Cached(Logged(overlay, None), CurrentRecord(), self.cache, _fail, keeps_reads=keeps_reads)
            )
        if counts:
            self.cache.limit = -1
        self.stores[0].listen(self._flushed, needs_old=True)
        self.stores[1].listen(
            lambda key, new, old, context: self.flushed.append((key, new, old, context)), needs_old=True
        )

    def _flushed(self, key: bytes, new: bytes | None, old: bytes | None, context: Context) -> None:
        self.flushed.append((key, new, old, context))
        self.stores[1].put(key, new, context)
        if key == b"b":
            self.stores[0].put(b"c", b"written by a flush", context)

    def run(self, operation: tuple[str, int, bytes, int], number: int) -> object:
        what, index, key, size = operation
        store = self.stores[index]
        headers = (("header", b"1" * 20 * number),) if number % 5 == 0 else ()
        context = (number, headers, _RECORDS[number % len(_RECORDS)])
        match what:
            case "put":
                store.put(key, b"x" * size, context)
            case "delete":
                store.put(key, None, context)
            case "get":
                return store.get(key)
            case "update":
                found = store.get_before_put(key)
                store.put(key, b"y" * size, context)
                return found
            case "touch":
                assert store.touch is not None
                store.touch(key)
            case "range":
                return list(store.range(key, None))
            case "flush":
                store.flush()
            case "settle":
                self.cache.settle()
        return None

    def count(self) -> list[object]:
        """Count all entries; return their sizes in order, the updates in order, and the size of the cache."""
        self.cache.settle(self.cache.bound + 1)
        entries = [store.entries for store in self.stores]
        return [
            *([(list(each.sizes.items()), list(each.updates.items())) for each in entries]),
            self.cache.size,
        ]


def _fail(error: Exception) -> NoReturn:
    raise error


@given(operations=_OPERATIONS, bound=st.integers(0, 1500), keeps_reads=st.booleans())
def test_entries_are_the_same_as_if_each_use_had_been_counted(
    operations: list[tuple[str, int, bytes, int]],
    bound: int,
    keeps_reads: bool,  # noqa: FBT001 - hypothesis passes names
) -> None:
    counts, later = (Stores(bound, counts=each, keeps_reads=keeps_reads) for each in (True, False))
    for number, operation in enumerate(operations):
        assert later.run(operation, number) == counts.run(operation, number), operation
        assert later.flushed == counts.flushed, operation
    assert later.count() == counts.count()
    for each in (counts, later):
        for store in each.stores:
            store.flush()
    assert later.flushed == counts.flushed


def test_entries_are_counted_once_the_estimate_is_above_the_bound_and_half_of_it_is_used() -> None:
    stores = Stores(1000, counts=False, keeps_reads=True)
    one = stores.stores[0]
    for number in range(20):
        one.put(b"same", b"x" * 100, (number, (), NO_RECORD))
    assert stores.cache.limit == 1000, "one entry of 149 bytes"
    for number in range(4):
        one.put(b"key %d" % number, b"x" * 100, (number, (), NO_RECORD))
    stores.cache.settle()
    assert stores.cache.limit == -1
    assert stores.cache.size == 149 + 4 * 150
    assert stores.flushed == []
    one.put(b"last", b"x" * 300, (30, (), NO_RECORD))
    assert stores.flushed[0][0] == b"same"
    stores.cache.clear()
    assert (stores.cache.limit, stores.cache.estimate) == (1000, 0)


def test_a_value_that_is_read_before_a_put_needs_room() -> None:
    stores = Stores(280, counts=False, keeps_reads=True)
    last = stores.stores[1]
    last.put(b"dd", b"x" * 20, (0, (), NO_RECORD))
    assert last.get_before_put(b"a") == b"stored" * 30
    assert [key for key, _, _, _ in stores.flushed] == [b"dd"]


def test_headers_need_room() -> None:
    stores = Stores(200, counts=False, keeps_reads=True)
    last = stores.stores[1]
    last.put(b"a", b"x" * 20, (0, (), NO_RECORD))
    last.put(b"dd", b"x" * 20, (1, (("name", b"1" * 100),), NO_RECORD))
    assert [key for key, _, _, _ in stores.flushed] == [b"a", b"dd"]


def test_an_update_of_a_key_whose_deletion_is_being_flushed_is_removed_with_it() -> None:
    counts, later = (Stores(10_000, counts=each, keeps_reads=True) for each in (True, False))
    for stores in (counts, later):
        one = stores.stores[0]
        one.put(b"b", b"x", (0, (), NO_RECORD))
        one.put(b"c", None, (1, (), NO_RECORD))
        one.flush()
    assert later.flushed == counts.flushed
    assert later.stores[0].get(b"c") == counts.stores[0].get(b"c")
    assert later.count() == counts.count()
