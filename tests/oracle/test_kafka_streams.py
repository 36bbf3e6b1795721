"""The JVM behind the comparisons: one for all, replaced when it dies, never left behind."""

import pytest

from tests.oracle.kafka_streams import KafkaStreams, OracleDiedError, Run

pytestmark = pytest.mark.oracle
_DOCUMENT = {"application": {"id": "app"}, "topology": [{"stream": {"topic": "a"}}, {"to": {"topic": "b"}}]}


def test_answers_in_order_by_one_jvm(kafka_streams: KafkaStreams) -> None:
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


def test_a_jvm_that_does_not_answer_in_time_is_ended() -> None:
    impatient = KafkaStreams(timeout_seconds=0.001)
    with pytest.raises(OracleDiedError):
        impatient.ask(_DOCUMENT)
    assert impatient._process is None


def test_what_kafka_streams_throws_is_an_answer(kafka_streams: KafkaStreams) -> None:
    twice = [{"table": {"topic": "a"}}, {"stream": {"topic": "a"}}]
    refusal = kafka_streams.ask({"application": {"id": "app"}, "topology": twice}).refusal
    assert refusal is not None
    assert (refusal.name, refusal.stage) == ("TopologyException", "build")
