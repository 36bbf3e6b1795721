"""Which topic configs are refused offline is what a broker refuses: compared with Kafka's `LogConfig`."""

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import headwater.spec
from headwater.spec.topic_configs import allowed_values, topic_configs
from tests.oracle.kafka_streams import RECORDED, KafkaStreams

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


pytestmark = pytest.mark.oracle
_TABLE = Path(headwater.spec.__file__).parent / "kafka_topic_configs.json"
_TEXTS: tuple[str, ...] = (
    "",
    "yes",
    "TRUE",
    " false ",
    "+5",
    "-0",
    "1e3",
    "0x1",
    "1.5",
    "0.5f",
    ".5",
    "5.",
    "NaN",
    "Infinity",
)
_TEXTS += ("compact", "compact, delete", "compact,", "COMPACT", "bogus", "gzip", "CreateTime", "createtime")
_TEXTS += ("*", "0:1", "0:1, 1:2", "0:1,", "*,0:1", "9" * 30)
_NUMBERS = [
    -(2**63) - 1,
    -(2**63),
    -(2**31) - 1,
    -(2**31),
    -131073,
    -131072,
    *range(-4, 24),
    1048575,
    1048576,
]
_NUMBERS += [2**31 - 1, 2**31, 2**63 - 1, 2**63]


@pytest.fixture(scope="module")
def kafka_streams(kafka_streams_of: Callable[[str], KafkaStreams]) -> KafkaStreams:
    return kafka_streams_of(RECORDED)


def test_the_table_is_that_of_kafka(kafka_streams: KafkaStreams) -> None:
    table, _ = kafka_streams.topic_configs()
    if "UPDATE_GOLDEN" in os.environ:
        _TABLE.write_text(generated(table), encoding="utf-8")
    assert _TABLE.read_text(encoding="utf-8") == generated(table)


def test_values_are_refused_as_by_a_broker(kafka_streams: KafkaStreams) -> None:
    tried = [(name, text) for name in topic_configs() for text in (*_TEXTS, *map(str, _NUMBERS))]
    _, refusals = kafka_streams.topic_configs([{name: text} for name, text in tried])

    ours = {pair for pair in tried if allowed_values(*pair) is not None}
    assert ours == {pair for pair, refusal in zip(tried, refusals, strict=True) if refusal is not None}


def test_an_unknown_name_is_refused_by_a_broker(kafka_streams: KafkaStreams) -> None:
    assert kafka_streams.topic_configs([{"no.such.config": "1"}])[1] == [
        "Unknown topic config name: no.such.config"
    ]
