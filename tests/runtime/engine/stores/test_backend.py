"""The contract of state in memory and on disk: writes are visible at once and applied all or nothing."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.model.offset_metadata import BATCH_ID
from headwater_spark.engine.stores.backend import Backend, BatchedState, MemoryBackend
from headwater_spark.worker.local_state import LmdbBackend

Open = Callable[[], BatchedState]


class Surviving(MemoryBackend):
    def close(self) -> None:
        pass


@pytest.fixture(params=["memory", "lmdb"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    memory = Surviving()
    states: list[BatchedState] = []

    def open_state() -> BatchedState:
        for state in states:
            state.close()
        states.clear()
        backend: Backend = memory if request.param == "memory" else LmdbBackend(tmp_path / "state")
        states.append(BatchedState(backend))
        return states[0]

    yield open_state
    for state in states:
        state.close()


def test_writes_of_the_batch_are_visible_at_once(opened: Open) -> None:
    store = opened().store("s")
    store.put(b"a", b"1")
    store.put(b"", b"empty key")
    store.delete(b"b")
    assert store.get(b"a") == b"1"
    assert list(store.range()) == [(b"", b"empty key"), (b"a", b"1")]


def test_a_committed_batch_is_found_after_reopening(opened: Open) -> None:
    state = opened()
    state.store("s").put(b"a", b"1")
    state.metadata["task"] = 7
    state.commit(0, {"app-s-changelog": 3})
    state = opened()
    assert (state.version, state.metadata, state.offsets()) == (1, {"task": 7}, {"app-s-changelog": 3})
    assert state.store("s").get(b"a") == b"1"


def test_uncommitted_writes_are_lost(opened: Open) -> None:
    state = opened()
    state.store("s").put(b"a", b"1")
    state.commit(0)
    state.store("s").put(b"a", b"2")
    state.metadata["task"] = 9
    state = opened()
    assert state.store("s").get(b"a") == b"1"
    assert state.metadata == {}


def test_a_prepared_batch_is_applied_when_its_commit_is_known(opened: Open) -> None:
    state = opened()
    state.store("s").put(b"a", b"1")
    state.metadata["task"] = 5
    state.prepare(0)
    state = opened()
    assert state.version == 0
    assert state.store("s").get(b"a") is None
    assert state.recover(1)
    assert state.store("s").get(b"a") == b"1"
    assert state.metadata == {"task": 5}
    assert opened().version == 1


@pytest.mark.parametrize(("prepared", "committed"), [(7, 8), (7, None), (None, 8)])
def test_a_prepared_batch_is_not_applied_if_another_one_was_committed(
    opened: Open, prepared: int | None, committed: int | None
) -> None:
    state = opened()
    if prepared is not None:
        state.metadata[BATCH_ID] = prepared
    state.prepare(0)
    assert not opened().recover(1, committed)
    assert opened().recover(1, prepared)


def test_only_the_next_batch_can_be_recovered(opened: Open) -> None:
    state = opened()
    state.prepare(0)
    assert not state.recover(2)
    assert state.recover(0)


def test_a_reset_state_is_empty(opened: Open) -> None:
    state = opened()
    state.store("s").put(b"a", b"1")
    state.commit(0)
    state.reset()
    assert state.version == 0
    assert list(state.store("s").range()) == []


def test_keys_of_any_length_keep_their_order(opened: Open) -> None:
    state = opened()
    keys = sorted(
        b"k" * length + tail for length in (0, 1, 478, 509, 510, 511, 900) for tail in (b"", b"a", b"z")
    )
    store = state.store("s")
    for key in keys:
        store.put(key, b"v" + key)
    state.commit(0)
    assert [key for key, _ in store.range()] == keys
    assert [key for key, _ in store.reverse_range()] == keys[::-1]
    assert all(store.get(key) == b"v" + key for key in keys)
    store.delete(keys[-1])
    state.commit(1)
    assert [key for key, _ in opened().store("s").range()] == keys[:-1]


def test_stores_grow_beyond_the_initial_map_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headwater_spark.worker.local_state._MIN_MAP_BYTES", 64 * 1024)
    state = BatchedState(LmdbBackend(tmp_path))
    for number in range(1000):
        state.store("s").put(number.to_bytes(4, "big"), bytes(1000))
    state.commit(0)
    assert sum(1 for _ in state.store("s").range()) == 1000
    state.close()


def test_an_unclosed_state_of_an_earlier_boot_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def opened_at(boot: bytes) -> BatchedState:
        monkeypatch.setattr("headwater_spark.worker.local_state._boot_id", lambda: boot)
        return BatchedState(LmdbBackend(tmp_path))

    state = opened_at(b"one")
    state.commit(0)
    state.close()
    state = opened_at(b"two")
    assert state.version == 1  # it was closed
    state.commit(1)
    state._backend._environment.close()  # type: ignore[attr-defined] # as after a power failure
    state = opened_at(b"three")
    assert state.version == 0
    state.close()


KEYS = st.binary(max_size=3) | st.binary(min_size=1, max_size=2).map(lambda tail: b"x" * 508 + tail * 3)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), KEYS, st.binary(max_size=4)),
        st.tuples(st.just("delete"), KEYS, st.none()),
        st.tuples(st.just("range"), KEYS, KEYS | st.none()),
        st.tuples(st.just("commit"), st.none(), st.none()),
    ),
    max_size=40,
)


@pytest.mark.parametrize("kind", ["memory", "lmdb"])
@settings(max_examples=6 * settings().max_examples // 5)
@given(steps=STEPS)
def test_state_behaves_like_a_sorted_dictionary(
    kind: str, steps: list[tuple[str, bytes, bytes | None]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    state = BatchedState(
        MemoryBackend() if kind == "memory" else LmdbBackend(tmp_path_factory.mktemp("state"))
    )
    store = state.store("s")
    model: dict[bytes, bytes] = {}
    for step, key, value in steps:
        if step == "put" and value is not None:
            store.put(key, value)
            model[key] = value
        elif step == "delete":
            store.delete(key)
            model.pop(key, None)
        elif step == "range":
            expected = [(k, v) for k, v in sorted(model.items()) if k >= key and (value is None or k < value)]
            assert list(store.range(key, value)) == expected
            assert list(store.reverse_range(key, value)) == expected[::-1]
            assert store.get(key) == model.get(key)
        else:
            state.commit(state.version)
    assert list(store.range()) == sorted(model.items())
    state.close()
