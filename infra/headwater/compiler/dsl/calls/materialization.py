"""Checks of `Materialized` and of store suppliers."""

from collections.abc import Collection, Iterable

from headwater.compiler.dsl.builder import Builder
from headwater.compiler.dsl.messages import ARGUMENT, lint_problem, topology_error, unsupported_call
from headwater.compiler.dsl.stores import (
    KEY_VALUE_KINDS,
    SESSION_KINDS,
    WINDOW_KINDS,
    builder_problems,
    is_versioned,
    supplier_problems,
    window_span_ms,
)
from headwater.model.durations import duration_text
from headwater.model.problems import Problem, ProblemCode
from headwater.model.stores import Materialized, StoreBuilder, StoreKind, StoreSupplier
from headwater.model.windows import (
    HoppingWindow,
    SessionWindow,
    SlidingWindow,
    TumblingWindow,
    UnlimitedWindow,
    Window,
)

_SPANS = {
    TumblingWindow: "size and grace",
    HoppingWindow: "size and grace",
    SlidingWindow: "twice the time difference, and grace",
    SessionWindow: "inactivity gap and grace",
    UnlimitedWindow: "without end",
}


def check_materialized(
    builder: Builder, materialized: Materialized | None, kinds: Collection[StoreKind]
) -> None:
    """Check that a supplier has one of `kinds` and is not combined with a store type."""
    if materialized is None:
        return
    if materialized.retention_ms is not None and materialized.retention_ms < 0:
        builder.reject(_negative_retention(materialized.retention_ms))
    elif materialized.retention_ms is not None and kinds is KEY_VALUE_KINDS:
        builder.reject(_retention_ignored(materialized))
    supplier = materialized.supplier
    if supplier is None:
        return
    builder.problems.extend(supplier_problems(supplier, builder.at))
    if supplier.kind not in kinds:
        builder.reject(
            unsupported_call(
                f"Store {supplier.name} is a {supplier.kind.value} store, which this call does not accept.",
                node=supplier.name,
                expected=" or ".join(sorted(kind.value for kind in kinds)),
                found=supplier.kind.value,
                fix="Give a supplier of an expected kind, or only the name of the store.",
            )
        )
    if materialized.type is not None:
        builder.reject(
            topology_error(
                f"Store {supplier.name} has a supplier and a store type.",
                throws=ARGUMENT,
                node=supplier.name,
                expected="a supplier or a type",
                found=f"supplier and type {materialized.type.value}",
                fix="Remove the type: the supplier determines it.",
            )
        )


def check_builders(builder: Builder, builders: Iterable[StoreBuilder]) -> None:
    for each in builders:
        builder.problems.extend(builder_problems(each, builder.at))


def windowed_retention_ms(
    builder: Builder, materialized: Materialized | None, window: Window, store: str
) -> int:
    """Return the retention of a windowed store in milliseconds: `Materialized`'s, else the window's span.

    The retention of a supplier is ignored.
    """
    check_materialized(
        builder, materialized, SESSION_KINDS if isinstance(window, SessionWindow) else WINDOW_KINDS
    )
    span = window_span_ms(window)
    given = materialized.retention_ms if materialized is not None else None
    if given is not None and given < span:
        builder.reject(_too_short(store, window, given))
    used = span if given is None else given
    supplier = materialized.supplier if materialized is not None else None
    if supplier is not None and supplier.retention_ms not in {None, used}:
        builder.reject(_supplier_ignored(supplier, used, span))
    return used


def _negative_retention(given: int) -> Problem:
    return topology_error(
        "The retention of a store is negative.",
        throws=ARGUMENT,
        expected="0ms or more",
        found=duration_text(given),
        fix="Set `retention` to 0ms or more, or remove it.",
    )


def _retention_ignored(materialized: Materialized) -> Problem:
    name, retention = materialized.store_name, duration_text(materialized.retention_ms)
    versioned = f"`supplier: {{name: {name or 'NAME'}, kind: versionedKeyValue, retention: {retention}}}`"
    return lint_problem(
        ProblemCode.CONFIG_HAS_NO_EFFECT,
        f"The `retention` of {f'store {name}' if name else 'an unnamed store'} has no effect.",
        node=name,
        expected="a windowed result",
        found=f"a retention of {retention} on a result without windows",
        why="Kafka Streams ignores `Materialized.withRetention` where there is no window: the store keeps "
        "every key and has no history.",
        fix="Remove it: the supplier has its own."
        if is_versioned(materialized)
        else f"Remove it. For a versioned store, set {versioned} in place of `store`.",
    )


def _too_short(store: str, window: Window, given: int) -> Problem:
    span = duration_text(window_span_ms(window))
    return topology_error(
        f"Store {store} keeps its windows for a shorter time than they stay open.",
        throws=ARGUMENT,
        node=store,
        expected=f"a retention of at least {span} ({_SPANS[type(window)]})",
        found=duration_text(given),
        fix=f"Set `retention` to {span} or more, or remove it.",
    )


def _supplier_ignored(supplier: StoreSupplier, used: int, span: int) -> Problem:
    """Return the warning; `span` is the least retention that Kafka Streams accepts."""
    of_supplier = f"`retention: {duration_text(used)}` in the supplier"
    kept = supplier.retention_ms
    return lint_problem(
        ProblemCode.SUPPLIER_RETENTION_IGNORED,
        f"The changelog of store {supplier.name} does not follow the retention of its supplier.",
        node=supplier.name,
        expected=f"{duration_text(supplier.retention_ms)} (the supplier's)",
        found=f"{duration_text(used)} (the window's)",
        why="Kafka Streams computes the changelog's retention.ms from the window or from `retention`, "
        "and ignores the supplier: after a restore the store contains fewer or more records than "
        "before.",
        fix=f"Set {of_supplier}."
        if kept is None or kept < span
        else f"Set `retention: {duration_text(kept)}` next to the supplier, or {of_supplier}.",
    )
