"""The Processor API: forwarding, schedules, stores, global stores, and errors of users."""

import json
import math
import struct
from collections.abc import Callable
from typing import Any

import attrs
import pytest

from headwater_spark.engine.task import PoisonRecordError
from headwater_spark.processors import (
    FixedKeyProcessor,
    Processor,
    ProcessorContext,
    PunctuationType,
    Record,
    ValueTransformer,
)
from tests.runtime.topology_runner import NO_CACHE, TopologyRunner

PROCESS = """
- stream: {topic: in, serdes: {key: string, value: string}}
- process: {class: User, name: user}
- to: {topic: out}
"""


def shown(outputs: list[Any]) -> list[tuple[str, str | None, str | None, int]]:
    return [
        (topic, key and key.decode(), value and value.decode(), time)
        for topic, _, key, value, time, _ in outputs
    ]


def user(
    process: Callable[[Any, Record], None], init: Callable[[Any], None] | None = None
) -> type[Processor]:
    class User(Processor):
        def init(self, context: ProcessorContext) -> None:
            self.context = context
            if init is not None:
                init(self)

        def process(self, record: Record) -> None:
            process(self, record)

    return User


def test_processors_receive_and_forward_headers_timestamps_and_metadata() -> None:
    seen = []

    def process(self: Any, record: Record) -> None:  # noqa: ANN401
        seen.append((record, self.context.record_metadata, self.context.task_id, self.context.application_id))
        self.context.forward(record.with_timestamp(99).with_value("new").with_headers((("h", b"2"),)))

    runner = TopologyRunner(PROCESS, classes={"User": user(process)})
    outputs = runner.feed(runner.record("in", b"k", b"v", 5, (("h", b"1"),)))
    assert outputs == [("out", None, b"k", b"new", 99, (("h", b"2"),))]
    record, metadata, task, application = seen[0]
    assert record == Record("k", "v", 5, (("h", b"1"),))
    assert (metadata.topic, metadata.partition, metadata.offset) == ("in", 0, 0)
    assert (task, application) == ("0_0", "app")


def test_a_child_can_be_named() -> None:
    topology = """
    - addSource: {name: source, topic: in}
    - addProcessor: {name: user, parents: [source], class: User}
    - addSink: {name: left, topic: left, parents: [user]}
    - addSink: {name: right, topic: right, parents: [user]}
    """

    def process(self: Any, record: Record) -> None:  # noqa: ANN401
        self.context.forward(record, "right")
        if record.value == "both":
            self.context.forward(record)
        if record.value == "unknown":
            self.context.forward(record, "elsewhere")

    runner = TopologyRunner(topology, classes={"User": user(process)})
    assert [output[0] for output in runner.feed(runner.record("in", b"k", b"one", 1))] == ["right"]
    both = [output[0] for output in runner.feed(runner.record("in", b"k", b"both", 1))]
    assert both == ["right", "left", "right"]
    with pytest.raises(PoisonRecordError, match="user has no child elsewhere"):
        runner.feed(runner.record("in", b"k", b"unknown", 1))


CHILDREN = """
- addSource: {name: source, topic: in}
- addProcessor: {name: user, parents: [source], class: User, stores: [{name: s, kind: keyValue}]}
- addProcessor: {name: child, parents: [user], class: Child}
- addSink: {name: out, topic: out, parents: [child]}
"""


def test_a_processor_that_catches_the_error_of_a_child_continues_with_its_own_record() -> None:
    """The timestamp of a store's changelog record is the time of the record that the processor has."""

    def process(self: Any, record: Record) -> None:  # noqa: ANN401
        try:
            self.context.forward(record.with_timestamp(99))
        except ZeroDivisionError:
            self.context.state_store("s").put(record.key, "failed")

    def fail(_self: Any, _record: Record) -> None:  # noqa: ANN401
        raise ZeroDivisionError

    runner = TopologyRunner(CHILDREN, NO_CACHE, classes={"User": user(process), "Child": user(fail)})
    assert shown(runner.feed(runner.record("in", b"k", b"v", 5))) == [("app-s-changelog", "k", "failed", 5)]


def scheduled(kind: PunctuationType) -> type[Processor]:
    def init(self: Any) -> None:  # noqa: ANN401
        def punctuate(timestamp: int) -> None:
            now = f"{self.context.current_stream_time_ms()} {self.context.current_system_time_ms()}"
            assert self.context.record_metadata is None
            self.context.forward(Record("tick", now, timestamp))

        self.context.schedule(10, kind, punctuate)

    return user(lambda self, record: None, init)  # noqa: ARG005


def test_stream_time_punctuates_at_once_then_at_multiples_of_the_interval() -> None:
    runner = TopologyRunner(PROCESS, classes={"User": scheduled(PunctuationType.STREAM_TIME)})
    times = (3, 9, 10, 47, 12, 49, 50)
    outputs = runner.feed(*(runner.record("in", b"k", b"v", time) for time in times))
    assert [time for *_, time in shown(outputs)] == [3, 10, 47, 50]


def test_wall_clock_time_punctuates_over_batches_and_workers() -> None:
    runner = TopologyRunner(PROCESS, classes={"User": scheduled(PunctuationType.WALL_CLOCK_TIME)})
    assert runner.feed(runner.record("in", b"k", b"v", 1)) == []
    assert runner.advance_wall_clock(9) == []
    runner.reopen()
    assert shown(runner.advance_wall_clock(1)) == [("out", "tick", "1 10", 10)]
    assert shown(runner.advance_wall_clock(35)) == [("out", "tick", "1 45", 45)]
    assert runner.advance_wall_clock(4) == []
    assert shown(runner.advance_wall_clock(1)) == [("out", "tick", "1 50", 50)]


def test_a_cancelled_schedule_is_not_called() -> None:
    def init(self: Any) -> None:  # noqa: ANN401
        def once(timestamp: int) -> None:
            self.context.forward(Record("tick", None, timestamp))
            self.schedule.cancel()

        self.schedule = self.context.schedule(10, PunctuationType.STREAM_TIME, once)

    runner = TopologyRunner(PROCESS, classes={"User": user(lambda self, record: None, init)})  # noqa: ARG005
    outputs = runner.feed(*(runner.record("in", b"k", b"v", time) for time in (3, 30, 60)))
    assert [time for *_, time in shown(outputs)] == [3]


def test_a_schedule_that_a_punctuation_adds_is_called_at_once_if_it_is_due() -> None:
    def init(self: Any) -> None:  # noqa: ANN401
        def forward(key: str) -> Callable[[int], None]:
            return lambda timestamp: self.context.forward(Record(key, None, timestamp))

        def first(timestamp: int) -> None:
            forward("first")(timestamp)
            if timestamp == 20:
                self.context.schedule(10, PunctuationType.STREAM_TIME, forward("added"))
                self.context.schedule(10, PunctuationType.WALL_CLOCK_TIME, forward("later"))

        self.context.schedule(10, PunctuationType.STREAM_TIME, first)
        self.context.schedule(10, PunctuationType.STREAM_TIME, forward("second"))

    runner = TopologyRunner(PROCESS, classes={"User": user(lambda self, record: None, init)})  # noqa: ARG005
    outputs = runner.feed(runner.record("in", b"k", b"v", 13), runner.record("in", b"k", b"v", 20))
    assert [(key, time) for _, key, _, time in shown(outputs)] == [
        ("first", 13), ("second", 13), ("first", 20), ("added", 20), ("second", 20)
    ]  # fmt: skip
    assert [key for _, key, _, _ in shown(runner.advance_wall_clock(10))] == ["later"]


def failing_at(time: int) -> type[Processor]:
    def init(self: Any) -> None:  # noqa: ANN401
        def tick(timestamp: int) -> None:
            if timestamp == time:
                raise ValueError("not now")
            self.context.forward(Record("tick", None, timestamp))

        self.context.schedule(10, PunctuationType.STREAM_TIME, tick)

    return user(lambda self, record: self.context.forward(record), init)


def test_a_failing_punctuation_stops_the_task() -> None:
    runner = TopologyRunner(PROCESS, classes={"User": failing_at(3)})
    expected = rf"task 0_0: a punctuation failed: ValueError: not now \({__name__}, line \d+\)"
    with pytest.raises(PoisonRecordError, match=expected):
        runner.feed(runner.record("in", b"k", b"v", 3))


def test_a_failure_names_the_line_of_the_user_and_not_of_a_library() -> None:
    def process(_self: Any, record: Record) -> None:  # noqa: ANN401
        json.loads(record.value)

    line = process.__code__.co_firstlineno + 1
    runner = TopologyRunner(PROCESS, classes={"User": user(process)})
    with pytest.raises(PoisonRecordError, match=rf"JSONDecodeError: .* \({__name__}, line {line}\)$"):
        runner.feed(runner.record("in", b"k", b"{", 3))


def test_a_failure_outside_of_the_code_of_users_names_no_line() -> None:
    text = PROCESS.replace("process: {class: User, name: user}", "mapValues: {value: 1 / 0}")
    runner = TopologyRunner(text)
    with pytest.raises(PoisonRecordError, match=r"ZeroDivisionError: [^()]*$"):
        runner.feed(runner.record("in", b"k", b"v", 3))


def test_a_failing_punctuation_can_be_skipped() -> None:
    settings = attrs.evolve(NO_CACHE, on_processing_error="continue")
    runner = TopologyRunner(PROCESS, settings, {"User": failing_at(3)})
    outputs = runner.feed(runner.record("in", b"k", b"v", 3), runner.record("in", b"k", b"v", 12))
    assert [(key, time) for _, key, _, time in shown(outputs)] == [("k", 3), ("k", 12), ("tick", 12)]


def test_a_failing_punctuation_that_is_skipped_does_not_defer_others() -> None:
    def init(self: Any) -> None:  # noqa: ANN401
        def fail(_timestamp: int) -> None:
            raise ValueError("never")

        for callback in (fail, lambda timestamp: self.context.forward(Record("tick", None, timestamp))):
            self.context.schedule(10, PunctuationType.STREAM_TIME, callback)

    settings = attrs.evolve(NO_CACHE, on_processing_error="continue")
    runner = TopologyRunner(PROCESS, settings, {"User": user(lambda self, record: None, init)})  # noqa: ARG005
    outputs = runner.feed(runner.record("in", b"k", b"v", 3))
    assert [(key, time) for _, key, _, time in shown(outputs)] == [("tick", 3)]


def test_process_values_keeps_the_key() -> None:
    class User(FixedKeyProcessor):
        def init(self, context: ProcessorContext) -> None:
            self.context = context

        def process(self, record: Record) -> None:
            self.context.forward(record.with_key(record.value))

    runner = TopologyRunner(PROCESS.replace("process:", "processValues:"), classes={"User": User})
    assert shown(runner.feed(runner.record("in", b"k", b"k", 1))) == [("out", "k", "k", 1)]
    with pytest.raises(PoisonRecordError, match="must not change the key"):
        runner.feed(runner.record("in", b"k", b"other", 1))


DOUBLE_KEYS = """
- stream: {topic: in, serdes: {key: double, value: string}}
- processValues: {class: User, name: user}
- to: {topic: out, serdes: {key: double}}
"""


def test_process_values_keeps_a_key_that_is_not_a_number() -> None:
    key = struct.pack(">d", math.nan)
    runner = TopologyRunner(
        DOUBLE_KEYS, classes={"User": user(lambda self, record: self.context.forward(record))}
    )
    assert runner.feed(runner.record("in", key, b"v", 1)) == [("out", None, key, b"v", 1, ())]


def test_process_values_does_not_change_the_sign_of_zero() -> None:
    def process(self: Any, record: Record) -> None:  # noqa: ANN401
        self.context.forward(record.with_key(-record.key))

    runner = TopologyRunner(DOUBLE_KEYS, classes={"User": user(process)})
    with pytest.raises(PoisonRecordError, match="must not change the key"):
        runner.feed(runner.record("in", struct.pack(">d", 0.0), b"v", 1))


def test_only_connected_stores_are_available() -> None:
    runner = TopologyRunner(
        PROCESS,
        classes={"User": user(lambda self, record: self.context.state_store("s"))},  # noqa: ARG005
    )
    with pytest.raises(PoisonRecordError, match="not connected to a store s"):
        runner.feed(runner.record("in", b"k", b"v", 1))


def test_global_stores_need_no_connection() -> None:
    topology = """
    - globalTable: {topic: names, serdes: {key: string, value: string}, materialized: names}
    - stream: {topic: in, serdes: {key: string, value: string}}
    - process: {class: User}
    - to: {topic: out}
    """

    def process(self: Any, record: Record) -> None:  # noqa: ANN401
        found = self.context.state_store("names").get(record.key)
        self.context.forward(record.with_value(found and found.value))

    runner = TopologyRunner(topology, classes={"User": user(process)})
    assert runner.feed(runner.record("names", b"k", b"Kay", 7)) == []
    outputs = runner.feed(runner.record("in", b"k", b"v", 1), runner.record("in", b"l", b"v", 2))
    assert shown(outputs) == [("out", "k", "Kay", 1), ("out", "l", None, 2)]


def test_a_global_store_is_written_by_its_class() -> None:
    topology = """
    - addGlobalStore: {store: {name: lengths, serdes: {key: string, value: long}}, topic: words,
                       name: filling, class: Filling, serdes: {key: string, value: string}}
    - stream: {topic: in, serdes: {key: string, value: string}}
    - process: {class: User}
    - to: {topic: out}
    """

    class Filling(Processor):
        def init(self, context: ProcessorContext) -> None:
            self.lengths = context.state_store("lengths")

        def process(self, record: Record) -> None:
            self.lengths.put(record.key, len(record.value))

    def process(self: Any, record: Record) -> None:  # noqa: ANN401
        self.context.forward(record.with_value(str(self.context.state_store("lengths").get(record.key))))

    runner = TopologyRunner(topology, classes={"User": user(process), "Filling": Filling})
    assert runner.feed(runner.record("words", b"k", b"four", 7)) == []
    assert shown(runner.feed(runner.record("in", b"k", b"v", 1))) == [("out", "k", "4", 1)]


def test_a_transformer_computes_a_table() -> None:
    class Transformer(ValueTransformer):
        def transform(self, key: Any, value: Any) -> Any:  # noqa: ANN401
            return None if value is None else f"{key}-{value}"

    topology = """
    - table: {topic: in, serdes: {key: string, value: string}}
    - transformValues: {class: Transformer, materialized: kept}
    - toStream: null
    - to: {topic: out}
    """
    runner = TopologyRunner(topology, classes={"Transformer": Transformer})
    outputs = runner.feed(runner.record("in", b"k", b"v", 1), runner.record("in", b"k", None, 2))
    assert [line for line in shown(outputs) if line[0] == "out"] == [
        ("out", "k", "k-v", 1),
        ("out", "k", None, 2),
    ]


def test_processors_are_closed_with_their_task() -> None:
    closed = []

    class User(Processor):
        def close(self) -> None:
            closed.append(1)

    TopologyRunner(PROCESS, classes={"User": User}).tasks["0"].close()
    assert closed == [1]


def add_suffixes(record: Record) -> list[Record]:
    return [record.with_value(f"{record.value}-{suffix}") for suffix in ("a", "b")]


def keep_long(record: Record) -> Record | None:
    return record if len(record.value) > 2 else None


def test_a_function_forwards_what_it_returns() -> None:
    runner = TopologyRunner(PROCESS, classes={"User": add_suffixes})
    assert shown(runner.feed(runner.record("in", b"k", b"v", 5))) == [
        ("out", "k", "v-a", 5),
        ("out", "k", "v-b", 5),
    ]
    kept = TopologyRunner(PROCESS, classes={"User": keep_long})
    assert shown(kept.feed(kept.record("in", b"k", b"v", 5), kept.record("in", b"k", b"long", 6))) == [
        ("out", "k", "long", 6)
    ]


def test_a_function_transforms_values_of_a_table() -> None:
    table = """
- table: {topic: in, serdes: {key: string, value: string}}
- transformValues: {class: User}
- toStream:
- to: {topic: out}
"""
    runner = TopologyRunner(table, classes={"User": lambda key, value: f"{key}={value}"})
    assert shown(runner.feed(runner.record("in", b"k", b"v", 5))) == [("out", "k", "k=v", 5)]
