"""Entries of keys that have moved to other processors are deleted, some with each batch (KIP-287)."""

import sys
from collections.abc import Iterable, Iterator
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater_spark.engine.scaling import moved_entries
from headwater_spark.engine.scaling.moved_entries import MovedEntries, can_delete_later
from headwater_spark.engine.scaling.moved_stores import MovedStore
from headwater_spark.engine.scaling.processors import Processors
from headwater_spark.engine.stores.interfaces import Pair
from headwater_spark.worker.local_state import MemoryState
from tests.runtime.engine.scaling.test_moved_stores import TEXTS, program_of

NAMES = ("counts", "regions")
STORES = [MovedStore(name, f"app-{name}-changelog", lambda key: key) for name in NAMES]
STREAM = f"""
  - stream: {{topic: in, {TEXTS}, as: orders}}
  - groupByKey: {{as: by-key}}
"""


@given(st.lists(st.sets(st.binary(max_size=4), max_size=30), min_size=2, max_size=2), st.integers(1, 12))
def test_each_entry_of_another_processor_is_deleted_once(keys: list[set[bytes]], most: int) -> None:
    processors = Processors(2, 3)
    state = MemoryState()
    for name, found in zip(NAMES, keys, strict=True):
        for key in found:
            state.store(name).put(key, b"value")
    state.commit(0)
    entries = MovedEntries(STORES, state, 1, processors)
    deleted = []
    rounds = 0
    while not entries.are_deleted:
        tombstones = entries.delete(most, 17)
        assert len(tombstones) <= most
        deleted += tombstones
        state.commit(rounds := rounds + 1)
    assert rounds <= sum(map(len, keys)) // most + 1
    for name, found in zip(NAMES, keys, strict=True):
        own = {key for key in found if processors.owner_of_key(key) == 1}
        assert {key for key, _ in state.store(name).range()} == own
        topic = f"app-{name}-changelog"
        others = sorted(found - own)
        assert [each for each in deleted if each[0] == topic] == [
            (topic, 1, key, None, 17, ()) for key in others
        ]


def test_all_entries_are_deleted_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moved_entries, "_KEYS_AT_ONCE", 3)
    sizes = []

    def noted(entries: Iterable[Pair], size: int) -> Iterator[Pair]:
        sizes.append(size)
        return islice(entries, size)

    monkeypatch.setattr(moved_entries, "islice", noted)
    processors, state, keys = Processors(1, 2), MemoryState(), {b"%d" % each for each in range(20)}
    for key in keys:
        state.store("counts").put(key, b"value")
    state.commit(0)
    entries = MovedEntries(STORES, state, 1, processors)
    others = {key for key in keys if processors.owner_of_key(key) == 0}
    assert [each[2] for each in entries.delete(sys.maxsize, 17)] == sorted(others)
    assert entries.are_deleted
    assert set(sizes) == {3}
    assert {key for key, _ in state.store("counts").range()} == keys - others


def test_entries_can_be_deleted_later_if_all_stores_are_read_by_key() -> None:
    assert can_delete_later(program_of(STREAM + "  - count: {materialized: counts}"))
    assert can_delete_later(
        program_of(f"""
  - table: {{topic: in, {TEXTS}, as: left}}
  - table: {{topic: out, {TEXTS}, as: right}}
  - join: {{from: left, with: right}}
""")
    )


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param(
            "  - windowedBy: {tumbling: {size: 1s, grace: 0s}}\n  - count: {materialized: windows}",
            id="windows",
        ),
        pytest.param(
            "  - windowedBy: {session: {gap: 1s, grace: 0s}}\n  - count: {materialized: sessions}",
            id="sessions",
        ),
        pytest.param(
            "  - count: {materialized: counts}\n"
            "  - suppress: {until: timeLimit, timeLimit: 1s, maxRecords: 9, name: calmer}",
            id="suppressed results",
        ),
        pytest.param(
            "  - addStateStore: {name: totals, keyed: record, serdes: {key: string, value: long}}\n"
            '  - process: {from: orders, class: "shop:Scorer", stores: [totals]}',
            id="stores of users",
        ),
    ],
)
def test_entries_are_not_deleted_later_if_ranges_are_read(steps: str) -> None:
    assert not can_delete_later(program_of(STREAM + steps))
