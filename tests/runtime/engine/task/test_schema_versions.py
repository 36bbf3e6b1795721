"""Keys and values of several versions of a schema have the same results one by one and in columns.

So have entries of stores that an application has written before it started with the next version.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from headwater.spec import load_text
from headwater_spark.engine import column_plan
from headwater_spark.engine.program_interface import EngineSettings
from headwater_spark.engine.records import InputRecord, OutputRecord
from headwater_spark.engine.serdes import Plain, plain_serde
from headwater_spark.engine.task import Task
from headwater_spark.worker.local_state import MemoryState
from tests.runtime.partition_columns import by_topic, columns_of
from tests.runtime.replay import runnable_programs

_FORMAT = "avro-registry:orders-value"
_SETTINGS = EngineSettings(emit_interval_ms=0)


def _schema(*fields: Mapping[str, Any]) -> str:
    return json.dumps({"type": "record", "name": "Order", "fields": list(fields)})


_ID = {"name": "id", "type": "long"}
_NOTE = {"name": "note", "type": "string", "default": "none"}
_STATE = {"name": "state", "type": "string", "default": "new"}
_VERSIONS = {7: _schema(_ID), 8: _schema(_ID, _NOTE), 9: _schema(_ID, _NOTE, _STATE)}
_STREAM = {"stream": {"topic": "in", "as": "left", "serdes": {"key": "string", "value": _FORMAT}}}
_TABLE = {
    "table": {
        "topic": "other", "as": "right", "materialized": "rows", "serdes": {"key": "string", "value": _FORMAT}
    }
}  # fmt: skip
_TO = {"to": {"topic": "out"}}
_TOPOLOGIES: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "stream": [_STREAM, _TO],
    "table": [_TABLE, {"toStream": {}}, _TO],
    "join": [
        _STREAM,
        _TABLE,
        {"join": {"from": "left", "with": "right", "value": "right", "serdes": {"value": _FORMAT}}},
        _TO,
    ],
    "join of tables": [
        {"table": {**_TABLE["table"], "topic": "in", "as": "left", "materialized": "others"}},
        _TABLE,
        {"join": {"from": "left", "with": "right", "value": "right", "serdes": {"value": _FORMAT}}},
        {"toStream": {}},
        _TO,
    ],
    "count of keys": [
        {"stream": {"topic": "in", "serdes": {"key": _FORMAT, "value": "string"}}},
        {"groupByKey": {}},
        {"count": {}},
        {"toStream": {}},
        _TO,
    ],
}


def _serde(version: int) -> Plain:
    latest = json.dumps({"id": version, "schema": _VERSIONS[version]})
    return plain_serde(_FORMAT, latest, _VERSIONS.get)


def _written(version: int, number: int) -> bytes:
    value = {"id": number, "note": "x", "state": "y"}
    names = [field["name"] for field in json.loads(_VERSIONS[version])["fields"]]
    return _serde(version).serialize({name: value[name] for name in names})


def _tasks(name: str, version: int, states: Sequence[MemoryState]) -> list[Task]:
    text = json.dumps({"application": {"id": "app"}, "topology": _TOPOLOGIES[name]})
    schemas = {_FORMAT: json.dumps({"id": version, "schema": _VERSIONS[version]})}
    document = load_text(text, "app.json").documents[0]
    (program,) = runnable_programs(document, (), _SETTINGS, schemas, _VERSIONS.get)
    return [Task(program, 0, state) for state in states]


def _records(name: str, first: int) -> list[InputRecord]:
    """Return records of all versions, several for each key."""
    records: list[InputRecord] = []
    for at in range(first, first + 12):
        key, value = b"k%d" % (at % 2), _written(7 + at % 3, at)
        if name == "count of keys":
            key, value = _written(7 + at % 3, at % 2), b"v"
        topic = "other" if name == "table" or (name.startswith("join") and at % 2) else "in"
        records.append((topic, 0, at, at, key if "join" not in name else b"k%d" % (at // 2 % 2), value, ()))
    return records


@pytest.mark.parametrize("name", _TOPOLOGIES)
def test_other_versions_have_the_same_results_in_columns(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(column_plan, "_RECORDS_PER_KEY", 0)
    states = MemoryState(), MemoryState()
    written: list[OutputRecord] = []
    for start, version in enumerate((7, 8)):  # the application starts again with the next version
        one_by_one, in_columns = _tasks(name, version, states)
        for batch in range(2):
            records = _records(name, 24 * start + 12 * batch)
            expected = one_by_one.process(records, 5)
            found, _ = in_columns.process_partitions(columns_of(records), (), 5)
            assert by_topic(found) == by_topic(expected)
            assert in_columns.state.changes() == one_by_one.state.changes()
            for each in (one_by_one, in_columns):
                each.state.commit(each.state.version)
            written = [record for record in expected if record[0] == "out"]
        assert written
        serialized = [record[2] if name == "count of keys" else record[3] for record in written]
        assert {data[:5] for data in serialized if data is not None} == {bytes((0, 0, 0, 0, version))}


def test_an_entry_of_before_a_new_version_is_read_in_it() -> None:
    """Its bytes are the old ones until the entry is written again."""
    state = MemoryState()
    (before,) = _tasks("table", 7, [state])
    before.process([("other", 0, 0, 0, b"k", _written(7, 1), ())], 0)
    state.commit(state.version)
    (after,) = _tasks("table", 8, [state])
    found = after.stores["rows"].get("k")
    assert found.value == {"id": 1, "note": "none"}
