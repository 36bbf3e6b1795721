"""What `Materialized` may say where."""

from collections.abc import Collection

from infra.compiler.dsl.builder import Builder
from infra.compiler.dsl.refusals import ARGUMENT, lint, refused, unfit
from infra.compiler.dsl.stores import SESSION_KINDS, WINDOW_KINDS, window_span_ms
from infra.model.problems import ProblemCode
from infra.model.stores import Materialized, StoreKind
from infra.model.windows import SessionWindow, Window


def accepts_supplier(
    builder: Builder, materialized: Materialized | None, kinds: Collection[StoreKind], call: str
) -> None:
    """A supplier must be of a kind that the call takes, and brings its own type."""
    supplier = materialized.supplier if materialized is not None else None
    if materialized is None or supplier is None:
        return
    if supplier.kind not in kinds:
        builder.refuse(
            unfit(
                f"`{call}` does not take a {supplier.kind.value} store.",
                node=supplier.name,
                expected=" or ".join(sorted(kind.value for kind in kinds)),
                found=supplier.kind.value,
                at=builder.at,
                fix="Give a supplier of an expected kind, or the store's name alone.",
            )
        )
    if materialized.type is not None:
        builder.refuse(
            refused(
                f"Store {supplier.name} has a supplier and a store type.",
                throws=ARGUMENT,
                node=supplier.name,
                expected="a supplier or a type",
                found=f"supplier and type {materialized.type.value}",
                at=builder.at,
                fix="Drop the type: the supplier decides it.",
            )
        )


def windowed_retention_ms(
    builder: Builder, materialized: Materialized | None, window: Window, store: str, call: str
) -> int:
    """The retention of a window's store: as given, at least the window's own span; a supplier's is not looked at."""
    kinds = SESSION_KINDS if isinstance(window, SessionWindow) else WINDOW_KINDS
    accepts_supplier(builder, materialized, kinds, call)
    span = window_span_ms(window)
    retention = materialized.retention_ms if materialized is not None else None
    if retention is not None and retention < span:
        builder.refuse(
            refused(
                f"Store {store} keeps its windows for a shorter time than they are open.",
                throws=ARGUMENT,
                node=store,
                expected=f"a retention of at least {span} ms ({_SPANS[type(window).__name__]})",
                found=f"{retention} ms",
                at=builder.at,
                fix=f"Set `retention` to {span} ms or more, or remove it.",
            )
        )
    used = span if retention is None else retention
    supplier = materialized.supplier if materialized is not None else None
    if supplier is not None and supplier.retention_ms not in {None, used}:
        builder.refuse(
            lint(
                ProblemCode.SUPPLIER_RETENTION_IGNORED,
                f"The changelog of store {store} does not follow the retention of its supplier.",
                node=store,
                expected=f"{supplier.retention_ms} ms (the supplier's)",
                found=f"{used} ms (the window's)",
                why="Kafka Streams computes the changelog's retention.ms from the window or from `retention`, and never "
                "looks at the supplier: after a restore the store holds less, or more, than before.",
                at=builder.at,
                fix=f"Set `retention: {supplier.retention_ms}` beside the supplier.",
            )
        )
    return used


_SPANS = {
    "TumblingWindow": "size and grace",
    "HoppingWindow": "size and grace",
    "SlidingWindow": "twice the time difference, and grace",
    "SessionWindow": "inactivity gap and grace",
    "UnlimitedWindow": "without end",
}
