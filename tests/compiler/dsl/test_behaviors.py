"""Behaviors of nodes: every node has one, and the names in it exist."""

from collections.abc import Iterator

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headwater.compiler import build_nodes
from headwater.model import behaviors as does
from headwater.model.formats import (
    FilteredView,
    JoinedView,
    MappedView,
    StoreView,
    SuppressedView,
    TableView,
    TransformedView,
)
from headwater.model.nodes import NodeTopology, ProcessorNode, SinkNode, SourceNode
from headwater.model.problems import errors
from headwater.spec import parse_document
from tests.compiler.dsl.documents import built_calls
from tests.oracle.random_topologies.stores import Choices
from tests.oracle.situations import random_situation

_STORES = ("store", "own_store", "other_store", "shared", "buffer")


@settings(max_examples=6 * settings().max_examples // 5, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_every_node_has_a_behavior(data: st.DataObject) -> None:
    situation = random_situation(Choices(lambda options: data.draw(st.integers(0, options - 1))))
    documents = parse_document(situation.document).documents
    if not documents:
        return  # some random documents violate the schema
    (document,) = documents
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


def _read_stores(view: TableView) -> Iterator[str]:
    match view:
        case StoreView(store):
            yield store
        case FilteredView(parent) | MappedView(parent) | TransformedView(parent):
            yield from _read_stores(parent)
        case SuppressedView(parent, store):
            yield store
            yield from _read_stores(parent)
        case JoinedView(_, left, right):
            yield from _read_stores(left)
            yield from _read_stores(right)


def _sends_old(topology: str) -> dict[str, bool]:
    return {
        type(node.behavior).__name__: True
        for node in built_calls(topology).nodes
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
