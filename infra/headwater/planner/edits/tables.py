"""Which operators compute the tables that joins of streams read, also of tables without a store."""

from headwater.model.behaviors import (
    FilteredView,
    JoinedView,
    MappedView,
    StoreView,
    StreamGlobalJoin,
    StreamTableJoin,
    SuppressedView,
    TableFilter,
    TableJoinMerge,
    TableMapValues,
    TableTableJoin,
    TableView,
    TransformedView,
)
from headwater.model.nodes import Node, ProcessorNode
from headwater.planner.edits.graph import Graph


def tables(node: Node, graph: Graph) -> tuple[str, ...]:
    """Return the operators of the tables that a join reads, of the joins whose input does not show them.

    Of texts, these are the operators that write the stores. Operators that do the same with the same table
    count as the same one.
    """
    if not isinstance(node, ProcessorNode):
        return ()
    match node.behavior:
        case StreamTableJoin(table=view):
            return _operators(view, graph)
        case None | StreamGlobalJoin():
            return graph.parents_and_writers[node.name][len(graph.parents[node.name]) :]
        case _:
            return ()


def _operators(view: TableView, graph: Graph) -> tuple[str, ...]:
    match view:
        case StoreView(store=store) | SuppressedView(store=store):
            writer = graph.writer_of(store)
            return (writer,) if writer is not None else ()
        case TransformedView(node=name):
            return (name,)
        case _:
            return next(((name,) for name, node in graph.nodes.items() if _computes(node, view, graph)), ())


def _computes(node: Node, view: TableView, graph: Graph) -> bool:
    """Return whether an operator computes the values of a view that has no store."""
    match node.behavior if isinstance(node, ProcessorNode) else None, view:
        case TableFilter(store=None) as does, FilteredView():
            return (does.where, does.negate, does.parent) == (view.where, view.negate, view.parent)
        case TableMapValues(store=None) as does, MappedView():
            return (does.value, does.parent) == (view.value, view.parent)
        case TableJoinMerge(store=None), JoinedView():
            sides = [getattr(graph.nodes[name], "behavior", None) for name in graph.parents[node.name]]
            return any(
                isinstance(side, TableTableJoin)
                and side.is_left
                and (side.kind, side.value, side.own, side.other)
                == (view.kind, view.value, view.left, view.right)
                for side in sides
            )
        case _:
            return False
