"""The recorded cases of operators without joins: record for record what the real Kafka Streams answered."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from infra.model.behaviours import Format
from infra.model.nodes import SinkNode
from spark_jobs.processors import Processor, ProcessorContext, Record
from spark_jobs.runtime.records import Windowed
from spark_jobs.runtime.serdes import serde_of
from tests.runtime.driver import APPLICATION, NO_CACHE, Driver

CASES = Path(__file__).parents[2] / "oracle" / "cases"


class Adder(Processor):
    """`adder(number-store, +1)` of the cases."""

    store = "number-store"

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        self.numbers = context.state_store(self.store)

    def process(self, record: Record) -> None:
        total = (self.numbers.get(record.key) or 0) + 1
        self.numbers.put(record.key, total)
        self.context.forward(record.with_value(total))


BEFORE = "value.split(':')[0]"
AFTER = "int(value.split(':')[1])"

Step = dict[str, Any]
FUNCTIONS: dict[str, dict[int, Step]] = {
    "aggregate": {2: {"init": "''", "add": "total + value"}},
    "chained_repartitions": {
        1: {"key": BEFORE},
        4: {"key": "'n' + str(value)"},
        5: {"add": "total + value"},
        7: {"key": "str(value % 2)"},
    },
    "cogroup_two": {
        4: {"add": "total + 'L' + value"},
        5: {"add": "total + 'R' + value"},
        6: {"init": "''"},
    },
    "diamond_repartitions": {1: {"key": BEFORE}, 4: {"key": BEFORE}, 7: {"key": "key + '!'"}},
    "group_by_key_after_map": {
        1: {"key": BEFORE, "value": AFTER},
        2: {"value": "value * 10"},
        4: {"add": "total + value"},
    },
    "group_by_key_no_repartition": {1: {"value": "value + '!'"}, 2: {"where": "key != 'c'"}},
    "group_by_renamed": {1: {"key": BEFORE}},
    "hopping_count": {},
    "in_memory_stores": {},
    "large_deep_chain_30": {
        place: {"key": "value"} if place % 3 == 1 else {"add": "value"} for place in range(1, 88) if place % 3
    },
    "logging_overrides": {1: {"key": BEFORE}},
    "merge_different_counts": {3: {"key": BEFORE}},
    "multi_topic_source": {1: {"key": BEFORE}},
    "one_group_two_aggs": {1: {"key": BEFORE}, 6: {"add": "max(total, value)"}},
    "papi_logged": {1: {"class": "Adder"}},
    "papi_unlogged": {1: {"class": "Adder"}},
    "process_named_store": {2: {"class": "Adder"}},
    "reduce": {2: {"add": "max(total, value)"}},
    "repartition_explicit_count": {1: {"key": BEFORE}},
    "repartition_unnamed": {},
    "retention_grid_1": {},
    "session_count": {},
    "sliding_count": {},
    "stateless_chain": {
        1: {"where": f"{AFTER} > 0"},
        2: {"where": f"{BEFORE} == 'milk'"},
        3: {"key": "key.upper()", "value": "value"},
        4: {"each": f"[dict(key=key, value={BEFORE}), dict(key=key, value=str({AFTER}))]"},
        6: {"key": "value"},
        7: {"value": "key + '=' + value"},
    },
    "suppress_window_close": {},
    "table_source_materialized_opt_all": {},
    "table_source_materialized_opt_none": {},
    "to_table_repartition": {1: {"key": BEFORE}},
    "topic_prefixed_configs": {1: {"key": BEFORE}},
    "tumbling_count": {},
}


def _driver(case: Path) -> Driver:
    document = yaml.safe_load((case / "document.yaml").read_text())
    steps = document["topology"]
    for place, functions in FUNCTIONS[case.name].items():
        (call, told), *_ = steps[place].items()
        steps[place] = {call: {**(told or {}), **functions}}
    topology = yaml.safe_dump(steps, sort_keys=False)
    config = document["application"].get("config", {})
    return Driver(topology, NO_CACHE, {"Adder": Adder}, config=config)


def _lines(case: Path, name: str) -> list[dict[str, Any]]:
    file = case / name
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def _shown(wanted: Format, data: bytes | None) -> Any:  # noqa: ANN401
    if data is None:
        return None
    value = serde_of(wanted, {}).deserialize(data)
    return value._asdict() if isinstance(value, Windowed) else value


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_answers_as_kafka_streams_did(name: str) -> None:
    case = CASES / name
    driver = _driver(case)
    formats = {
        source["topic"]: source for source in json.loads((case / "sources.json").read_text())["sources"]
    }
    for line in _lines(case, "input.jsonl"):
        if "advance_wall_clock_ms" in line:
            driver.all_outputs += driver.advance_wall_clock(line["advance_wall_clock_ms"])
            continue
        key, value = (
            None
            if line[part] is None
            else serde_of(Format(formats[line["topic"]][part]), {}).serialize(line[part])
            for part in ("key", "value")
        )
        driver.feed(driver.record(line["topic"], key, value, line["timestamp"]))

    answers = [
        {field: line[field] for field in ("topic", "key", "value", "timestamp")}
        for line in _lines(case, "output.jsonl")
    ]
    assert _by_topic(_outputs(driver)) == _by_topic(answers)
    recorded = _lines(case, "internal_records.jsonl")
    internal = _without_chance(_internal(driver), recorded)
    assert _by_topic(internal) == _by_topic(_without_chance(recorded, recorded))


def _outputs(driver: Driver) -> list[dict[str, Any]]:
    formats = {
        program.topic(node.name): node.writes.format
        for program in driver.programs
        for node in program.nodes
        if isinstance(node, SinkNode) and node.writes is not None
    }
    shown = []
    for topic, _, key, value, timestamp, _ in driver.all_outputs:
        if topic.startswith(f"{APPLICATION}-"):
            continue
        record = formats[topic]
        key_format, value_format = record.key or Format("string"), record.value or Format("string")
        shown.append(
            {
                "topic": topic,
                "key": _shown(key_format, key),
                "value": _shown(value_format, value),
                "timestamp": timestamp,
            }
        )
    return shown


def _internal(driver: Driver) -> list[dict[str, Any]]:
    def text(data: bytes | None) -> str | None:
        return None if data is None else base64.b64encode(data).decode()

    return [
        {
            "topic": topic.replace(f"{APPLICATION}-", "<app>-"),
            "key_base64": text(key),
            "value_base64": text(value),
            "timestamp": timestamp,
        }
        | ({"headers": [{"key": name, "base64": text(data)} for name, data in headers]} if headers else {})
        for topic, _, key, value, timestamp, headers in driver.all_outputs
        if topic.startswith(f"{APPLICATION}-")
    ]


def _without_chance(found: list[dict[str, Any]], recorded: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Suppressions log what a commit changed in the order of a hash set, with the producer's time."""
    by_clock = {record["topic"] for record in recorded if record["timestamp"] is None}
    timeless = [record | {"timestamp": None} for record in found if record["topic"] in by_clock]
    rest = [record for record in found if record["topic"] not in by_clock]
    return rest + sorted(timeless, key=str)


def _by_topic(records: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Kafka keeps order within a topic only."""
    grouped: dict[str, list[dict[str, Any]]] = {}
    for record in records:
        grouped.setdefault(record["topic"], []).append(record)
    return grouped
