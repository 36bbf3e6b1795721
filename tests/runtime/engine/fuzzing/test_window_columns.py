"""Sessions and sliding windows of random data, counted in columns with record caches of any size.

Columns lead to the same records as single records, and as Kafka Streams 4.1.1. Values are longs, as only
counts of longs are computed in columns.
"""

import base64
import json
import os
import random
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import pytest

from headwater_spark.engine import wiring
from headwater_spark.engine.records import InputRecord, OutputRecord
from headwater_spark.engine.task import Task
from headwater_spark.worker.local_state import MemoryState
from headwater_spark.worker.task_input import number_keys
from tests.oracle.kafka_streams import KafkaStreams, Refusal
from tests.runtime.engine.fuzzing.functions import FORMATS, functions_of
from tests.runtime.engine.fuzzing.test_caches import programs_of
from tests.runtime.engine.fuzzing.test_data import Outputs, first_difference, shown, theirs
from tests.runtime.partition_columns import column_input
from tests.yaml_text import load_yaml

_SEEDS = int(os.environ.get("HEADWATER_FUZZ_EXAMPLES", "200"))
_FIRST = int(os.environ.get("HEADWATER_FUZZ_SEED", "1000"))
_SIZES = (1, 60, 90, 130, 200, 350, 700, 1_500, 5_000, 1_000_000)
_KEYS = ("a", "b", "c", "dd", "a", "b", "g is longer", "ä", None)
_WHERE = functions_of(FORMATS["long"], partial=False).where
_OUT = "- toStream: null\n- to: {topic: out}\n"


def _counted(window: str, then: str = "") -> str:
    return (
        "- stream: {topic: in-a}\n- groupByKey: null\n"
        f"- windowedBy: {{{window}}}\n- count: null\n{then}{_OUT}"
    )


TOPOLOGIES = {
    "sessions": _counted("session: {gap: 3s, grace: 10s}"),
    "sessions without grace": _counted("session: {gap: 2s, grace: 0s}"),
    "sessions with old values": _counted(
        "session: {gap: 4s, grace: 60s}", f'- filter: {{where: "{_WHERE}"}}\n'
    ),
    "sliding windows": _counted("sliding: {difference: 3s, grace: 10s}"),
    "sliding windows without grace": _counted("sliding: {difference: 2s, grace: 0s}"),
}
Batches = list[list[dict[str, Any]]]


@pytest.fixture(autouse=True)
def _keys_are_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys are in the text format of the Java helper, and longs may be bad; here, all can be read."""
    monkeypatch.setattr(wiring, "ignores_values", lambda _: True)


def _document(name: str) -> dict[str, Any]:
    application = {"id": "app", "config": {"default.value.serde": "long"}}
    return {"application": application, "topology": load_yaml(TOPOLOGIES[name])}


def _batches(chance: random.Random) -> Batches:
    """Return records without headers in the order of time; some may be late, and few are in the future."""
    now = 100_000
    batches: Batches = []
    for _ in range(3):
        batches.append([])
        late = chance.choice([0, 0, 0.02, 0.1, 0.4])
        for _ in range(chance.choice([1, 5, 15, 40, 80])):
            now += chance.choice([1, 1, 250, 500, 1_000, 1_999, 3_001, 9_000])
            behind = chance.choice([600, 2_000, 6_000, 15_000, 40_000]) if chance.random() < late else 0
            if chance.random() < late / 10:
                behind = -chance.choice([5_000, 60_000])
            value = base64.b64encode(chance.randrange(99).to_bytes(8, "big")).decode()
            batches[-1].append(
                {
                    "topic": "in-a",
                    "key": chance.choice(_KEYS),
                    "value": chance.choice([value, value, value, None]),
                    "base64": True,
                    "timestamp": now - behind,
                    "headers": [],
                }
            )
    return batches


def _records(batch: Sequence[dict[str, Any]], first: int) -> list[InputRecord]:
    return [
        (
            each["topic"],
            0,
            first + at,
            each["timestamp"],
            None if each["key"] is None else each["key"].encode(),
            None if each["value"] is None else base64.b64decode(each["value"]),
            (),
        )
        for at, each in enumerate(batch)
    ]


def _in_columns(task: Task, records: Sequence[InputRecord]) -> list[OutputRecord] | None:
    keyed = number_keys(column_input(records))
    assert keyed is not None
    return task.process_windows(keyed, 0)


def _ours(document: dict[str, Any], batches: Batches, cache_bytes: int) -> tuple[Outputs, int]:
    """Return what both tasks write, and the number of batches that were counted in columns."""
    (program,) = programs_of(json.dumps(document), cache_bytes)
    task, of_columns = (Task(program, 0, MemoryState()) for _ in range(2))
    outputs: Outputs = defaultdict(list)
    first = counted = 0
    for after, batch in enumerate(batches):
        records = _records(batch, first)
        first += len(batch)
        written, in_columns = task.process(records, 0), _in_columns(of_columns, records)
        counted += in_columns is not None
        assert (of_columns.process(records, 0) if in_columns is None else in_columns) == written
        assert of_columns.context.dropped == task.context.dropped
        assert of_columns.state.metadata == task.state.metadata
        for topic, _, key, value, timestamp, _ in written:
            outputs[topic].append((after, shown(key), shown(value), timestamp, ()))
        for each in (task, of_columns):
            each.state.commit(each.state.version)
    return dict(outputs), counted


def _counted_in_columns(name: str, seeds: Sequence[int]) -> int:
    counted = 0
    for seed in seeds:
        chance = random.Random(f"{name} {seed}")  # noqa: S311 - the same in each run
        counted += _ours(_document(name), _batches(chance), chance.choice(_SIZES))[1]
    return counted


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_columns_lead_to_the_same_records(name: str) -> None:
    assert _counted_in_columns(name, range(20)) > 30


@pytest.mark.soak
@pytest.mark.timeout(0)
@pytest.mark.parametrize("name", TOPOLOGIES)
def test_columns_lead_to_the_same_records_for_long(name: str) -> None:
    assert _counted_in_columns(name, range(_FIRST, _FIRST + _SEEDS)) > _SEEDS


def _difference(kafka_streams: KafkaStreams, name: str, seed: int) -> str | None:
    chance = random.Random(f"{name} {seed}")  # noqa: S311 - as above
    batches = _batches(chance)
    size = _SIZES[-1] if name.startswith("sliding") else chance.choice(_SIZES)
    answer = kafka_streams.run_batches(_document(name), batches, size)
    assert not isinstance(answer, Refusal), answer
    (found, _), wanted = _ours(_document(name), batches, size), theirs(list(answer))
    for topic in sorted(found.keys() | wanted.keys()):
        one, other = found.get(topic, []), wanted.get(topic, [])
        if one != other:
            at = first_difference(one, other)
            return f"seed {seed}, {size} bytes, {topic}: {one[at : at + 3]} instead of {other[at : at + 3]}"
    return None


@pytest.mark.oracle
@pytest.mark.timeout(0)
@pytest.mark.parametrize("name", TOPOLOGIES)
@pytest.mark.parametrize("seeds", [4, pytest.param(_SEEDS, marks=pytest.mark.soak)])
def test_same_records_as_kafka_streams(kafka_streams: KafkaStreams, name: str, seeds: int) -> None:
    found = [_difference(kafka_streams, name, seed) for seed in range(_FIRST, _FIRST + seeds)]
    assert not [each for each in found if each is not None]
