"""Reads of the current value of a table (`KTableValueGetter`)."""

from collections.abc import Callable, Mapping
from typing import Any

from headwater.model.behaviors import TableTransformValues
from headwater.model.formats import (
    FilteredView,
    JoinedView,
    MappedView,
    StoreView,
    SuppressedView,
    TableView,
    TransformedView,
)
from headwater.model.nodes import ProcessorNode
from headwater_spark.engine.operators.interface import NotRunnableError, OperatorContext, ValueGetter
from headwater_spark.engine.operators.processors import value_transformer
from headwater_spark.engine.records import NO_RECORD, Value
from headwater_spark.engine.stores.buffers import SuppressBytes
from headwater_spark.engine.stores.versioned import VersionedBytes
from headwater_spark.engine.stores.windows import SessionBytes, WindowBytes

AsOfGetter = Callable[[Value, int], tuple[Value, int] | None]
"""(key, time) → (value, timestamp) of the version valid at that time."""


def value_getter(view: TableView, context: OperatorContext) -> ValueGetter:
    """Return the getter of a view; the keys of windowed tables are `Windowed`."""
    match view:
        case StoreView():
            return _of_store(context.task.stores.typed_store(view.store))
        case FilteredView() | MappedView() | TransformedView():
            parent, compute = value_getter(view.parent, context), _COMPUTED[type(view)](view, context)
            return lambda key: compute(key, parent(key))
        case JoinedView():
            return _join_view(view, context)
        case SuppressedView():
            return _suppressed_view(view, context)


def as_of_getter(view: TableView, context: OperatorContext) -> AsOfGetter | None:
    """Return the getter of a view of a versioned store; None if the view has no versioned store."""
    match view:
        case StoreView():
            typed = context.task.stores.typed_store(view.store)
            if not isinstance(typed, VersionedBytes):
                return None
            return lambda key, time: _value_and_time(typed.get(key, time))
        case FilteredView() | MappedView() | TransformedView():
            parent = as_of_getter(view.parent, context)
            if parent is None:
                return None
            compute = _COMPUTED[type(view)](view, context)
            return lambda key, time: compute(key, parent(key, time))
        case _:
            return None


Compute = Callable[[Value, tuple[Value, int] | None], tuple[Value, int] | None]


def _of_store(typed: Value) -> ValueGetter:
    match typed:
        case VersionedBytes():
            return lambda key: _value_and_time(typed.get(key))
        case SessionBytes():
            return lambda session: _session_value(typed, session)
        case WindowBytes():
            return lambda windowed: typed.fetch(windowed.key, windowed.start)
        case _:
            getter: ValueGetter = typed.get
            return getter


def _value_and_time(found: tuple[Value, int, int | None] | None) -> tuple[Value, int] | None:
    return None if found is None else found[:2]


def _session_value(typed: SessionBytes, session: Value) -> tuple[Value, int] | None:
    value = typed.fetch_session(session.key, session.start, session.end)
    return None if value is None else (value, session.end)


def _filter_view(view: FilteredView, context: OperatorContext) -> Compute:
    where = context.expression(view.where, "key", "value")
    wanted = not view.negate
    return lambda key, found: found if found is not None and where(key, found[0]) is wanted else None


def _map_view(view: MappedView, context: OperatorContext) -> Compute:
    new_value = context.expression(view.value, "key", "value")

    def compute(key: Value, found: tuple[Value, int] | None) -> tuple[Value, int] | None:
        if found is None:
            return None
        value = new_value(key, found[0])
        return None if value is None else (value, found[1])

    return compute


def _join_view(view: JoinedView, context: OperatorContext) -> ValueGetter:
    """`KTableKTable…JoinValueGetter`: the timestamp is the larger one."""
    left, right = value_getter(view.left, context), value_getter(view.right, context)
    joiner = context.expression(view.value, "left", "right", "key")

    def get(key: Value) -> tuple[Value, int] | None:
        one, other = left(key), right(key)
        if (one is None and (other is None or view.kind != "outer")) or (
            other is None and view.kind == "inner"
        ):
            return None
        value = joiner(None if one is None else one[0], None if other is None else other[0], key)
        time = max(found[1] for found in (one, other) if found is not None)
        return None if value is None else (value, time)

    return get


def _transform_view(view: TransformedView, context: OperatorContext) -> Compute:
    """Return the transformer's function; it has no input record when a row is read."""
    node = next(node for node in context.task.program.nodes if node.name == view.node)
    if not isinstance(node, ProcessorNode) or not isinstance(node.behavior, TableTransformValues):
        raise NotRunnableError(f"{view.node} is not a transformValues")
    transform = value_transformer(node.behavior.processor_class, context)
    current = context.task.current

    def compute(key: Value, found: tuple[Value, int] | None) -> tuple[Value, int] | None:
        row, time = (None, -1) if found is None else found
        known, current.record = current.record, NO_RECORD
        value = transform(key, row, time, ())
        current.record = known
        return None if value is None else (value, time)

    return compute


_COMPUTED: Mapping[type, Callable[[Any, OperatorContext], Compute]] = {
    FilteredView: _filter_view,
    MappedView: _map_view,
    TransformedView: _transform_view,
}
"""Class of a view of one table → function that computes a row from the parent's row"""


def _suppressed_view(view: SuppressedView, context: OperatorContext) -> ValueGetter:
    buffer = context.store(view.store, SuppressBytes)
    parent = value_getter(view.parent, context)

    def get(key: Value) -> tuple[Value, int] | None:
        prior = buffer.prior(key)
        return parent(key) if isinstance(prior, bool) else prior

    return get
