"""Formats of keys and values along the calls.

What a call does not say stays as the preceding call had it: a count's value is a long, a windowed result's
key wraps the key it had, a new key of a windowed one is plain again, a join's result is formatted as its left
side. What no call says is the application's default. (Kafka Streams forgets a serde at every call that might
change the type; a document would have to repeat itself.)
"""

import re
from typing import Literal

import attrs

from infra.model.behaviors import DEFAULT_FORMAT, Format, RecordFormat
from infra.model.stores import Materialized, Serdes
from infra.model.windows import HoppingWindow, SessionWindow, SlidingWindow, TumblingWindow, Window

LONG = Format("long")
_WINDOWED = re.compile(r"(?P<kind>time|session)-windowed(?::(?P<size>\d+))?(?::(?P<inner>[A-Za-z].*))?")


def with_serdes(before: RecordFormat, serdes: Serdes | None) -> RecordFormat:
    """`before`, with what `serdes` says instead."""
    if serdes is None:
        return before
    return RecordFormat(_named(serdes.key, before.key), _named(serdes.value, before.value))


def with_store_serdes(before: RecordFormat, materialized: Materialized | None) -> RecordFormat:
    return with_serdes(before, materialized.serdes if materialized is not None else None)


def with_new_key(before: RecordFormat, serdes: Serdes | None) -> RecordFormat:
    """The result of a call that gives a new key."""
    return with_serdes(RecordFormat(without_window(before.key), before.value), serdes)


def without_window(key: Format | None) -> Format | None:
    """The format of the key inside a windowed one."""
    if key is None or key.window is None:
        return key
    return Format(key.name) if key.name != DEFAULT_FORMAT else None


def with_long_value(before: RecordFormat) -> RecordFormat:
    return attrs.evolve(before, value=LONG)


def with_windowed_key(before: RecordFormat, window: Window) -> RecordFormat:
    """The result of a windowed aggregation."""
    inner = without_window(before.key)
    name = inner.name if inner is not None else DEFAULT_FORMAT
    kind: Literal["time", "session"] = "session" if isinstance(window, SessionWindow) else "time"
    return RecordFormat(Format(name, kind, size_of(window)), before.value)


def size_of(window: Window) -> int | None:
    """How long the windows are; None where they have no common length."""
    if isinstance(window, TumblingWindow | HoppingWindow):
        return window.size_ms
    return window.difference_ms if isinstance(window, SlidingWindow) else None


def _named(name: str | None, before: Format | None) -> Format | None:
    """`time-windowed[:SIZE][:INNER]`, `session-windowed[:INNER]`, or a plain name."""
    if name is None:
        return before
    found = _WINDOWED.fullmatch(name)
    if found is None:
        return Format(name)
    kind: Literal["time", "session"] = "time" if found["kind"] == "time" else "session"
    known = before.size_ms if before is not None and before.window == kind else None
    inner = found["inner"] or (before.name if before is not None else DEFAULT_FORMAT)
    return Format(inner, kind, int(found["size"]) if found["size"] is not None else known)
