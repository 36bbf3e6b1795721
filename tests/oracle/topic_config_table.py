"""Generate `infra/headwater/spec/kafka_topic_configs.json` from the table of Kafka's `LogConfig`."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

_RANGE = re.compile(r"\[(-?\d+),\.\.\.(?:,(-?\d+))?\](?: or (-?\d+))?")
_WORDS = re.compile(r"\[([\w, ]+)\]")
_REPLICAS = "[partitionId]:[brokerId],[partitionId]:[brokerId],..."


def generated(table: Sequence[Mapping[str, str | None]]) -> str:
    """Return the JSON text, one line for each topic config."""
    lines = (f"  {json.dumps(row['name'])}: {json.dumps(_row(row))}" for row in table)
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _row(row: Mapping[str, str | None]) -> dict[str, Any]:
    return {"type": str(row["type"]).lower(), **_limits(row["allowed"])}


def _limits(allowed: str | None) -> dict[str, Any]:
    if allowed is None:
        return {}
    if allowed == _REPLICAS:
        return {"form": "replicas"}
    if limits := _RANGE.fullmatch(allowed):
        least, most, extra = limits.groups()
        return {
            "least": int(least),
            **({"most": int(most)} if most else {}),
            **({"extra": [int(extra)]} if extra else {}),
        }
    words = _WORDS.fullmatch(allowed)
    if words is None:
        raise ValueError(f"a validator without a translation: {allowed}")
    return {"values": words[1].split(", ")}
