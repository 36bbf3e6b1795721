"""Which stores can move, the record keys of their entries, and how moved entries are deleted (KIP-287)."""

import struct
import sys
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.compiler import build_nodes, compile_document
from headwater.spec import load_text
from headwater_spark.engine.partitioners.hashing import default_partition
from headwater_spark.engine.program import SubtopologyProgram, build_programs
from headwater_spark.engine.scaling.moved_stores import (
    MovedEntries,
    MovedStore,
    NotMovable,
    can_delete_later,
    moved_stores,
)
from headwater_spark.engine.scaling.processors import Processors
from headwater_spark.engine.serdes import Subscription, subscription_serde
from headwater_spark.engine.serdes.plain import PLAIN
from headwater_spark.engine.stores.interfaces import Pair
from headwater_spark.worker.local_state import MemoryState

TEXTS = "serdes: {key: string, value: string}"


def program_of(steps: str) -> SubtopologyProgram:
    """Return the last program of a topology."""
    document = load_text(f"application: {{id: app}}\ntopology:\n{steps}", "app.yaml").documents[0]
    nodes = build_nodes(document)
    *_, program = build_programs(document, nodes, compile_document(document, {"in": 2, "out": 2}))
    return program


def movable(steps: str) -> Mapping[str, MovedStore]:
    stores, others = moved_stores(program_of(steps))
    assert not others
    return {store.name: store for store in stores}


def reasons(steps: str) -> Mapping[str, NotMovable]:
    return {store.name: reason for store, reason in moved_stores(program_of(steps))[1]}


def test_a_processor_is_that_of_the_partition_of_the_key() -> None:
    store = MovedStore("s", "app-s-changelog", lambda key: key)
    for key in (b"a", b"b", b"c"):
        four = Processors(4, 4)
        assert store.processor(key, four) == default_partition(key, 4) == default_partition(key, 16) % 4
        six = Processors(4, 6)
        assert store.processor(key, six) == six.owner(default_partition(key, 16))


def test_the_window_is_no_part_of_the_record_key() -> None:
    windowed = f"""
  - stream: {{topic: in, {TEXTS}}}
  - groupByKey:
  - windowedBy: {{WINDOW}}
  - count: {{materialized: counts}}
  - suppress: {{until: windowCloses, name: closed}}
"""
    for window, suffix, key_suffix in (
        ("tumbling: {size: 1s, grace: 0s}", bytes(12), bytes(8)),
        ("session: {gap: 1s, grace: 0s}", bytes(16), bytes(16)),
    ):
        stores = movable(windowed.replace("WINDOW", window))
        assert stores["counts"].record_key(b"key" + suffix) == b"key"
        assert stores["closed-store"].record_key(b"key" + key_suffix) == b"key"
        assert stores["closed-store"].counts == ("closed-store/records", "closed-store/bytes")
        assert not stores["counts"].counts


def test_a_subscription_belongs_to_its_foreign_key_and_names_no_processor_when_it_has_moved() -> None:
    document = load_text(
        f"""
application: {{id: app}}
topology:
  - table: {{topic: in, as: left, {TEXTS}}}
  - table: {{topic: other, as: right, {TEXTS}}}
  - join: {{from: left, with: right, foreignKey: value, value: left}}
  - toStream:
  - to: {{topic: out}}
""",
        "app.yaml",
    ).documents[0]
    nodes = build_nodes(document)
    programs = build_programs(document, nodes, compile_document(document, {"in": 2, "other": 2, "out": 2}))
    stores = [store for program in programs for store in moved_stores(program)[0]]
    (store,) = (store for store in stores if store.has_subscriptions)
    key = struct.pack(">i", 3) + b"rowleft"
    assert store.record_key(key) == b"row"
    serde = subscription_serde(PLAIN["string"])
    for hashed in (bytes(16), None):
        before = serde.serialize(Subscription(hashed, 1, "left", 1))
        assert store.is_outdated(before)
        after = store.value(before)
        assert after is not None
        assert serde.deserialize(after) == Subscription(hashed, 1, "left", None, 0)
        assert not store.is_outdated(after)
        assert store.value(after) == after
    assert store.value(None) is None
    assert not store.is_outdated(None)


@pytest.mark.parametrize(
    ("kind", "suffix"),
    [
        ("keyValue", b""),
        ("timestampedKeyValue", b""),
        ("versionedKeyValue", b""),
        ("window", bytes(8 + 4)),
        ("timestampedWindow", bytes(8 + 4)),
        ("session", bytes(8 + 8)),
    ],
)
@pytest.mark.parametrize("operator", ["process", "processValues", "transformValues"])
def test_stores_that_are_keyed_by_record_can_move(operator: str, kind: str, suffix: bytes) -> None:
    is_of_table = operator == "transformValues"  # which ignores stores of suppliers
    timed = "" if kind in ("keyValue", "timestampedKeyValue") else ", retention: 1h"
    timed += ", windowSize: 1s" if kind in ("window", "timestampedWindow") else ""
    store = f"{{name: seen, kind: {kind}{timed}, keyed: record}}"
    program = f"""
  - {"table" if is_of_table else "stream"}: {{topic: in, {TEXTS}}}
  - {operator}: {{class: "module:Seen", stores: [STORES]}}
"""
    added = f"  - addStateStore: {store}{program.replace('STORES', 'seen')}"
    for steps in (added,) if is_of_table else (added, program.replace("STORES", store)):
        seen = movable(steps)["seen"]
        assert seen.record_key(b"key" + suffix) == b"key"
        assert seen.is_keyed_by_user
        assert seen.at is not None


def test_a_store_of_several_processors_is_declared_once() -> None:
    """Both processors use the same builder; a topology of nodes has stores of its own."""
    shared = "{name: seen, shared: true, keyed: record}"
    twice = f"""
  - stream: {{topic: in, as: read, {TEXTS}}}
  - process: {{class: "module:First", stores: [{shared}, {{name: own, keyed: record}}]}}
  - process: {{from: read, class: "module:Second", stores: [{shared}]}}
"""
    nodes = """
  - addSource: {name: source, topic: in}
  - addProcessor: {name: first, parents: [source], stores: [{name: own, keyed: record}]}
  - addProcessor: {name: second, parents: [first]}
  - addStateStore: {name: seen, keyed: record, processors: [first, second]}
"""
    for steps in (twice, nodes):
        assert movable(steps).keys() == {"seen", "own"}


def test_stores_of_operators_need_no_declaration() -> None:
    """Also if users' processors read them."""
    stores = movable(
        f"""
  - table: {{topic: in, as: rows, materialized: rows, {TEXTS}}}
  - toStream:
  - process: {{class: "module:Seen", stores: [rows]}}
"""
    )
    assert not stores["rows"].is_keyed_by_user


@pytest.mark.parametrize(
    ("steps", "store", "reason"),
    [
        (
            f"""
  - addStateStore: {{name: seen, kind: keyValue}}
  - stream: {{topic: in, {TEXTS}}}
  - process: {{class: "module:Seen", stores: [seen]}}
  - to: {{topic: out}}
""",
            "seen",
            NotMovable.ANY_KEYS,
        ),
        (
            f"""
  - table: {{topic: in, materialized: {{store: table, logging: false}}, {TEXTS}}}
  - toStream:
  - to: {{topic: out}}
""",
            "table",
            NotMovable.NOT_LOGGED,
        ),
        (
            f"""
  - stream: {{topic: in, {TEXTS}}}
  - groupByKey:
  - windowedBy: {{tumbling: {{size: 1s}}}}
  - count: {{materialized: counts}}
  - toStream:
  - repartition: {{name: again}}
  - toTable: {{materialized: windows}}
  - toStream:
  - to: {{topic: out}}
""",
            "windows",
            NotMovable.WINDOWED_KEYS,
        ),
    ],
)
def test_other_stores_cannot_move(steps: str, store: str, reason: NotMovable) -> None:
    assert reasons(steps) == {store: reason}


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
    monkeypatch.setattr(f"{moved_stores.__module__}._KEYS_AT_ONCE", 3)
    sizes = []

    def noted(entries: Iterable[Pair], size: int) -> Iterator[Pair]:
        sizes.append(size)
        return islice(entries, size)

    monkeypatch.setattr(f"{moved_stores.__module__}.islice", noted)
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
