"""`TopologyTestDriver`: documents as in users' unit tests."""

import json
from pathlib import Path
from typing import Any

import pytest

from headwater.model.problems import ProblemCode, ProblemsError
from headwater_spark.processors import (
    Processor,
    ProcessorContext,
    PunctuationType,
    Record,
    ValueAndTimestamp,
)
from headwater_spark.testing import (
    DeserializationError,
    PoisonRecordError,
    SerializationError,
    TopologyTestDriver,
)

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


class Ticker(Processor):
    """Forwards a record each second, before it has any input."""

    def init(self, context: ProcessorContext) -> None:
        context.schedule(
            1_000, PunctuationType.WALL_CLOCK_TIME, lambda now: context.forward(Record("tick", str(now), now))
        )

    def process(self, record: Record) -> None:
        """Ignore the record."""


class NotInitialized(Processor):
    """Cannot be initialized."""

    def init(self, context: ProcessorContext) -> None:
        raise LookupError(f"no connection for {context.application_id}")

    def process(self, record: Record) -> None:
        """Ignore the record."""


class NotClosed(Processor):
    """Cannot be closed; counts how often it was tried."""

    closed = 0

    def process(self, record: Record) -> None:
        """Ignore the record."""

    def close(self) -> None:
        NotClosed.closed += 1
        raise OSError(f"not closed: {NotClosed.closed}")


def _processed(*classes: str) -> dict[str, Any]:
    """Return a document with a sub-topology for each class."""
    steps = [
        step
        for number, name in enumerate(classes)
        for step in (
            {"stream": {"topic": f"in-{number}"}},
            {"process": {"class": f"{__name__}:{name}"}},
            {"to": {"topic": f"out-{number}"}},
        )
    ]
    return {"application": {"id": "processed"}, "topology": steps}


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


def test_subjects_without_a_schema_are_named() -> None:
    with pytest.raises(ProblemsError) as refused:
        TopologyTestDriver(_copies("avro-registry:orders-value"), schemas={"order-value": _AVRO})
    (problem,) = refused.value.problems
    assert "orders-value" in problem.summary
    assert problem.found == "subjects: order-value"


@pytest.mark.parametrize("kind", ["avro-registry", "json-registry", "protobuf-registry"])
def test_a_schema_that_cannot_be_used_is_named(kind: str) -> None:
    with pytest.raises(ProblemsError) as refused:
        TopologyTestDriver(_copies(f"{kind}:orders-value"), schemas={"orders-value": "no schema"})
    assert all("orders-value" in f"{each.found}" for each in refused.value.problems)


def test_bytes_with_another_schema_id_cannot_be_read() -> None:
    driver = TopologyTestDriver(_copies("avro-registry:orders-value"), schemas={"orders-value": _AVRO})
    with pytest.raises(PoisonRecordError, match="no schema 9"):
        driver.pipe("orders", "1", b"\0\0\0\0\x09" + bytes(8))


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
    with pytest.raises(KeyError, match="does not read payments; it reads: "):
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


def test_processors_are_initialized_by_the_constructor() -> None:
    with TopologyTestDriver(_processed("Ticker"), wall_clock_ms=500) as driver:
        driver.advance_wall_clock(999)
        assert driver.read("out-0") == ()
        driver.advance_wall_clock(1)
        assert driver.read("out-0") == (Record("tick", "1500", 1_500),)


def test_a_processor_that_cannot_be_initialized_fails_the_constructor() -> None:
    with pytest.raises(LookupError, match="no connection"):
        TopologyTestDriver(_processed("NotInitialized"))


def test_reading_a_topic_that_is_never_written_names_the_topics_that_are() -> None:
    driver = TopologyTestDriver(_counter(**{"errors.dead.letter.queue.topic.name": "dead"}))
    with pytest.raises(KeyError, match="does not write count; it writes: counted, dead, shop-counts-chang"):
        driver.read("count")
    with pytest.raises(KeyError, match="does not write orders"):
        driver.read("orders")
    assert driver.read("counted") == driver.read("dead") == driver.read("shop-counts-changelog") == ()


def _sinks(*sinks: dict[str, Any]) -> dict[str, Any]:
    steps = [{"to": {"from": "orders", **sink}} for sink in sinks]
    serdes = {"key": "string", "value": "json"}
    source = {"stream": {"topic": "orders", "serdes": serdes, "as": "orders"}}
    return {"application": {"id": "sinks"}, "topology": [source, *steps]}


_JSON, _STRING = ({"key": "string", "value": name} for name in ("json", "string"))


def test_a_sink_that_chooses_its_topic_writes_any_topic() -> None:
    sink = {"topicExpression": "concat('out-', key)", "serdes": _JSON}
    with TopologyTestDriver(_sinks(sink)) as driver:
        driver.pipe("orders", "1", {"amount": 2})
        assert [each.value for each in driver.read("out-1")] == [{"amount": 2}]
        assert driver.read("any-other") == ()


def test_internal_topics_are_bytes_next_to_a_sink_that_chooses_its_topic() -> None:
    document = _sinks({"topicExpression": "concat('out-', key)", "serdes": _JSON})
    document["topology"] += [
        {"groupBy": {"from": "orders", "key": "key || '!'", "name": "again"}},
        {"count": {"materialized": "counts"}},
    ]
    with TopologyTestDriver(document) as driver:
        driver.pipe("orders", "1", {"amount": 2})
        assert [each.key for each in driver.read("sinks-again-repartition")] == [b"1!"]
        assert [each.key for each in driver.read("sinks-counts-changelog")] == [b"1!"]


def test_records_of_sinks_with_different_formats_are_bytes() -> None:
    document = _sinks({"topic": "all", "serdes": _JSON})
    document["topology"] += [
        {"mapValues": {"from": "orders", "value": "'text'"}},
        {"to": {"topic": "all", "serdes": _STRING}},
    ]
    with TopologyTestDriver(document) as driver:
        driver.pipe("orders", "1", {"amount": 2})
        assert [each.value for each in driver.read("all")] == [b'{"amount":2}', b"text"]


def test_no_record_is_lost_if_one_cannot_be_deserialized() -> None:
    document = _sinks({"topic": "all", "serdes": _JSON})
    document["topology"] += [
        {"mapValues": {"from": "orders", "value": "'text'"}},
        {"to": {"topicExpression": "'all'", "serdes": _STRING}},
    ]
    with TopologyTestDriver(document) as driver:
        driver.pipe("orders", "1", {"amount": 2})
        for _ in range(2):
            with pytest.raises(DeserializationError, match="json"):
                driver.read("all")


def test_a_closed_driver_processes_nothing_and_can_be_read() -> None:
    with TopologyTestDriver(_counter()) as driver:
        driver.pipe("orders", "1", "tea")
        driver.advance_wall_clock(1_000)
    driver.close()
    with pytest.raises(RuntimeError, match="closed"):
        driver.pipe("orders", "1", "tea")
    with pytest.raises(RuntimeError, match="closed"):
        driver.advance_wall_clock(1)
    assert driver.read("counted") == (Record("1", 1, 1_000),)
    assert driver.store("counts").get("1") == 1


def test_close_closes_all_tasks_once_and_raises_the_first_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NotClosed, "closed", 0)
    driver = TopologyTestDriver(_processed("NotClosed", "NotClosed"))
    with pytest.raises(OSError, match="not closed: 1"):
        driver.close()
    driver.close()
    assert NotClosed.closed == 2


def test_an_error_in_the_with_block_is_not_replaced_by_an_error_of_close() -> None:
    document = _processed("NotClosed")
    with pytest.raises(AssertionError, match="wrong total") as failed, TopologyTestDriver(document):
        raise AssertionError("wrong total")
    assert "could not be closed" in failed.value.__notes__[0]
    with pytest.raises(OSError, match="not closed"), TopologyTestDriver(document):
        pass


def test_a_driver_is_not_used_after_a_failure() -> None:
    driver = TopologyTestDriver(_counter())
    driver.pipe("orders", "1", "tea")
    with pytest.raises(PoisonRecordError):
        driver.pipe("orders", "1", "bad")
    with pytest.raises(RuntimeError, match="create a new driver"):
        driver.pipe("orders", "1", "tea")
    with pytest.raises(RuntimeError, match="create a new driver"):
        driver.advance_wall_clock(1_000)
    assert len(driver.read("shop-counts-changelog")) == 1
    driver.close()


def test_stores_of_operators_have_timestamps_and_stores_of_processors_do_not() -> None:
    document = _counter()
    document["topology"] += [
        {"stream": {"topic": "visits"}},
        {"groupByKey": {}},
        {"count": {"materialized": "visits-per-key"}},
    ]
    with TopologyTestDriver(document) as driver:
        driver.pipe("orders", "1", "tea", timestamp=5)
        driver.pipe("visits", "1", "home", timestamp=7)
        assert driver.store("counts").get("1") == 1
        assert driver.store("visits-per-key").get("1") == ValueAndTimestamp(1, 7)
        assert driver.store("visits-per-key").get("1").value == 1
        with pytest.raises(KeyError, match="no store count; its stores: counts, visits-per-key"):
            driver.store("count")


def test_headers_are_pairs_of_names_and_bytes() -> None:
    with TopologyTestDriver(_sinks({"topic": "all", "serdes": _JSON})) as driver:
        driver.pipe("orders", "1", 1, headers=[("a", b"1"), ("a", None)])
        assert driver.read("all")[0].headers == (("a", b"1"), ("a", None))
        for wrong in ({"ab": b"1"}, "ab", ["ab"], [("a", "text")], [(b"a", b"1")], [("a",)], 7):
            with pytest.raises(TypeError, match="headers are pairs"):
                driver.pipe("orders", "1", 1, headers=wrong)  # type: ignore[arg-type]
        assert driver.read("all") == ()


def test_times_are_whole_numbers_that_are_not_negative() -> None:
    with TopologyTestDriver(_counter()) as driver:
        for wrong, error in ((-1, ValueError), (1.5, TypeError), ("1", TypeError), (True, TypeError)):
            with pytest.raises(error, match="timestamp is"):
                driver.pipe("orders", "1", "tea", timestamp=wrong)  # type: ignore[arg-type]
            with pytest.raises(error, match="milliseconds is"):
                driver.advance_wall_clock(wrong)  # type: ignore[arg-type]
            with pytest.raises(error, match="wall_clock_ms is"):
                TopologyTestDriver(_counter(), wall_clock_ms=wrong)  # type: ignore[arg-type]
        driver.pipe("orders", "1", "tea")
        assert driver.read("shop-counts-changelog")[0].timestamp == 0


def test_values_that_do_not_fit_their_format_are_refused_and_the_driver_continues() -> None:
    with TopologyTestDriver(_counter()) as driver:
        with pytest.raises(SerializationError, match="string") as failed:
            driver.pipe("orders", 1, "tea", timestamp=9)
        assert failed.value.__notes__ == ["key of a record of orders"]
        with pytest.raises(SerializationError, match="string"):
            driver.pipe("orders", "1", {"amount": 2})
        driver.pipe("orders", "1", "tea")
        assert driver.read("shop-counts-changelog")[0].timestamp == 0
