"""`TopologyTestDriver`: documents as in users' unit tests."""

import json
from pathlib import Path
from typing import Any

import pytest

from headwater.model.problems import ProblemCode, ProblemsError
from headwater_spark.processors import Processor, ProcessorContext, PunctuationType, Record
from headwater_spark.testing import PoisonRecordError, TopologyTestDriver

_AVRO = json.dumps({"type": "record", "name": "Order", "fields": [{"name": "amount", "type": "double"}]})
_PROTO = 'syntax = "proto3";\nmessage Order { double amount = 1; }\n'


class Counter(Processor):
    """Counts records, and forwards the counts each second of wall-clock time."""

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        self.counts = context.state_store("counts")
        context.schedule(1_000, PunctuationType.WALL_CLOCK_TIME, self.report)

    def process(self, record: Record) -> None:
        if record.value == "bad":
            raise ValueError("a bad record")
        self.counts.put(record.key, (self.counts.get(record.key) or 0) + 1)

    def report(self, timestamp: int) -> None:
        for key, number in self.counts.all():
            self.context.forward(Record(key, number, timestamp))


def _counter(**config: str) -> dict[str, Any]:
    return {
        "application": {"id": "shop", "config": config},
        "topology": [
            {"addStateStore": {"name": "counts", "serdes": {"key": "string", "value": "long"}}},
            {"stream": {"topic": "orders"}},
            {"process": {
                "class": f"{__name__}:Counter", "stores": ["counts"], "serdes": {"value": "long"},
            }},
            {"to": {"topic": "counted", "serdes": {"key": "string", "value": "long"}}},
        ],
    }  # fmt: skip


def _copies(value: str) -> dict[str, Any]:
    return {
        "application": {"id": "copies"},
        "topology": [
            {"stream": {"topic": "orders", "serdes": {"key": "string", "value": value}}},
            {"filter": {"where": "value.amount > 1"}},
            {"to": {"topic": "large"}},
        ],
    }


def test_records_pass_repartition_topics_and_stores() -> None:
    driver = TopologyTestDriver(
        {
            "application": {"id": "cities"},
            "topology": [
                {"stream": {"topic": "orders", "serdes": {"key": "string", "value": "json"}}},
                {"groupBy": {"key": "value.city"}},
                {"count": {"materialized": "per-city"}},
                {"toStream": {}},
                {"to": {"topic": "counts", "serdes": {"key": "string", "value": "long"}}},
            ],
        }
    )
    for city in ("Paris", "Rome", "Paris"):
        driver.pipe("orders", "1", {"city": city}, timestamp=5)
    expected = (Record("Paris", 1, 5), Record("Rome", 1, 5), Record("Paris", 2, 5))
    assert driver.read("counts") == expected
    assert driver.read("counts") == (), "each record is read once"
    assert len(driver.read("cities-per-city-changelog")) == 3


def test_punctuations_run_when_the_wall_clock_is_advanced() -> None:
    driver = TopologyTestDriver(_counter(), wall_clock_ms=10_000)
    driver.pipe("orders", "1", "tea")
    driver.advance_wall_clock(999)
    assert driver.read("counted") == ()
    driver.advance_wall_clock(1)
    assert driver.read("counted") == (Record("1", 1, 11_000),)
    assert driver.store("counts").get("1") == 1
    driver.close()


def test_a_record_that_cannot_be_processed_raises_the_error_of_the_code() -> None:
    driver = TopologyTestDriver(_counter())
    with pytest.raises(PoisonRecordError, match=f"orders, partition 0, offset 0.*{__name__}, line") as failed:
        driver.pipe("orders", "1", "bad")
    assert isinstance(failed.value.__cause__, ValueError)


def test_a_skipped_record_is_in_the_dead_letter_queue() -> None:
    driver = TopologyTestDriver(
        _counter(
            **{
                "processing.exception.handler": "LogAndContinueProcessingExceptionHandler",
                "errors.dead.letter.queue.topic.name": "dead",
            }
        )
    )
    driver.pipe("orders", "1", "bad", timestamp=7)
    (dead,) = driver.read("dead")
    assert (dead.key, dead.value, dead.timestamp) == (b"1", b"bad", 7)
    assert dict(dead.headers)["__streams.errors.message"] == b"a bad record"


@pytest.mark.parametrize(
    ("value", "schema"),
    [("avro-registry:orders-value", _AVRO), ("protobuf-registry:orders-value", _PROTO)],
)
def test_schemas_of_a_registry_are_given(value: str, schema: str) -> None:
    driver = TopologyTestDriver(_copies(value), schemas={"orders-value": schema})
    driver.pipe("orders", "1", {"amount": 2.0})
    driver.pipe("orders", "2", {"amount": 0.5})
    assert [(each.key, each.value) for each in driver.read("large")] == [("1", {"amount": 2.0})]


def test_a_schema_that_is_not_given_is_named() -> None:
    with pytest.raises(KeyError, match="orders-value"):
        TopologyTestDriver(_copies("avro-registry:orders-value"))


def test_schema_files_are_next_to_the_document(tmp_path: Path) -> None:
    (tmp_path / "order.avsc").write_text(_AVRO, encoding="utf-8")
    (tmp_path / "copies.json").write_text(json.dumps(_copies("avro:order.avsc")), encoding="utf-8")
    driver = TopologyTestDriver(tmp_path / "copies.json")
    driver.pipe("orders", "1", {"amount": 2.0})
    with pytest.raises(PoisonRecordError, match="cannot be read"):
        driver.pipe("orders", "2", b"\1")


def test_a_class_that_cannot_be_used_is_reported_as_at_a_start() -> None:
    document = _counter()
    document["topology"][2]["process"]["class"] = f"{__name__}:Missing"
    with pytest.raises(ProblemsError) as refused:
        TopologyTestDriver(document)
    assert [each.code for each in refused.value.problems] == [ProblemCode.NOT_RUNNABLE]


def test_other_topics_are_not_read() -> None:
    with pytest.raises(KeyError, match="does not read payments"):
        TopologyTestDriver(_counter()).pipe("payments", "1", "tea")


def test_a_source_with_a_pattern_reads_the_records_of_sinks_but_no_changelog_topics() -> None:
    driver = TopologyTestDriver(
        {
            "application": {"id": "shop"},
            "topology": [
                {"stream": {"topic": "orders"}},
                {"groupByKey": {}},
                {"count": {"materialized": "counts"}},
                {"toStream": {"as": "counted"}},
                {"to": {"topic": "shop-counted", "serdes": {"value": "long"}}},
                {"stream": {"pattern": "shop-.*", "serdes": {"value": "long"}}},
                {"filter": {"where": "value > 1"}},
                {"to": {"topic": "repeated", "serdes": {"value": "long"}}},
            ],
        }
    )
    driver.pipe("orders", "1", "tea")
    driver.pipe("orders", "1", "milk")
    assert [(each.key, each.value) for each in driver.read("repeated")] == [("1", 2)]
    driver.pipe("shop-others", "2", 7)
    assert [(each.key, each.value) for each in driver.read("repeated")] == [("2", 7)]
    with pytest.raises(KeyError, match="does not read shop-counts-changelog"):
        driver.pipe("shop-counts-changelog", "1", 2)
