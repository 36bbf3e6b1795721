"""Generate `infra/spec/kafka_topic_configs.json` from Kafka's `LogConfig` of all supported brokers."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tests.oracle.config_table import find_limits, find_periods

Table = Sequence[Mapping[str, Any]]

_OMITTED = {"message.format.version"}
"""Brokers ignore it since 3.0, and do not have it since 4.0."""


def generated(tables: Mapping[str, Table]) -> str:
    """Return the JSON text of the tables by release, one line for each topic config, as in `config_table`."""
    releases = tuple(tables)
    rows = {
        release: {row["name"]: _row(row) for row in table if row["name"] not in _OMITTED}
        for release, table in tables.items()
    }
    names = sorted({name for of_release in rows.values() for name in of_release})
    lines = (
        f"  {json.dumps(name)}: "
        + json.dumps(list(find_periods([rows[release].get(name) for release in releases], releases)))
        for name in names
    )
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": str(row["type"]).lower(), **find_limits(row["name"], row["validator"], "")}
