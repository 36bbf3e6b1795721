"""How a table's current value is looked up (`KTableValueGetter`)."""

from collections.abc import Callable

from infra.model.behaviours import (
    FilteredView,
    JoinedView,
    MappedView,
    StoreView,
    SuppressedView,
    TableTransformValues,
    TableView,
    TransformedView,
)
from infra.model.nodes import ProcessorNode
from spark_jobs.runtime.operators.interface import NotRunnableError, OperatorContext, ValueGetter
from spark_jobs.runtime.operators.processors import value_transformer
from spark_jobs.runtime.records import NO_RECORD, Value
from spark_jobs.runtime.stores.sessions import SessionBytes
from spark_jobs.runtime.stores.suppress_buffer import SuppressBytes
from spark_jobs.runtime.stores.versioned import VersionedBytes
from spark_jobs.runtime.stores.windows import WindowBytes

AsOfGetter = Callable[[Value, int], tuple[Value, int] | None]
"""(key, time) → (value, timestamp) of the version valid at that time."""


def value_getter(view: TableView, context: OperatorContext) -> ValueGetter:
    """The look-up of a view; windowed tables are asked by `Windowed` keys."""
    match view:
        case StoreView():
            return _of_store(context.task.typed_store(view.store))
        case FilteredView():
            return _filtered(view, context)
        case MappedView():
            return _mapped(view, context)
        case JoinedView():
            return _joined(view, context)
        case TransformedView():
            return _transformed(view, context)
        case SuppressedView():
            return _suppressed(view, context)


def as_of_getter(view: TableView, context: OperatorContext) -> AsOfGetter | None:
    """The look-up into a versioned store, through filters and mappings; None where there is no such store."""
    match view:
        case StoreView():
            typed = context.task.typed_store(view.store)
            if not isinstance(typed, VersionedBytes):
                return None
            return lambda key, time: _pair(typed.get(key, time))
        case FilteredView() | MappedView():
            parent = as_of_getter(view.parent, context)
            if parent is None:
                return None
            compute = _filter(view, context) if isinstance(view, FilteredView) else _map(view, context)
            return lambda key, time: compute(key, parent(key, time))
        case _:
            return None


Compute = Callable[[Value, tuple[Value, int] | None], tuple[Value, int] | None]


def _of_store(typed: Value) -> ValueGetter:
    match typed:
        case VersionedBytes():
            return lambda key: _pair(typed.get(key))
        case SessionBytes():
            return lambda session: _session_value(typed, session)
        case WindowBytes():
            return lambda windowed: typed.fetch(windowed.key, windowed.start)
        case _:
            getter: ValueGetter = typed.get
            return getter


def _pair(found: tuple[Value, int, int | None] | None) -> tuple[Value, int] | None:
    return None if found is None else found[:2]


def _session_value(typed: SessionBytes, session: Value) -> tuple[Value, int] | None:
    value = typed.fetch_session(session.key, session.start, session.end)
    return None if value is None else (value, session.end)


def _filtered(view: FilteredView, context: OperatorContext) -> ValueGetter:
    parent, compute = value_getter(view.parent, context), _filter(view, context)
    return lambda key: compute(key, parent(key))


def _filter(view: FilteredView, context: OperatorContext) -> Compute:
    where = context.expression(view.where, "key", "value")
    wanted = not view.negate
    return lambda key, found: found if found is not None and where(key, found[0]) is wanted else None


def _mapped(view: MappedView, context: OperatorContext) -> ValueGetter:
    parent, compute = value_getter(view.parent, context), _map(view, context)
    return lambda key: compute(key, parent(key))


def _map(view: MappedView, context: OperatorContext) -> Compute:
    new_value = context.expression(view.value, "key", "value")

    def compute(key: Value, found: tuple[Value, int] | None) -> tuple[Value, int] | None:
        if found is None:
            return None
        value = new_value(key, found[0])
        return None if value is None else (value, found[1])

    return compute


def _joined(view: JoinedView, context: OperatorContext) -> ValueGetter:
    """`KTableKTable…JoinValueGetter`: the timestamp is the later one."""
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


def _transformed(view: TransformedView, context: OperatorContext) -> ValueGetter:
    """The transformer knows no input record here."""
    node = next(node for node in context.task.program.nodes if node.name == view.node)
    if not isinstance(node, ProcessorNode) or not isinstance(node.behaviour, TableTransformValues):
        raise NotRunnableError(f"{view.node} is no transformValues")
    parent = value_getter(view.parent, context)
    transform = value_transformer(node.behaviour.processor_class, context)
    ambient = context.task.ambient

    def get(key: Value) -> tuple[Value, int] | None:
        found = parent(key)
        known, ambient.record = ambient.record, NO_RECORD
        value = transform(key, None if found is None else found[0])
        ambient.record = known
        return None if value is None else (value, -1 if found is None else found[1])

    return get


def _suppressed(view: SuppressedView, context: OperatorContext) -> ValueGetter:
    buffer = context.store(view.store, SuppressBytes)
    parent = value_getter(view.parent, context)

    def get(key: Value) -> tuple[Value, int] | None:
        prior = buffer.prior(key)
        return parent(key) if isinstance(prior, bool) else prior

    return get
