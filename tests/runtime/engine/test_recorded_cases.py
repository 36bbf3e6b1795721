"""Every recorded case with data through the engine: what the real Kafka Streams answered, byte for byte."""

from collections import defaultdict
from functools import cache
from typing import TYPE_CHECKING, Any

import attrs
import pytest

from tests.oracle.recorded import Case, Json, cases_with
from tests.runtime.recorded_data import encoded, entries, formats, lines, shown
from tests.runtime.replay import BatchReplay, runnable_programs

if TYPE_CHECKING:
    from headwater_spark.engine.records import OutputRecord

CASES = [
    case
    for case in cases_with("input.jsonl", "output.jsonl")
    if case.json("case.json")["group"] != "third-party"
]
APPLICATION = "oracle-ttd"
FIRST_MS = 1_704_067_200_000


class Replayed:
    """A case run to its end; `answers` are (input number, record)."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.sources, self.sinks = formats(case, "sources"), formats(case, "sinks")
        document = case.document()
        document = attrs.evolve(document, application=attrs.evolve(document.application, id=APPLICATION))
        self.replay = BatchReplay(runnable_programs(document, [*self.sources, *self.sinks]))
        self.answers: list[tuple[int, OutputRecord]] = []
        wall = FIRST_MS
        for each in lines(case, "input.jsonl"):
            if "advance_wall_clock_ms" in each:
                wall += each["advance_wall_clock_ms"]
                written = self.replay.advance_wall_clock(wall)
            else:
                key, value = self._bytes(each)
                written = self.replay.pipe(each["topic"], key, value, each["timestamp"], wall_clock_ms=wall)
            self.answers += [(each["i"], record) for record in written]

    def _bytes(self, record: Json) -> tuple[bytes | None, bytes | None]:
        key, value = self.sources[record["topic"]]
        return (
            None if record["key"] is None else key.serialize(record["key"]),
            None if record["value"] is None else value.serialize(record["value"]),
        )

    def outputs(self) -> dict[str, list[Json]]:
        found = defaultdict(list)
        for after, (topic, _, key, value, timestamp, _) in self.answers:
            if topic in self.sinks:
                serdes = self.sinks[topic]
                found[topic].append({
                    "after_input": after,
                    "topic": topic,
                    "key": None if key is None else shown(serdes[0].deserialize(key)),
                    "value": None if value is None else shown(serdes[1].deserialize(value)),
                    "timestamp": timestamp,
                })  # fmt: skip
        return found

    def internal(self) -> dict[str, list[Json]]:
        found = defaultdict(list)
        for _, (topic, _, key, value, timestamp, headers) in self.answers:
            if topic not in self.sinks:
                name = topic.replace(f"{APPLICATION}-", "<app>-", 1)
                record: Json = {
                    "key_base64": encoded(key),
                    "value_base64": encoded(value),
                    "timestamp": timestamp,
                }
                if headers:
                    record["headers"] = [{"key": key, "base64": encoded(value)} for key, value in headers]
                found[name].append(record)
        return found


@cache
def replay_of(case: Case) -> Replayed:
    return Replayed(case)


def with_file(name: str) -> pytest.MarkDecorator:
    cases = [case for case in CASES if case.has(name)]
    return pytest.mark.parametrize("case", cases, ids=lambda case: case.name)


@with_file("output.jsonl")
def test_outputs_are_in_the_recorded_order(case: Case) -> None:
    replayed = replay_of(case)
    assert replayed.outputs() == _by_topic(lines(replayed.case, "output.jsonl"))


@with_file("final_tables.json")
def test_final_tables(case: Case) -> None:
    replayed = replay_of(case)
    outputs = replayed.outputs()
    for topic, rows in case.json("final_tables.json").items():
        latest: dict[str, Json] = {}
        for record in outputs.get(topic, []):
            latest.pop(str(record["key"]), None)
            latest[str(record["key"])] = record
        alive = [record for record in latest.values() if record["value"] is not None]
        expected = [{name: row[name] for name in ("key", "value", "timestamp")} for row in rows]
        found = [{name: row[name] for name in ("key", "value", "timestamp")} for row in alive]
        assert sorted(found, key=str) == sorted(expected, key=str), topic


@with_file("internal_records.jsonl")
def test_internal_records_byte_for_byte(case: Case) -> None:
    replayed = replay_of(case)
    found = replayed.internal()
    for topic, records in _by_topic(lines(case, "internal_records.jsonl")).items():
        expected = [
            {key: each for key, each in record.items() if key not in {"topic", "i"}} for record in records
        ]
        if any(record["timestamp"] is None for record in expected):
            # a suppression's: their time is the producer's, and Java writes a commit's in the order of hashes
            untimed = [{**record, "timestamp": None} for record in found[topic]]
            assert sorted(untimed, key=str) == sorted(expected, key=str), topic
        else:
            assert found.get(topic, []) == expected, topic


@with_file("state.json")
def test_state(case: Case) -> None:
    replayed = replay_of(case)
    stores = replayed.replay.stores
    for name, expected in case.json("state.json").items():
        if expected["type"] != "buffer":  # what a buffer holds was not recorded
            assert sorted(entries(stores[name]), key=str) == sorted(expected["entries"], key=str), name


def _by_topic(records: list[Json]) -> dict[str, list[Any]]:
    found = defaultdict(list)
    for record in records:
        found[record["topic"]].append(record)
    return found
