"""The JVM of the comparisons: one for all tests, replaced when it dies, always ended."""

import pytest

from tests.oracle.kafka_streams import KafkaStreams, OracleDiedError, Run

pytestmark = pytest.mark.oracle
_DOCUMENT = {"application": {"id": "app"}, "topology": [{"stream": {"topic": "a"}}, {"to": {"topic": "b"}}]}


def test_one_jvm_responds_in_order(kafka_streams: KafkaStreams) -> None:
    first = kafka_streams.ask(_DOCUMENT, [Run("app", {"a": 3})])
    process = kafka_streams._process
    assert first.runs[0].tasks == {"0": 3}
    assert kafka_streams.ask(_DOCUMENT, [Run("app", {"a": 5}, "streams")]).runs[0].tasks == {"0": 5}
    assert kafka_streams._process is process


def test_a_dead_jvm_is_replaced(kafka_streams: KafkaStreams) -> None:
    kafka_streams.ask(_DOCUMENT)
    assert kafka_streams._process is not None
    kafka_streams._process.kill()
    kafka_streams._process.wait()
    assert kafka_streams.ask(_DOCUMENT).describe


def test_a_jvm_that_does_not_respond_in_time_is_ended() -> None:
    short_timeout = KafkaStreams(timeout_seconds=0.001)
    with pytest.raises(OracleDiedError):
        short_timeout.ask(_DOCUMENT)
    assert short_timeout._process is None


def test_exceptions_of_kafka_streams_are_returned(kafka_streams: KafkaStreams) -> None:
    twice = [{"table": {"topic": "a"}}, {"stream": {"topic": "a"}}]
    refusal = kafka_streams.ask({"application": {"id": "app"}, "topology": twice}).refusal
    assert refusal is not None
    assert (refusal.name, refusal.stage) == ("TopologyException", "build")
