"""How the current value of a table is read (`KTableValueGetterSupplier`)."""

from typing import Literal

import attrs

JoinKind = Literal["inner", "left", "outer"]


@attrs.frozen
class StoreView:
    """The values are in a state store (`KTableMaterializedValueGetterSupplier`)."""

    store: str


@attrs.frozen
class FilteredView:
    """The getter of `KTableFilter` without a store."""

    parent: "TableView"
    where: str | None
    negate: bool = False


@attrs.frozen
class MappedView:
    """The getter of `KTableMapValues` without a store."""

    parent: "TableView"
    value: str | None


@attrs.frozen
class JoinedView:
    """The getter of a table-table join without a store."""

    kind: JoinKind
    left: "TableView"
    right: "TableView"
    value: str | None


@attrs.frozen
class TransformedView:
    """The getter of `KTableTransformValues`: it calls the transformer of `node` for each read."""

    parent: "TableView"
    node: str


@attrs.frozen
class SuppressedView:
    """The getter of `KTableSuppressProcessorSupplier`: a value buffered in `store`, else the parent's."""

    parent: "TableView"
    store: str


TableView = StoreView | FilteredView | MappedView | JoinedView | TransformedView | SuppressedView
