"""How a table's current value is looked up (`KTableValueGetterSupplier`)."""

from typing import Literal

import attrs

JoinKind = Literal["inner", "left", "outer"]


@attrs.frozen
class StoreView:
    """The values lie in a store."""

    store: str


@attrs.frozen
class FilteredView:
    """`KTableFilter`'s getter over an unmaterialized parent."""

    parent: "TableView"
    where: str | None
    negate: bool = False


@attrs.frozen
class MappedView:
    """`KTableMapValues`' getter over an unmaterialized parent."""

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
    """`KTableTransformValues`' getter: the transformer of `node` is called for each look-up."""

    parent: "TableView"
    node: str


@attrs.frozen
class SuppressedView:
    """`KTableSuppressProcessorSupplier`'s getter: what `store` buffers hides the parent's value."""

    parent: "TableView"
    store: str


TableView = StoreView | FilteredView | MappedView | JoinedView | TransformedView | SuppressedView
