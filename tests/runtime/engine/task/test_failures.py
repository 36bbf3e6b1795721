"""Records that fail: the task stops, or skips them and sends them to the dead letter queue."""

import attrs
import pytest

from spark_jobs.runtime.engine.task import PoisonRecordError
from tests.runtime.topology_runner import NO_CACHE, TopologyRunner

LONGS = """
- stream: {topic: in, serdes: {key: string, value: long}}
- mapValues: {value: 100 // value}
- to: {topic: out, serdes: {key: string, value: string}}
"""
GOOD, ZERO, BAD = (10).to_bytes(8, "big"), bytes(8), b"short"
CONTINUE = attrs.evolve(
    NO_CACHE,
    on_bad_input="continue",
    on_processing_error="continue",
    on_bad_output="continue",
    dead_letter_topic="dead",
)
TEXT = LONGS.replace("100 // value", "str(100 // value)")


def test_log_and_continue_skips_only_the_failing_node() -> None:
    runner = TopologyRunner(
        """
        - stream: {topic: in, serdes: {key: string, value: long}, as: s}
        - flatMapValues: {each: "(value, 0, value)"}
        - mapValues: {value: str(100 // value)}
        - to: {topic: out, serdes: {key: string, value: string}}
        - to: {from: s, topic: sibling}
        """,
        CONTINUE,
    )
    written = runner.feed(runner.record("in", b"k", GOOD, 1))
    assert [topic for topic, *_ in written] == ["out", "dead", "out", "sibling"]


def test_a_poison_record_is_reported_with_its_offset() -> None:
    runner = TopologyRunner(TEXT)
    with pytest.raises(PoisonRecordError, match="record of in, partition 0, offset 1: cannot be read: "):
        runner.feed(runner.record("in", b"k", GOOD, 1), runner.record("in", b"k", BAD, 2))


def test_a_failing_expression_is_reported_with_its_record() -> None:
    runner = TopologyRunner(TEXT)
    with pytest.raises(PoisonRecordError, match="offset 0: cannot be processed: ZeroDivisionError"):
        runner.feed(runner.record("in", b"k", ZERO, 1))


def test_a_value_that_the_sink_cannot_write_is_reported() -> None:
    runner = TopologyRunner(LONGS)
    with pytest.raises(PoisonRecordError, match="offset 0: cannot be written to out"):
        runner.feed(runner.record("in", b"k", GOOD, 1))


@pytest.mark.parametrize(
    ("topology", "value", "exception"),
    [
        (TEXT, BAD, b"DeserializationError"),
        (TEXT, ZERO, b"ZeroDivisionError"),
        (LONGS, GOOD, b"SerializationError"),
    ],
)
def test_log_and_continue_sends_the_record_to_the_dead_letter_queue(
    topology: str, value: bytes, exception: bytes
) -> None:
    runner = TopologyRunner(topology, CONTINUE)
    bad = runner.record("in", b"k", value, 2, (("h", b"1"),))
    (dead,) = runner.feed(bad)
    topic, partition, key, sent, time, headers = dead
    assert (topic, partition, key, sent, time) == ("dead", None, b"k", value, 2)
    sent_headers = dict(headers)
    assert sent_headers["h"] == b"1"
    assert sent_headers["__streams.errors.exception"] == exception
    assert sent_headers["__streams.errors.topic"] == b"in"
    assert sent_headers["__streams.errors.offset"] == b"0"
    assert runner.tasks["0"].context.error_handlers.skipped == 1
    number, latest = runner.tasks["0"].take_dropped()
    assert number == 1
    assert "record of in, partition 0, offset 0: cannot be" in (latest or "")
    assert exception.decode() in (latest or "")
    assert runner.tasks["0"].take_dropped() == (0, None)


def test_records_before_and_after_are_processed() -> None:
    runner = TopologyRunner(TEXT, CONTINUE)
    values = (GOOD, BAD, ZERO, GOOD)
    outputs = runner.feed(*(runner.record("in", b"k", value, 1) for value in values))
    assert [output[0] for output in outputs] == ["out", "dead", "dead", "out"]


def test_a_negative_time_drops_the_record() -> None:
    runner = TopologyRunner(TEXT)
    assert runner.feed(runner.record("in", b"k", GOOD, -1)) == []
    assert runner.tasks["0"].take_dropped() == (1, None)


def test_extracted_timestamps_order_the_records() -> None:
    runner = TopologyRunner(
        """
- stream: {topic: in, serdes: {key: string, value: long}, timestamp: value, as: a}
- stream: {topic: other, serdes: {key: string, value: long}, as: b}
- merge: {from: a, with: b}
- to: {topic: out}
"""
    )
    outputs = runner.feed(
        runner.record("in", b"late", (30).to_bytes(8, "big"), 1),
        runner.record("in", b"none", None, 1),
        runner.record("other", b"early", (0).to_bytes(8, "big"), 20),
    )
    assert [(output[2], output[4]) for output in outputs] == [(b"early", 20), (b"late", 30)]
