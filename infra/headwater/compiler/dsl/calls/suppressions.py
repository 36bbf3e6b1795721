"""`suppress`."""

from headwater.compiler.dsl.builder import Builder
from headwater.compiler.dsl.declarations import ProcessorDeclaration
from headwater.compiler.dsl.graph import GraphNode
from headwater.compiler.dsl.handles import Handle, Table, View
from headwater.compiler.dsl.old_values import OldValues
from headwater.compiler.dsl.problems import topology_error, unsupported_call
from headwater.compiler.dsl.stores import Store
from headwater.model import operators as op
from headwater.model.behaviors import StoreSettings, SuppressedView, TableSuppress
from headwater.model.nodes import ChangelogKind
from headwater.model.operators.streams import SuppressUntil
from headwater.model.problems import Problem
from headwater.model.stores import Logging

PREFIX = "KTABLE-SUPPRESS-"


def suppress(builder: Builder, on: Table, call: op.Suppress) -> Handle:
    """`KTable#suppress`: a user's name takes no index.

    The sources of the result are the suppressed node, which is not a source (facts 2.4).
    """
    if on.node.is_versioned:
        builder.reject(_versioned(builder, on))
    name = call.name if call.name is not None else builder.names.processor(PREFIX)
    if call.until is SuppressUntil.WINDOW_CLOSES:
        if on.node.window_grace_ms is None:
            return builder.reject(_not_windowed(builder, name, on.node))
        if (call.max_records is not None or call.max_bytes is not None) and not call.shut_down_when_full:
            builder.reject(_not_strict(builder, name))
    logging = call.logging or Logging()
    if call.name is not None:
        store_name = f"{call.name}-store"
    else:
        store_name = builder.names.store(PREFIX)
        if logging.enabled:
            builder.unnamed.changelogs.append(store_name + "-changelog")
    overrides = logging.overrides if logging.enabled else {}
    keeps = StoreSettings("suppress", on.record)
    store = Store(store_name, ChangelogKind.KEY_VALUE, logging.enabled, overrides, keeps=keeps)
    on.view.materialize()
    old_values = OldValues.derived(on.old_values)
    old_values.enable()
    declares = ProcessorDeclaration(name, (store,), behavior=_behavior(on, call, store_name))
    node = builder.add(name, declares, on.node, versioned=False)
    builder.note_non_source(on.name, f"{on.name} is the node before a suppress, not a source", on.sources)
    view = View((store_name, *on.view.stores), SuppressedView(on.view.values, store_name))
    return Table(name, frozenset({on.name}), node, view, old_values, on.record)


def _behavior(on: Table, call: op.Suppress, store: str) -> TableSuppress:
    until_close = call.until is SuppressUntil.WINDOW_CLOSES
    waits = on.node.window_grace_ms if until_close else call.time_limit_ms
    return TableSuppress(
        store,
        on.view.values,
        until_close,
        waits or 0,
        call.max_records,
        call.max_bytes,
        call.shut_down_when_full,
    )


def _versioned(builder: Builder, on: Table) -> Problem:
    return topology_error(
        f"`suppress` is called on a versioned table, {on.name}.",
        node=on.name,
        expected="a table that is not versioned (nor derived from one)",
        found="a versioned table",
        at=builder.at,
        fix="Give the table a plain key-value store, or remove `suppress`.",
    )


def _not_windowed(builder: Builder, name: str, node: GraphNode) -> Problem:
    """Return the problem with the path of nodes from the root, as in Kafka Streams' exception."""
    chain = [node.name]
    while node.parents:
        node = next(parent for parent in node.parents if parent.window_grace_ms is None)
        chain.append(node.name)
    return topology_error(
        f"{name} waits for a window to close, but no upstream aggregation is windowed.",
        node=name,
        expected="a windowed aggregation upstream",
        found="->".join(reversed(chain)),
        at=builder.at,
        fix="Window the upstream aggregation (`windowedBy`), or suppress `until: timeLimit`.",
    )


def _not_strict(builder: Builder, name: str) -> Problem:
    return unsupported_call(
        f"{name} waits for a window to close, but its buffer emits early when it is full.",
        node=name,
        expected="no limit, or whenFull: shutDown",
        found="a limit with whenFull: emitEarly",
        at=builder.at,
        fix="Remove maxRecords and maxBytes, or set `whenFull: shutDown`.",
    )
