"""What the window of a stream-stream join and its stores must be like (facts 5.3, 5.4)."""

from collections.abc import Iterator

from infra.compiler.dsl.refusals import ARGUMENT, STREAMS, lint, refused
from infra.compiler.dsl.stores import WINDOW_KINDS, join_retention_ms, supplier_faults
from infra.model import operators as op
from infra.model.problems import Location, Problem, ProblemCode
from infra.model.stores import StoreSupplier
from infra.model.windows import JoinWindow


def faults_of_window(call: op.Join, window: JoinWindow, at: Location | None) -> Iterator[Problem]:
    """The checks of `JoinWindows` and `KStreamImplJoin`, and a lint for logging that reaches no store."""
    if window.before_ms + window.after_ms < 0 or window.grace_ms < 0:
        yield refused(
            "The join's window has a negative length or grace.",
            throws=ARGUMENT,
            node=call.name,
            expected="before + after and grace of 0 ms or more",
            found=f"before {window.before_ms} ms, after {window.after_ms} ms, grace {window.grace_ms} ms",
            at=at,
            fix="Widen the window.",
        )
    suppliers = [each for each in (call.this_supplier, call.other_supplier) if each is not None]
    if len({supplier.name for supplier in suppliers}) < len(suppliers):
        yield refused(
            f"Both store suppliers of the join are named {suppliers[0].name}.",
            throws=STREAMS,
            node=suppliers[0].name,
            expected="two names",
            found=suppliers[0].name,
            at=at,
            fix="Name the two stores differently.",
        )
    for supplier in suppliers:
        yield from supplier_faults(supplier, at)
        yield from _misfits(supplier, window, at)
    if call.logging is not None and not (call.logging.enabled and not call.logging.overrides):
        yield from (_logging_ignored(call, supplier, at) for supplier in suppliers)


def _misfits(supplier: StoreSupplier, window: JoinWindow, at: Location | None) -> Iterator[Problem]:
    size, retention = window.before_ms + window.after_ms, join_retention_ms(window)
    duplicates = str(supplier.retain_duplicates).lower()
    for option, fits, expected, found in (
        ("kind", supplier.kind in WINDOW_KINDS, "window", supplier.kind.value),
        ("retainDuplicates", supplier.retain_duplicates, "true", duplicates),
        ("windowSize", supplier.window_size_ms == size, f"{size} ms", f"{supplier.window_size_ms} ms"),
        ("retention", supplier.retention_ms == retention, f"{retention} ms", f"{supplier.retention_ms} ms"),
    ):
        if not fits:
            yield refused(
                f"The `{option}` of the join's store {supplier.name} does not fit its window.",
                throws=STREAMS,
                node=supplier.name,
                expected=f"{option} {expected}",
                found=found,
                at=at,
                fix=f"Set `{option}` of the supplier to {expected}.",
            )


def _logging_ignored(call: op.Join, supplier: StoreSupplier, at: Location | None) -> Problem:
    wanted = call.logging is not None and call.logging.enabled
    return lint(
        ProblemCode.LOGGING_IGNORED,
        f"The join's logging settings do not reach its store {supplier.name}.",
        node=supplier.name,
        expected="the given changelog configs" if wanted else "logging off",
        found="logged, with the default configs",
        why="Kafka Streams wraps a supplied join store in a builder of its own: always logged, without "
        "overrides. The settings still apply to the shared store of a left or outer join.",
        at=at,
        fix="Name the stores with `storeName` instead of supplying them, or drop `logging`.",
    )
