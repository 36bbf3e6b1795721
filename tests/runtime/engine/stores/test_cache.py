"""The content of a record cache while it is flushed, and afterwards."""

from collections.abc import Callable
from typing import NoReturn

from headwater.model.formats import Format
from headwater_spark.engine.records import CurrentRecord
from headwater_spark.engine.serdes import serde_of
from headwater_spark.engine.stores.cached import Cached
from headwater_spark.engine.stores.key_value import KeyValueBytes
from headwater_spark.engine.stores.layers import Logged
from headwater_spark.engine.stores.record_cache import RecordCache
from headwater_spark.worker.local_state import MemoryState


def fail(error: Exception) -> NoReturn:
    raise error


STRING = serde_of(Format("string"), {})


def cached(listener: Callable[[KeyValueBytes, str], None]) -> tuple[Cached, KeyValueBytes]:
    cache = Cached(Logged(MemoryState().store("s"), None), CurrentRecord(), RecordCache(1_000_000), fail)
    store = KeyValueBytes(cache, STRING, STRING, CurrentRecord().write_context)
    cache.listen(lambda key, _new, _old, _context: listener(store, key.decode()), needs_old=True)
    return cache, store


def test_a_listener_sees_updates_that_are_still_to_be_flushed() -> None:
    seen = []
    cache, store = cached(lambda store, key: seen.append((key, store.get("a"), store.get("b"))))
    store.put("a", "1")
    store.put("b", "1")
    cache.flush()
    assert seen == [("a", "1", "1"), ("b", "1", "1")]
    store.put("b", "2")
    cache.flush()
    assert (store.get("a"), store.get("b")) == ("1", "2")


def test_updates_that_a_listener_causes_are_flushed_next() -> None:
    heard = []

    def listener(store: KeyValueBytes, key: str) -> None:
        heard.append(key)
        if key == "a":
            store.put("c", "from a")

    cache, store = cached(listener)
    store.put("a", "1")
    store.put("b", "1")
    assert cache.flush()
    assert heard == ["a", "b"]
    assert store.get("c") == "from a"
    assert cache.flush()
    assert heard == ["a", "b", "c"]
    assert not cache.flush()


def test_updates_that_change_nothing_are_dropped_on_request() -> None:
    heard: list[str] = []
    cache, store = cached(lambda _store, key: heard.append(key))
    store.put("a", "1")
    store.put("b", "1")
    cache.flush()
    store.put("a", "1")
    store.put("b", "2")
    cache.drop_repeats()
    cache.flush()
    assert heard == ["a", "b", "b"]
