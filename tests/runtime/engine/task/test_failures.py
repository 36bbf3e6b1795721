"""Records that cannot be handled: named, stopped at, or passed over and sent to the dead letters."""

import attrs
import pytest

from spark_jobs.runtime.engine.task import PoisonRecordError
from tests.runtime.topology_runner import NO_CACHE, Driver

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


def test_log_and_continue_passes_over_the_node_that_fails_alone() -> None:
    driver = Driver(
        """
        - stream: {topic: in, serdes: {key: string, value: long}, as: s}
        - flatMapValues: {each: "(value, 0, value)"}
        - mapValues: {value: str(100 // value)}
        - to: {topic: out, serdes: {key: string, value: string}}
        - to: {from: s, topic: sibling}
        """,
        CONTINUE,
    )
    written = driver.feed(driver.record("in", b"k", GOOD, 1))
    assert [topic for topic, *_ in written] == ["out", "dead", "out", "sibling"]


def test_a_poison_record_is_named() -> None:
    driver = Driver(TEXT)
    with pytest.raises(PoisonRecordError, match="record of in, partition 0, offset 1: cannot be read: "):
        driver.feed(driver.record("in", b"k", GOOD, 1), driver.record("in", b"k", BAD, 2))


def test_a_failing_expression_is_named() -> None:
    driver = Driver(TEXT)
    with pytest.raises(PoisonRecordError, match="offset 0: cannot be processed: ZeroDivisionError"):
        driver.feed(driver.record("in", b"k", ZERO, 1))


def test_a_value_that_the_sink_cannot_write_is_named() -> None:
    driver = Driver(LONGS)
    with pytest.raises(PoisonRecordError, match="offset 0: cannot be written to out"):
        driver.feed(driver.record("in", b"k", GOOD, 1))


@pytest.mark.parametrize(
    ("topology", "value", "exception"),
    [
        (TEXT, BAD, b"DeserializationError"),
        (TEXT, ZERO, b"ZeroDivisionError"),
        (LONGS, GOOD, b"SerializationError"),
    ],
)
def test_log_and_continue_sends_the_record_to_the_dead_letters(
    topology: str, value: bytes, exception: bytes
) -> None:
    driver = Driver(topology, CONTINUE)
    bad = driver.record("in", b"k", value, 2, (("h", b"1"),))
    (dead,) = driver.feed(bad)
    topic, partition, key, sent, time, headers = dead
    assert (topic, partition, key, sent, time) == ("dead", None, b"k", value, 2)
    told = dict(headers)
    assert told["h"] == b"1"
    assert told["__streams.errors.exception"] == exception
    assert told["__streams.errors.topic"] == b"in"
    assert told["__streams.errors.offset"] == b"0"
    assert driver.tasks["0"].context.error_handlers.skipped == 1
    number, latest = driver.tasks["0"].take_dropped()
    assert number == 1
    assert "record of in, partition 0, offset 0: cannot be" in (latest or "")
    assert exception.decode() in (latest or "")
    assert driver.tasks["0"].take_dropped() == (0, None)


def test_records_before_and_after_are_worked_on() -> None:
    driver = Driver(TEXT, CONTINUE)
    values = (GOOD, BAD, ZERO, GOOD)
    outputs = driver.feed(*(driver.record("in", b"k", value, 1) for value in values))
    assert [output[0] for output in outputs] == ["out", "dead", "dead", "out"]


def test_a_negative_time_drops_the_record() -> None:
    driver = Driver(TEXT)
    assert driver.feed(driver.record("in", b"k", GOOD, -1)) == []
    assert driver.tasks["0"].take_dropped() == (1, None)


def test_times_come_from_the_expression_and_order_the_records() -> None:
    driver = Driver(
        """
- stream: {topic: in, serdes: {key: string, value: long}, timestamp: value, as: a}
- stream: {topic: other, serdes: {key: string, value: long}, as: b}
- merge: {from: a, with: b}
- to: {topic: out}
"""
    )
    outputs = driver.feed(
        driver.record("in", b"late", (30).to_bytes(8, "big"), 1),
        driver.record("in", b"none", None, 1),
        driver.record("other", b"early", (0).to_bytes(8, "big"), 20),
    )
    assert [(output[2], output[4]) for output in outputs] == [(b"early", 20), (b"late", 30)]
