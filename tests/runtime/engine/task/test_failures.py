"""Records that fail: the task stops, or skips them and sends them to the dead letter queue."""

import attrs
import pytest

from headwater_spark.engine.program_interface import EngineSettings
from headwater_spark.engine.task import PoisonRecordError
from headwater_spark.processors import Processor, Record
from tests.runtime.topology_runner import CACHED, NO_CACHE, TopologyRunner

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


def test_a_timestamp_extractor_that_fails_is_reported_with_its_record() -> None:
    topology = """
- stream: {topic: in, serdes: {key: string, value: long}, timestamp: 100 // value}
- to: {topic: out}
"""
    runner = TopologyRunner(topology, CONTINUE)
    with pytest.raises(PoisonRecordError, match="offset 1: its timestamp cannot be extracted") as failure:
        runner.feed(runner.record("in", b"k", GOOD, 1), runner.record("in", b"k", ZERO, 2))
    assert failure.value.handler is None


@pytest.mark.parametrize("cache", [0, 1_000_000])
def test_a_total_that_cannot_be_stored_is_skipped_and_the_previous_one_is_kept(cache: int) -> None:
    runner = TopologyRunner(_SUM, attrs.evolve(CONTINUE, cache_max_bytes=cache))
    values = (b"100", b"27", b"1", b"99999", b"-100")
    runner.feed(*(runner.record("in", b"k", value, time) for time, value in enumerate(values)))
    results = [output for output in runner.all_outputs if output[0] == "out"]
    assert results[-1][3] == b"28"
    assert len([output for output in runner.all_outputs if output[0] == "dead"]) == 1


@pytest.mark.parametrize("cache", [0, 1_000_000])
def test_a_total_that_cannot_be_stored_is_reported_with_its_record(cache: int) -> None:
    runner = TopologyRunner(_SUM, attrs.evolve(NO_CACHE, cache_max_bytes=cache))
    records = [runner.record("in", b"k", value, time) for time, value in enumerate((b"1", b"99999"))]
    with pytest.raises(PoisonRecordError, match="offset 1: cannot be processed: SerializationError"):
        runner.feed(*records)


_SUM = """
- stream: {topic: in, serdes: {key: string, value: string}}
- groupByKey:
- aggregate:
    init: "0"
    add: total + int(value)
    materialized: {store: totals, serdes: {value: short}}
- toStream:
- mapValues: {value: str(value)}
- to: {topic: out, serdes: {key: string, value: string}}
"""


@pytest.mark.parametrize("fails", [True, False])
def test_half_of_a_surrogate_pair_is_written_as_java_writes_it(fails: bool) -> None:  # noqa: FBT001 - a parameter of the test
    """Jackson writes the escape, `StringSerializer` a question mark."""
    settings = NO_CACHE if fails else CONTINUE
    for serde, expected in (("json", rb'"a\uD800b\uDFFF"'), ("string", b"a?b?")):
        runner = TopologyRunner(
            f"""
            - stream: {{topic: in, serdes: {{key: string, value: json}}}}
            - to: {{topic: out, serdes: {{key: string, value: {serde}}}}}
            """,
            settings,
        )
        (written,) = runner.feed(runner.record("in", b"k", rb'"a\ud800b\udfff"', 1))
        assert written[3] == expected


def test_a_failure_with_half_of_a_surrogate_pair_can_be_logged_and_sent() -> None:
    topology = """
- stream: {topic: in, serdes: {key: string, value: json}}
- mapValues: {value: int(value)}
- to: {topic: out, serdes: {key: string, value: long}}
"""
    runner = TopologyRunner(topology, CONTINUE)
    (dead,) = runner.feed(runner.record("in", b"k", rb'"\ud800"', 1))
    assert b"ud800" in (dict(dead[5])["__streams.errors.message"] or b"")
    _, latest = runner.tasks["0"].take_dropped()
    assert (latest or "").encode()


_STREAM_AND_TABLE = """
- table: {topic: t, serdes: {key: string, value: long}, materialized: totals, as: t}
- stream: {topic: s, serdes: {key: string, value: string}}
- leftJoin: {with: t, value: "f'{left} {right}'"}
- to: {topic: out, serdes: {key: string, value: string}}
"""


@pytest.mark.parametrize("awaited", [(), (("t", 0), ("s", 0))])
def test_a_record_that_cannot_be_read_does_not_take_part_in_the_order(
    awaited: tuple[tuple[str, int], ...],
) -> None:
    """`RecordQueue#updateHead` skips it when it becomes the head: the head of `t` has timestamp 5."""
    runner = TopologyRunner(_STREAM_AND_TABLE, CONTINUE)
    task = runner.tasks["0"]
    written, _ = task.process_group(
        (
            runner.record("t", b"k", BAD, 1_000),
            runner.record("t", b"k", (1).to_bytes(8, "big"), 5),
            runner.record("t", b"k", (2).to_bytes(8, "big"), 20),
            runner.record("s", b"k", b"a", 10),
        ),
        awaited,
        0,
    )
    assert [value for topic, _, _, value, *_ in written if topic == "out"] == [b"a 1"]
    assert [value for topic, _, _, value, *_ in written if topic == "dead"] == [BAD]
    assert task.take_dropped()[0] == 1
    assert task.take_dropped() == (0, None)


def test_records_of_a_batch_that_cannot_be_read_do_not_take_part_in_its_order() -> None:
    runner = TopologyRunner(_STREAM_AND_TABLE, CONTINUE)
    written = runner.feed(
        runner.record("t", b"k", BAD, 1_000),
        runner.record("t", b"k", (1).to_bytes(8, "big"), 5),
        runner.record("t", b"k", BAD, 7),
        runner.record("s", b"k", b"a", 10),
    )
    assert [value for topic, _, _, value, *_ in written if topic == "out"] == [b"a 1"]
    assert runner.tasks["0"].take_dropped()[0] == 2


def test_an_awaited_partition_with_records_that_cannot_be_read_holds_the_others_back() -> None:
    runner = TopologyRunner(_STREAM_AND_TABLE, CONTINUE)
    _, group = runner.tasks["0"].process_group(
        (runner.record("t", b"k", BAD, 1_000), runner.record("s", b"k", b"a", 10)), [("t", 0)], 0
    )
    assert group.held_back == {("s", 0): 1}
    assert group.blocked_by == {("t", 0)}
    assert runner.tasks["0"].take_dropped()[0] == 1


def test_a_record_that_was_read_as_head_is_reported_as_it_is_in_the_topic() -> None:
    topology = """
- stream: {topic: in, serdes: {key: string, value: long}, timestamp: 7, as: a}
- stream: {topic: other, serdes: {key: string, value: long}, as: b}
- merge: {from: a, with: b}
- to: {topicExpression: 100 // value}
"""
    runner = TopologyRunner(topology, CONTINUE)
    written = runner.feed(runner.record("in", b"k", ZERO, 1), runner.record("other", b"l", ZERO, 2))
    assert [(topic, key, value, time) for topic, _, key, value, time, _ in written] == [
        ("dead", b"l", ZERO, 2),
        ("dead", b"k", ZERO, 7),
    ]


@pytest.mark.parametrize("settings", [CACHED, NO_CACHE], ids=["cached", "not cached"])
@pytest.mark.parametrize("window", ["", "tumbling: {size: 10s}", "sliding: {difference: 10s}"])
def test_a_count_in_a_format_that_has_no_numbers_fails_with_its_record(
    window: str, settings: EngineSettings
) -> None:
    windowed = f"- windowedBy: {{{window}}}\n" if window else ""
    runner = TopologyRunner(
        "- stream: {topic: in, serdes: {key: string, value: string}}\n- groupByKey: null\n"
        f"{windowed}- count: {{materialized: {{store: counts, serdes: {{key: string, value: string}}}}}}\n"
        "- toStream: null\n- to: {topic: out}\n",
        settings,
    )
    with pytest.raises(PoisonRecordError, match=r"record of in, partition 0, offset 0: .* as string"):
        runner.feed(runner.record("in", b"k", b"v", 1))


def _failing(error: BaseException) -> type[Processor]:
    class User(Processor):
        def process(self, _record: Record) -> None:
            raise error

    return User


_PROCESS = """
- stream: {topic: in, serdes: {key: string, value: string}}
- process: {class: User, name: user}
- to: {topic: out}
"""


@pytest.mark.parametrize("settings", [NO_CACHE, CONTINUE], ids=["fail", "continue"])
def test_a_lack_of_memory_skips_no_record(settings: EngineSettings) -> None:
    """The record is valid, so its batch is retried; handlers of Java get no `OutOfMemoryError` either."""
    runner = TopologyRunner(_PROCESS, settings, classes={"User": _failing(MemoryError())})
    with pytest.raises(MemoryError) as raised:
        runner.feed(runner.record("in", b"k", b"v", 1))
    (note,) = raised.value.__notes__
    assert note.startswith("record of in, partition 0, offset 0: cannot be processed: MemoryError")


def test_a_lack_of_memory_while_a_timestamp_is_extracted_is_no_bad_record() -> None:
    timestamp = '"(_ for _ in ()).throw(MemoryError())"'
    topology = _PROCESS.replace("string}}", f"string}}, timestamp: {timestamp}}}", 1)
    runner = TopologyRunner(topology, CONTINUE, classes={"User": _failing(ValueError())})
    with pytest.raises(MemoryError):
        runner.feed(runner.record("in", b"k", b"v", 1))


def test_an_endless_recursion_fails_whatever_the_handler_is() -> None:
    """As a `StackOverflowError` in Java, which is no exception that a handler gets."""
    runner = TopologyRunner(_PROCESS, CONTINUE, classes={"User": _failing(RecursionError("too deep"))})
    with pytest.raises(PoisonRecordError, match="RecursionError: too deep") as raised:
        runner.feed(runner.record("in", b"k", b"v", 1))
    assert raised.value.handler is None
