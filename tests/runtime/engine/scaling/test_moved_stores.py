"""Which stores can move, and the record keys of their entries."""

import struct
from collections.abc import Mapping

import pytest

from headwater.compiler import build_nodes, compile_document
from headwater.spec import load_text
from headwater_spark.engine.partitioners.hashing import default_partition
from headwater_spark.engine.program import SubtopologyProgram, build_programs
from headwater_spark.engine.scaling.moved_stores import MovedStore, NotMovable, moved_stores
from headwater_spark.engine.scaling.processors import Processors
from headwater_spark.engine.serdes import Subscription, subscription_serde
from headwater_spark.engine.serdes.plain import PLAIN

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
    timed = "" if "imestampedKey" in kind or kind == "keyValue" else ", retention: 1h, windowSize: 1s"
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
