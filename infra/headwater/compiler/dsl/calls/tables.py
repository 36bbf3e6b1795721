"""Calls on tables, with `suppress`."""

import attrs

from headwater.compiler.dsl.builder import TABLE_OF_ITS_OWN, Builder
from headwater.compiler.dsl.calls.materialization import check_materialized
from headwater.compiler.dsl.declarations import OldValues, ProcessorDeclaration
from headwater.compiler.dsl.formats import with_new_key, with_serdes, with_store_serdes
from headwater.compiler.dsl.graph import GraphNode
from headwater.compiler.dsl.handles import GroupedTable, Handle, Stream, Table, View
from headwater.compiler.dsl.messages import lint_problem, topology_error, unsupported_call
from headwater.compiler.dsl.stores import KEY_VALUE_KINDS, Store, is_versioned, key_value_store
from headwater.compiler.version_differences import STORES_OF_SUPPLIERS_FIRST
from headwater.model import behaviors as does
from headwater.model import operators as op
from headwater.model.behaviors import TableSuppress
from headwater.model.formats import (
    FilteredView,
    MappedView,
    RecordFormat,
    StoreSettings,
    SuppressedView,
    TableView,
    TransformedView,
)
from headwater.model.nodes import ChangelogKind
from headwater.model.operators import SuppressUntil, TransformKind
from headwater.model.problems import Problem, ProblemCode
from headwater.model.stores import Logging

_PREFIXES = {
    TransformKind.FILTER: "KTABLE-FILTER-",
    TransformKind.FILTER_NOT: "KTABLE-FILTER-",
    TransformKind.MAP_VALUES: "KTABLE-MAPVALUES-",
}
TRANSFORM_VALUES = "KTABLE-TRANSFORMVALUES-"


@attrs.frozen
class _Result:
    """The formats, the store if any, and the old values of a derived table."""

    record: RecordFormat
    store: Store | None
    old_values: OldValues

    @classmethod
    def from_call(cls, builder: Builder, on: Table, call: op.Transform | op.TransformValues) -> "_Result":
        """Return the result; only a `Materialized` with a name gives a store, another only takes an index."""
        check_materialized(builder, call.materialized, KEY_VALUE_KINDS)
        record = with_serdes(with_store_serdes(on.record, call.materialized), call.serdes)
        name = call.materialized.store_name if call.materialized is not None else None
        if name is None:
            return cls(record, None, OldValues.derived(on.old_values))
        return cls(record, key_value_store(name, call.materialized, record), OldValues())

    @property
    def store_name(self) -> str | None:
        return self.store.name if self.store is not None else None

    def declare(
        self, name: str, behavior: does.Behavior, connected: tuple[str, ...] = ()
    ) -> ProcessorDeclaration:
        stores = () if self.store is None else (self.store,)
        return ProcessorDeclaration(name, stores, connected, behavior=behavior, old_values=self.old_values)


def transform(builder: Builder, on: Table, call: op.Transform) -> Handle:
    prefix = _PREFIXES[call.kind]
    if call.materialized is not None and call.materialized.store_name is None:
        builder.names.skip_index()
    made = _Result.from_call(builder, on, call)
    name = builder.named(call.name, prefix)
    parent = on.view.values
    behavior: does.Behavior
    values: TableView
    if call.kind is TransformKind.MAP_VALUES:
        behavior = does.TableMapValues(call.value, parent, made.store_name)
        values = MappedView(parent, call.value)
    else:
        negate = call.kind is TransformKind.FILTER_NOT
        behavior = does.TableFilter(call.where, negate, parent, made.store_name)
        values = FilteredView(parent, call.where, negate)
        # Kafka Streams enables old values where no store is needed for it, to avoid unnecessary tombstones
        on.old_values.enable(only_if_materialized=True)
        made.old_values.enabled = on.old_values.enabled
    return _derive_table(builder, on, call, made, made.declare(name, behavior), values)


def transform_values(builder: Builder, on: Table, call: op.TransformValues) -> Handle:
    """`KTable#transformValues`: connects stores by name; the stores of the supplier are ignored."""
    made = _Result.from_call(builder, on, call)
    name = builder.named(call.name, TRANSFORM_VALUES)
    if call.connected:
        builder.reject(_ignored_option(name, call))
    parent = on.view.values
    behavior = does.TableTransformValues(call.processor_class, parent, call.stores, made.store_name)
    declares = attrs.evolve(
        made.declare(name, behavior, call.stores),
        connected_first=not STORES_OF_SUPPLIERS_FIRST.is_in(builder.config.version),
    )
    return _derive_table(builder, on, call, made, declares, TransformedView(parent, name))


def _ignored_option(name: str, call: op.TransformValues) -> Problem:
    return lint_problem(
        ProblemCode.UNUSED_STORE,
        f"`transformValues` of a table ignores the stores of its supplier ({name}).",
        node=name,
        expected="stores by name",
        found="stores of the supplier: " + ", ".join(store.name for store in call.connected),
        why="Kafka Streams does not call `stores()` of the supplier: the stores get no changelog, and "
        "the transformer does not find them when it starts.",
        fix="Add the stores with `addStateStore` and name them in `stores`.",
    )


def _derive_table(  # noqa: PLR0917 - one caller a kind, each has all of them
    builder: Builder,
    on: Table,
    call: op.Transform | op.TransformValues,
    made: _Result,
    declares: ProcessorDeclaration,
    values: TableView,
) -> Table:
    versioned = is_versioned(call.materialized) if call.materialized is not None else None
    node = builder.add(declares.name, declares, on.node, versioned=versioned)
    view = on.view.through_values(values) if made.store is None else View.from_store(made.store.name)
    return Table(declares.name, on.sources, node, view, made.old_values, made.record)


def to_stream(builder: Builder, on: Table, call: op.ToStream) -> Handle:
    """`KTable#toStream`; a key selector adds a `selectKey` node, after which a repartition is required."""
    name = builder.named(call.name, "KTABLE-TOSTREAM-")
    node = builder.add(name, ProcessorDeclaration(name, behavior=does.TableToStream()), on.node)
    if not call.selects_key:
        return Stream(name, on.sources, node, record=on.record)
    selector = builder.names.processor("KSTREAM-KEY-SELECT-")
    declares = ProcessorDeclaration(selector, behavior=does.MapRecord(call.key, keeps_value=True))
    selected = builder.add(selector, declares, node, changes_key=True)
    return Stream(
        selector, on.sources, selected, repartition_required=True, record=with_new_key(on.record, None)
    )


def group_by(builder: Builder, on: Table, call: op.GroupBy) -> Handle:
    name = builder.named(call.name, "KTABLE-SELECT-")
    record = with_new_key(on.record, call.serdes)
    behavior = does.TableRepartitionMap(
        call.key,
        call.value,
        on.view.values,
        key_format=record.key,
        sends_both_values=not builder.config.upgrades_changes,
    )
    node = builder.add(name, ProcessorDeclaration(name, behavior=behavior), on.node)
    on.view.materialize()
    on.old_values.enable()
    return GroupedTable(name, node, call.name, record)


PREFIX = "KTABLE-SUPPRESS-"


def suppress(builder: Builder, on: Table, call: op.Suppress) -> Handle:
    """`KTable#suppress`: a user's name takes no index.

    The sources of the result are the suppressed node, which is not a source (facts 2.4).
    """
    if on.node.is_versioned:
        builder.reject(_versioned_table(on))
    name = call.name if call.name is not None else builder.names.processor(PREFIX)
    if call.until is SuppressUntil.WINDOW_CLOSES:
        if on.node.window_grace_ms is None:
            return builder.reject(_not_windowed(name, on.node))
        if (call.max_records is not None or call.max_bytes is not None) and not call.shut_down_when_full:
            builder.reject(_not_strict(name))
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
    declares = ProcessorDeclaration(name, (store,), behavior=_suppress_behavior(on, call, store_name))
    node = builder.add(name, declares, on.node, versioned=False)
    reason = f"{on.name} is the node before a suppress, not a source"
    builder.note_non_source(on.name, reason, on.sources, TABLE_OF_ITS_OWN)
    view = View((store_name, *on.view.stores), SuppressedView(on.view.values, store_name))
    return Table(name, frozenset({on.name}), node, view, old_values, on.record)


def _suppress_behavior(on: Table, call: op.Suppress, store: str) -> TableSuppress:
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


def _versioned_table(on: Table) -> Problem:
    return topology_error(
        f"`suppress` is called on a versioned table, {on.name}.",
        node=on.name,
        expected="a table that is not versioned (nor derived from one)",
        found="a versioned table",
        fix="Give the table a plain key-value store, or remove `suppress`.",
    )


def _not_windowed(name: str, node: GraphNode) -> Problem:
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
        fix="Window the upstream aggregation (`windowedBy`), or suppress `until: timeLimit`.",
    )


def _not_strict(name: str) -> Problem:
    return unsupported_call(
        f"{name} waits for a window to close, but its buffer emits early when it is full.",
        node=name,
        expected="no limit, or whenFull: shutDown",
        found="a limit with whenFull: emitEarly",
        fix="Remove maxRecords and maxBytes, or set `whenFull: shutDown`.",
    )
