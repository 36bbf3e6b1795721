"""Converts data of the recorded cases from bytes to the form of the files; `sources.json` has the formats."""

import base64
import json
from collections.abc import Mapping
from typing import Any

from headwater_spark.engine.records import ValueAndTimestamp, Windowed
from headwater_spark.engine.serdes import Plain, plain_serde
from headwater_spark.engine.serdes.plain import session_windowed, time_windowed
from headwater_spark.engine.stores.key_value import ListBytes
from headwater_spark.engine.stores.windows import SessionBytes
from tests.oracle.recorded import Case, Json

LAST_MS = 2**63 - 1
Formats = Mapping[str, tuple[Plain, Plain]]


def formats(case: Case, kind: str) -> Formats:
    """Return topic → serdes of its keys and values; `kind` is `sources` or `sinks`."""
    return {
        each["topic"]: (_serde(each["key"]), _serde(each["value"]))
        for each in case.json("sources.json")[kind]
    }


def _serde(name: str) -> Plain:
    kind, _, size = name.partition(":")
    if kind == "time-windowed":
        return time_windowed(plain_serde("string"), int(size))
    return session_windowed(plain_serde("string")) if kind == "session-windowed" else plain_serde(name)


def lines(case: Case, file: str) -> list[Json]:
    return [json.loads(line) for line in case.text(file).splitlines()]


def shown(value: Any) -> Any:  # noqa: ANN401 - JSON
    """Return a value in the form of the files."""
    if isinstance(value, Windowed):
        return {"key": value.key, "start": value.start, "end": value.end}
    if isinstance(value, ValueAndTimestamp):
        return {"value": shown(value.value), "timestamp": value.timestamp}
    return {"opaque": "SubscriptionWrapper"} if isinstance(value, bytes) else value


def encoded(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def entries(store: Any) -> list[Json]:  # noqa: ANN401 - any typed store
    """Return the entries of a store in the form of `state.json`."""
    if isinstance(store, SessionBytes):
        return [_entry(key, value) for key, value in store.sessions_ended(0, LAST_MS)]
    if isinstance(store, ListBytes):
        entry_keys = dict.fromkeys(entry_key for entry_key, *_ in store.all())
        return [
            {"key": {"opaque": "TimestampedKeyAndJoinSide"}, "value": {"opaque": "LeftOrRightValue"}}
            for _ in entry_keys
        ]
    return [_entry(key, value) for key, value in store.all()]


def _entry(key: Any, value: Any) -> Json:  # noqa: ANN401
    return {
        "key": {"base64": encoded(key)} if isinstance(key, bytes) else shown(key),
        "value": shown(value),
    }
