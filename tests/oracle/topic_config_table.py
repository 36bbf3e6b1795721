"""Generate `infra/spec/kafka_topic_configs.json` from Kafka's `LogConfig` of all supported brokers."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tests.oracle.config_table import find_limits, find_periods

Table = Sequence[Mapping[str, Any]]


def generated(tables: Mapping[str, Table]) -> str:
    """Return the JSON text of the tables by release, one line for each topic config, as in `config_table`."""
    releases = tuple(tables)
    rows = {release: {row["name"]: _row(row) for row in table} for release, table in tables.items()}
    names = sorted({name for of_release in rows.values() for name in of_release})
    lines = (
        f"  {json.dumps(name)}: "
        + json.dumps(list(find_periods([rows[release].get(name) for release in releases], releases)))
        for name in names
    )
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": str(row["type"]).lower(), **find_limits(row["name"], row["validator"], "")}
