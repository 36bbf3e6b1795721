"""The JVM of the comparisons: one for all tests, replaced when it dies, always ended."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.oracle.kafka_streams import KafkaStreams, OracleDiedError, Run
from tests.oracle.kept_answers import KeptAnswers

pytestmark = pytest.mark.oracle
_DOCUMENT = {"application": {"id": "app"}, "topology": [{"stream": {"topic": "a"}}, {"to": {"topic": "b"}}]}


@pytest.fixture(scope="module")
def live() -> Iterator[KafkaStreams]:
    """Keeps no answers: each request is processed."""
    with closing(KafkaStreams()) as started:
        yield started


def test_one_jvm_responds_in_order(live: KafkaStreams) -> None:
    first = live.ask(_DOCUMENT, [Run("app", {"a": 3})])
    process = live._process
    assert process is not None
    assert first.runs[0].tasks == {"0": 3}
    assert live.ask(_DOCUMENT, [Run("app", {"a": 5}, "streams")]).runs[0].tasks == {"0": 5}
    assert live._process is process


def test_a_dead_jvm_is_replaced(live: KafkaStreams) -> None:
    live.ask(_DOCUMENT)
    assert live._process is not None
    live._process.kill()
    live._process.wait()
    assert live.ask(_DOCUMENT).describe


def test_the_answer_to_a_repeated_request_is_kept(tmp_path: Path) -> None:
    kept, run = KeptAnswers(tmp_path), Run("app", {"a": 3})
    with (
        closing(KafkaStreams(keeps_answers=True)) as first,
        closing(KafkaStreams(keeps_answers=True)) as next_,
    ):
        for each in (first, next_):
            each._answers_kept = kept
        answer = first.ask(_DOCUMENT, [run])
        assert first._process is not None
        assert next_.ask(_DOCUMENT, [run]) == answer
        assert next_._process is None
        assert next_.ask(_DOCUMENT, [Run("app", {"a": 4})]) != answer
        assert next_._process is not None


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
