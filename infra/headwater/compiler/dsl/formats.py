"""The formats of keys and values of each call's result.

A call without serdes keeps the formats of the preceding call. The value of a count is a long, the key of a
windowed result is windowed, a new key is not windowed, the result of a join has the formats of its left side.
Without any serdes, the formats are the application's defaults. (Kafka Streams drops a serde at each call that
may change the type; documents would have to repeat serdes.)
"""

import re
from typing import Literal

import attrs

from headwater.model.formats import DEFAULT_FORMAT, Format, RecordFormat
from headwater.model.stores import Materialized, Serdes
from headwater.model.windows import HoppingWindow, SessionWindow, SlidingWindow, TumblingWindow, Window

LONG = Format("long")
_WINDOWED = re.compile(r"(?P<kind>time|session)-windowed(?::(?P<size>\d+))?(?::(?P<inner>[A-Za-z].*))?")


def with_serdes(before: RecordFormat, serdes: Serdes | None) -> RecordFormat:
    """Return `before` with the formats that `serdes` sets."""
    if serdes is None:
        return before
    return RecordFormat(_parse_format(serdes.key, before.key), _parse_format(serdes.value, before.value))


def with_store_serdes(before: RecordFormat, materialized: Materialized | None) -> RecordFormat:
    """Return the formats of the records of a store: its own serdes come before the serdes of its input."""
    return with_serdes(before, materialized.serdes if materialized is not None else None)


def with_new_key(before: RecordFormat, serdes: Serdes | None) -> RecordFormat:
    """Return the formats after a call that sets a new key."""
    return with_serdes(RecordFormat(_without_window(before.key), before.value), serdes)


def _without_window(key: Format | None) -> Format | None:
    if key is None or key.window is None:
        return key
    return Format(key.name) if key.name != DEFAULT_FORMAT else None


def with_long_value(before: RecordFormat) -> RecordFormat:
    """Return the formats of the result of a count."""
    return attrs.evolve(before, value=LONG)


def with_windowed_key(before: RecordFormat, window: Window) -> RecordFormat:
    """Return the formats of the result of a windowed aggregation."""
    inner = _without_window(before.key)
    name = inner.name if inner is not None else DEFAULT_FORMAT
    kind: Literal["time", "session"] = "session" if isinstance(window, SessionWindow) else "time"
    return RecordFormat(Format(name, kind, size_of(window)), before.value)


def size_of(window: Window) -> int | None:
    """Return the length of the windows in milliseconds; None if it is not constant."""
    if isinstance(window, TumblingWindow | HoppingWindow):
        return window.size_ms
    return window.difference_ms if isinstance(window, SlidingWindow) else None


def _parse_format(name: str | None, before: Format | None) -> Format | None:
    """Parse `time-windowed[:SIZE][:INNER]`, `session-windowed[:INNER]`, or the name of a format."""
    if name is None:
        return before
    found = _WINDOWED.fullmatch(name)
    if found is None:
        return Format(name)
    kind: Literal["time", "session"] = "time" if found["kind"] == "time" else "session"
    known = before.size_ms if before is not None and before.window == kind else None
    inner = found["inner"] or (before.name if before is not None else DEFAULT_FORMAT)
    return Format(inner, kind, int(found["size"]) if found["size"] is not None else known)
