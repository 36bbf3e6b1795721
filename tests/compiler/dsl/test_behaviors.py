"""Behaviors of nodes: every node has one, and the names in it exist."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headwater.compiler import build_nodes
from headwater.model import behaviors as does
from headwater.model.behaviors import Format, RecordFormat
from headwater.model.nodes import NodeTopology, ProcessorNode, SinkNode, SourceNode
from headwater.model.problems import errors
from headwater.spec import load_text, parse_document
from tests.oracle.random_topologies.stores import Choices
from tests.oracle.situations import random_situation

_STORES = ("store", "own_store", "other_store", "shared", "buffer")


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_every_node_has_a_behavior(data: st.DataObject) -> None:
    situation = random_situation(Choices(lambda options: data.draw(st.integers(0, options - 1))))
    document = parse_document(situation.document).documents[0]
    nodes = build_nodes(document)
    if errors(nodes.problems):
        return
    names = {node.name for node in nodes.nodes}
    kept = {store.name: store for store in nodes.stores}
    for node in nodes.nodes:
        match node:
            case SourceNode():
                assert node.reads is not None, node
            case SinkNode():
                assert node.writes is not None, node
            case ProcessorNode():
                assert node.behavior is not None, node
                _check(node, nodes)
                if isinstance(node.behavior, does.Branch):
                    assert {*node.behavior.children} <= names
    used = {store for node in nodes.nodes if isinstance(node, ProcessorNode) for store in node.stores}
    assert all(kept[store].keeps is not None for store in used)


def _check(node: ProcessorNode, nodes: NodeTopology) -> None:
    """Check that stores in the behavior are connected to the node, or global."""
    shared = {store.name for store in nodes.stores if store.is_global}
    assert set(_named(node.behavior)) <= {*node.stores, *shared}, node


def _named(behavior: object) -> Iterator[str]:
    for field in _STORES:
        store = getattr(behavior, field, None)
        # the preceding windowed node writes the store of this side of a join
        if isinstance(store, str) and not (
            field == "own_store" and isinstance(behavior, does.StreamStreamJoin)
        ):
            yield store
    if isinstance(behavior, does.StreamTableJoin | does.ForeignKeyAnswer | does.ForeignKeyResolve):
        yield from _read_stores(behavior.table)
    if isinstance(behavior, does.TableTableJoin):
        yield from _read_stores(behavior.other)


def _read_stores(view: does.TableView) -> Iterator[str]:
    match view:
        case does.StoreView(store):
            yield store
        case does.FilteredView(parent) | does.MappedView(parent) | does.TransformedView(parent):
            yield from _read_stores(parent)
        case does.SuppressedView(parent, store):
            yield store
            yield from _read_stores(parent)
        case does.JoinedView(_, left, right):
            yield from _read_stores(left)
            yield from _read_stores(right)


def built(calls: str) -> NodeTopology:
    loaded = load_text(f"application: {{id: app}}\ntopology:\n{calls}", "calls.yaml")
    assert not loaded.problems, loaded.problems
    return build_nodes(loaded.documents[0])


def _written(topology: str) -> RecordFormat:
    """Return the format of the only sink to a user topic."""
    nodes = built(topology)
    assert not errors(nodes.problems), nodes.problems
    (sink,) = (node for node in nodes.nodes if isinstance(node, SinkNode) and node.topic == "out")
    assert sink.writes is not None
    return sink.writes.format


SOURCE = "- stream: {topic: in, serdes: {key: string, value: json}, as: s}\n"
OUT = "- to: {topic: out}\n"
SESSIONS = "- groupByKey:\n- windowedBy: {session: {gap: 10}}\n- reduce:\n"
STRING, LONG, JSON = Format("string"), Format("long"), Format("json")


@pytest.mark.parametrize(
    ("calls", "key", "value"),
    [
        ("", STRING, JSON),
        ("- mapValues: {}\n", STRING, JSON),
        ("- mapValues: {serdes: {value: long}}\n- filter: {}\n", STRING, LONG),
        ("- map: {serdes: {key: long}}\n", LONG, JSON),
        ("- groupByKey:\n- count:\n- toStream:\n", STRING, LONG),
        ("- groupBy: {serdes: {key: long}}\n- reduce:\n- toStream:\n", LONG, JSON),
        (
            "- groupByKey:\n- aggregate: {materialized: {store: a, serdes: {value: long}}}\n- toStream:\n",
            STRING,
            LONG,
        ),
        (
            "- groupByKey:\n- windowedBy: {tumbling: {size: 10}}\n- count:\n- toStream:\n",
            Format("string", "time", 10),
            LONG,
        ),
        (
            "- groupByKey:\n- windowedBy: {session: {gap: 10}}\n- count:\n- toStream:\n- selectKey:\n",
            STRING,
            LONG,
        ),
        (f"{SESSIONS}- suppress: {{until: windowCloses}}\n- toStream:\n", Format("string", "session"), JSON),
        ("- merge: {with: s}\n", STRING, JSON),
        ("- join: {with: s, window: {difference: 1}, serdes: {value: string}}\n", STRING, STRING),
        ("- mapValues: {serdes: {key: default, value: default}}\n", Format("default"), Format("default")),
    ],
)
def test_formats_are_kept_without_serdes(calls: str, key: Format, value: Format) -> None:
    assert _written(SOURCE + calls + OUT) == RecordFormat(key, value)


@pytest.mark.parametrize(
    ("named", "key"),
    [
        ("time-windowed:60000", Format("string", "time", 60_000)),
        ("time-windowed", Format("string", "time")),
        ("session-windowed:long", Format("long", "session")),
        ("time-windowed:5:avro:a/b.avsc", Format("avro:a/b.avsc", "time", 5)),
    ],
)
def test_windowed_formats_are_given_by_name(named: str, key: Format) -> None:
    assert _written(f"{SOURCE}- to: {{topic: out, serdes: {{key: '{named}'}}}}\n").key == key


def _sends_old(topology: str) -> dict[str, bool]:
    return {
        type(node.behavior).__name__: True
        for node in built(topology).nodes
        if isinstance(node, ProcessorNode) and getattr(node.behavior, "sends_old", False)
    }


def test_old_values_are_sent_where_a_downstream_node_needs_them() -> None:
    plain = "- table: {topic: t, as: t}\n"
    stored = "- table: {topic: t, materialized: st, as: t}\n"
    assert _sends_old(f"{stored}- toStream:\n") == {}
    assert _sends_old(f"{plain}- filter:\n- toStream:\n") == {}
    assert _sends_old(f"{stored}- filter:\n- toStream:\n") == {"TableSource": True, "TableFilter": True}
    assert _sends_old(f"{plain}- mapValues:\n- groupBy:\n- count:\n") == {
        "TableSource": True,
        "TableMapValues": True,
    }
    joined = f"{stored}- join: {{with: t}}\n"
    assert _sends_old(f"{joined}- toStream:\n") == {}
    assert _sends_old(f"{joined}- filter:\n") == {
        "TableSource": True,
        "TableTableJoin": True,
        "TableJoinMerge": True,
        "TableFilter": True,
    }
