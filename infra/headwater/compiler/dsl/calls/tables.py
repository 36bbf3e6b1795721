"""Calls on a `KTable` except joins and `suppress`."""

import attrs

from headwater.compiler.dsl.builder import Builder
from headwater.compiler.dsl.calls.materialization import check_materialized
from headwater.compiler.dsl.declarations import ProcessorDeclaration
from headwater.compiler.dsl.formats import with_new_key, with_serdes, with_store_serdes
from headwater.compiler.dsl.handles import GroupedTable, Handle, Stream, Table, View
from headwater.compiler.dsl.old_values import OldValues
from headwater.compiler.dsl.problems import lint
from headwater.compiler.dsl.stores import KEY_VALUE_KINDS, Store, is_versioned, key_value_store
from headwater.compiler.version_differences import STORES_OF_SUPPLIERS_FIRST
from headwater.model import behaviors as does
from headwater.model import operators as op
from headwater.model.behaviors import RecordFormat, TableView
from headwater.model.operators import TransformKind
from headwater.model.problems import Problem, ProblemCode

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
    def of(cls, builder: Builder, on: Table, call: op.Transform | op.TransformValues) -> "_Result":
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
    made = _Result.of(builder, on, call)
    name = builder.named(call.name, prefix)
    parent = on.view.values
    behavior: does.Behavior
    values: TableView
    if call.kind is TransformKind.MAP_VALUES:
        behavior = does.TableMapValues(call.value, parent, made.store_name)
        values = does.MappedView(parent, call.value)
    else:
        negate = call.kind is TransformKind.FILTER_NOT
        behavior = does.TableFilter(call.where, negate, parent, made.store_name)
        values = does.FilteredView(parent, call.where, negate)
        # Kafka Streams enables old values where no store is needed for it, to avoid unnecessary tombstones
        on.old_values.enable(only_if_materialized=True)
        made.old_values.enabled = on.old_values.enabled
    return _derived(builder, on, call, made, made.declare(name, behavior), values)


def transform_values(builder: Builder, on: Table, call: op.TransformValues) -> Handle:
    """`KTable#transformValues`: connects stores by name; the stores of the supplier are ignored."""
    made = _Result.of(builder, on, call)
    name = builder.named(call.name, TRANSFORM_VALUES)
    if call.connected:
        builder.reject(_ignored(builder, name, call))
    parent = on.view.values
    behavior = does.TableTransformValues(call.processor_class, parent, call.stores, made.store_name)
    declares = attrs.evolve(
        made.declare(name, behavior, call.stores),
        connected_first=not STORES_OF_SUPPLIERS_FIRST.is_in(builder.config.version),
    )
    return _derived(builder, on, call, made, declares, does.TransformedView(parent, name))


def _ignored(builder: Builder, name: str, call: op.TransformValues) -> Problem:
    return lint(
        ProblemCode.UNUSED_STORE,
        f"`transformValues` of a table ignores the stores of its supplier ({name}).",
        node=name,
        expected="stores by name",
        found="stores of the supplier: " + ", ".join(store.name for store in call.connected),
        why=(
            "Kafka Streams does not call `stores()` of the supplier: the stores get no changelog, and "
            "the transformer does not find them when it starts."
        ),
        at=builder.at,
        fix="Add the stores with `addStateStore` and name them in `stores`.",
    )


def _derived(  # noqa: PLR0917 - one caller a kind, each has all of them
    builder: Builder,
    on: Table,
    call: op.Transform | op.TransformValues,
    made: _Result,
    declares: ProcessorDeclaration,
    values: TableView,
) -> Table:
    versioned = is_versioned(call.materialized) if call.materialized is not None else None
    node = builder.add(declares.name, declares, on.node, versioned=versioned)
    view = on.view.through(values) if made.store is None else View.of(made.store.name)
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
