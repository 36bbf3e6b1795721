"""`groupBy`, `groupByKey` and `windowedBy` of a stream."""

from headwater.compiler.dsl.builder import Builder
from headwater.compiler.dsl.declarations import ProcessorDeclaration
from headwater.compiler.dsl.formats import with_new_key, with_serdes
from headwater.compiler.dsl.handles import GroupedStream, Handle, Stream, WindowedStream
from headwater.compiler.dsl.problems import ARGUMENT, topology_error
from headwater.model import operators as op
from headwater.model.behaviors import MapRecord
from headwater.model.windows import (
    HoppingWindow,
    SessionWindow,
    SlidingWindow,
    TumblingWindow,
    UnlimitedWindow,
    Window,
)


def group_by_key(_builder: Builder, on: Stream, call: op.GroupByKey) -> Handle:
    return GroupedStream(
        on.name, on.sources, on.node, on.repartition_required, call.name, with_serdes(on.record, call.serdes)
    )


def group_by(builder: Builder, on: Stream, call: op.GroupBy) -> Handle:
    """`KStream#groupBy`: the name of `Grouped` is also the name of the key selector node."""
    name = builder.named(call.name, "KSTREAM-KEY-SELECT-")
    declares = ProcessorDeclaration(name, behavior=MapRecord(call.key, keeps_value=True))
    record = with_new_key(on.record, call.serdes)
    node = builder.add(name, declares, on.node, changes_key=True)
    return GroupedStream(name, on.sources, node, repartition_required=True, group=call.name, record=record)


def windowed_by(builder: Builder, on: GroupedStream, call: op.WindowedBy) -> Handle:
    check_window(builder, call.window)
    if call.emit_on_close and isinstance(call.window, UnlimitedWindow):
        builder.reject(
            topology_error(
                "An unlimited window never closes, so it cannot emit on close.",
                throws=ARGUMENT,
                at=builder.at,
                expected="emit on update",
                found="emit: onWindowClose",
                fix="Remove `emit`, or choose a window that ends.",
            )
        )
    return WindowedStream(on, call.window, call.emit_on_close)


def check_window(builder: Builder, window: Window) -> None:
    """Check a window as the constructors of the window classes do."""
    for option, expected, found in _wrong_options(window):
        builder.reject(
            topology_error(
                f"The window's {option} is out of range.",
                throws=ARGUMENT,
                at=builder.at,
                expected=expected,
                found=f"{found} ms",
                fix=f"Set `{option}` to {expected}.",
            )
        )


def _wrong_options(window: Window) -> list[tuple[str, str, int]]:
    wrong: list[tuple[str, str, int]] = []
    if isinstance(window, TumblingWindow | HoppingWindow) and window.size_ms <= 0:
        wrong.append(("size", "more than 0 ms", window.size_ms))
    elif isinstance(window, HoppingWindow) and not 0 < window.advance_ms <= window.size_ms:
        wrong.append(
            ("advance", f"more than 0 ms and at most the size, {window.size_ms} ms", window.advance_ms)
        )
    elif isinstance(window, SlidingWindow) and window.difference_ms < 0:
        wrong.append(("difference", "0 ms or more", window.difference_ms))
    elif isinstance(window, SessionWindow) and window.gap_ms < 0:
        wrong.append(("gap", "0 ms or more", window.gap_ms))
    elif isinstance(window, UnlimitedWindow) and window.start_ms < 0:
        wrong.append(("start", "0 ms or more", window.start_ms))
    if not isinstance(window, UnlimitedWindow) and window.grace_ms < 0:
        wrong.append(("grace", "0 ms or more", window.grace_ms))
    return wrong
