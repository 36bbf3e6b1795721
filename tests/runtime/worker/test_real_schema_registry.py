"""A topology over Avro whose schemas a real registry keeps (Apicurio Registry, fetched by Maven)."""

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headwater.spec import load_text
from headwater_spark.driver.preflight import check_runnable
from headwater_spark.engine.serdes import plain_serde
from headwater_spark.worker.schema_registry import URL, RegisteredSchemas, SchemaRegistry
from tests.runtime.replay import BatchReplay, runnable_programs
from tests.toolchain.programs import running_schema_registry

ORDER = {"type": "record", "name": "Order", "fields": [{"name": "item", "type": "string"}]}
NOTED = ORDER | {
    "fields": [
        {"name": "item", "type": "string"},
        {"name": "note", "type": ["null", "string"], "default": None},
    ]
}
TOTAL = {
    "type": "record",
    "name": "Total",
    "fields": [{"name": "items", "type": {"type": "array", "items": "string"}}],
}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_schema_registry(tmp_path_factory.mktemp("registry") / "registry.log") as found:
        yield found


def registered(url: str, subject: str, schema: dict[str, Any]) -> int:
    request = urllib.request.Request(  # noqa: S310 - ours
        f"{url}/subjects/{subject}/versions",
        data=json.dumps({"schema": json.dumps(schema)}).encode(),
        headers={"Content-Type": "application/vnd.schemaregistry.v1+json"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
        return int(json.load(answer)["id"])


@pytest.mark.soak
def test_records_of_several_versions_and_a_state_in_avro(url: str, tmp_path: Path) -> None:
    first, second = registered(url, "orders-value", ORDER), registered(url, "orders-value", NOTED)
    total = registered(url, "totals-value", TOTAL)
    steps = [
        {"stream": {"topic": "orders", "serdes": {"value": "avro-registry:orders-value"}}},
        {"groupByKey": {}},
        {"aggregate": {
            "init": "struct(array() as items)",
            "add": "struct(array_append(total.items, value.item || coalesce(value.note, '')) as items)",
            "materialized": {"store": "totals", "serdes": {"value": "avro-registry:totals-value"}},
        }},
        {"toStream": {}},
        {"to": {"topic": "totals"}},
    ]  # fmt: skip
    text = json.dumps({"application": {"id": "shop", "config": {URL: url}}, "topology": steps})
    document = load_text(text, "shop.json").documents[0]
    schemas = check_runnable(document, tmp_path).schemas
    replay = BatchReplay(runnable_programs(document, (), schemas=schemas, schema_of=RegisteredSchemas(url)))
    old = plain_serde("avro-registry:a", json.dumps({"id": first, "schema": json.dumps(ORDER)}))
    new = plain_serde("avro-registry:b", json.dumps({"id": second, "schema": json.dumps(NOTED)}))
    replay.pipe("orders", b"k", old.serialize({"item": "tea"}), 1)
    written = replay.pipe("orders", b"k", new.serialize({"item": "milk", "note": "!"}), 2)
    (value,) = (record[3] for record in written if record[0] == "totals")
    assert value is not None
    assert value[:5] == b"\0" + total.to_bytes(4, "big")
    kept = SchemaRegistry((url,)).schema(total)
    assert kept is not None
    reader = plain_serde("avro-registry:c", json.dumps({"id": total, "schema": kept}))
    assert reader.deserialize(value) == {"items": ["tea", "milk!"]}


@pytest.mark.soak
def test_unknown_subjects_and_ids(url: str) -> None:
    found = SchemaRegistry((url,))
    assert found.latest("unknown-subject") is None
    assert found.schema(1_000_000) is None


@pytest.mark.soak
def test_a_new_version_is_used_while_the_application_runs(url: str, tmp_path: Path) -> None:
    """Values of it pass a repartition topic and a store in the version at the start."""
    first = registered(url, "visits-value", ORDER)
    format_ = "avro-registry:visits-value"
    steps = [
        {"stream": {"topic": "visits", "serdes": {"key": "string", "value": format_}}},
        {"groupBy": {"key": "value.item"}},
        {"reduce": {"add": "value", "materialized": "latest"}},
        {"toStream": {}},
        {"to": {"topic": "latest-visits"}},
    ]
    text = json.dumps({"application": {"id": "visits", "config": {URL: url}}, "topology": steps})
    document = load_text(text, "visits.json").documents[0]
    schemas = check_runnable(document, tmp_path).schemas
    replay = BatchReplay(runnable_programs(document, (), schemas=schemas, schema_of=RegisteredSchemas(url)))
    second = registered(url, "visits-value", NOTED)
    newer = plain_serde(format_, json.dumps({"id": second, "schema": json.dumps(NOTED)}))
    written = replay.pipe("visits", b"k", newer.serialize({"item": "tea", "note": "new"}), 1)
    (value,) = (record[3] for record in written if record[0] == "latest-visits")
    known = plain_serde(format_, json.dumps({"id": first, "schema": json.dumps(ORDER)}))
    assert value == known.serialize({"item": "tea"})
