"""Updates that the flush of a record cache causes in a store that was flushed before."""

from typing import Any

import pytest

from headwater_spark.engine.program_interface import EngineSettings
from headwater_spark.engine.records import ValueAndTimestamp
from headwater_spark.engine.task import PoisonRecordError
from headwater_spark.processors import Processor, ProcessorContext, Record
from tests.runtime.engine.task.topologies import TOPOLOGIES
from tests.runtime.topology_runner import CACHED, TopologyRunner

TINY = EngineSettings(emit_interval_ms=0, cache_max_bytes=1)
_MEMORY = """
- addStateStore: {name: memory, kind: keyValue, caching: true, serdes: {key: string, value: string}}
- stream: {topic: in, serdes: {key: string, value: string}}
- process: {class: Recall, stores: [memory]}
- to: {topic: out}
"""
REMEMBERED = f"""{_MEMORY}
- stream: {{topic: counted, serdes: {{key: string, value: string}}}}
- groupByKey: null
- count: null
- toStream: null
- process: {{class: Remember, stores: [memory]}}
"""
TABLE = """
- stream: {topic: in, serdes: {key: string, value: string}}
- toTable: {materialized: {store: rows, serdes: {key: string, value: string}}, as: rows}
- toStream: {from: rows, as: changes}
- to: {from: changes, topic: out}
- process: {from: changes, class: Shorten, stores: [rows]}
"""


class Recall(Processor):
    """Forwards what the store has for a key."""

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        self.memory = context.state_store("memory")

    def process(self, record: Record) -> None:
        self.context.forward(record.with_value(self.memory.get(record.key)))


class Remember(Processor):
    """Stores the value of each key; gets the store when it needs it."""

    def init(self, context: ProcessorContext) -> None:
        self.context = context

    def process(self, record: Record) -> None:
        self.context.state_store("memory").put(record.key, str(record.value))


def shorten(*, always: bool, shortest: int = 0) -> type[Processor]:
    """Return a processor that removes the last character of each row, until it has `shortest` ones."""

    class Shorten(Processor):
        def init(self, context: ProcessorContext) -> None:
            self.rows = context.state_store("rows")

        def process(self, record: Record) -> None:
            if always or len(record.value) > shortest:
                shorter = record.value[: max(len(record.value) - 1, shortest)]
                self.rows.put(record.key, ValueAndTimestamp(shorter, record.timestamp))

    return Shorten


def values(outputs: list[Any], topic: str) -> list[bytes | None]:
    return [value for written, _, _, value, _, _ in outputs if written == topic]


@pytest.mark.parametrize("settings", [CACHED, TINY], ids=["large", "tiny"])
def test_a_write_to_a_store_that_was_flushed_before_is_kept(settings: EngineSettings) -> None:
    runner = TopologyRunner(REMEMBERED, settings, {"Recall": Recall, "Remember": Remember})
    written = runner.feed(runner.record("counted", b"k", b"", 1))
    assert values(written, "app-memory-changelog") == [b"1"]
    assert values(runner.feed(runner.record("in", b"k", b"", 2)), "out") == [b"1"]
    runner.reopen()
    assert values(runner.feed(runner.record("in", b"k", b"", 3)), "out") == [b"1"]


def test_a_table_that_a_later_processor_writes_is_forwarded_again() -> None:
    runner = TopologyRunner(TABLE, CACHED, {"Shorten": shorten(always=False, shortest=1)})
    outputs = runner.feed(runner.record("in", b"k", b"abc", 1), runner.record("in", b"l", b"xy", 2))
    assert values(outputs, "out") == [b"abc", b"xy", b"ab", b"x", b"a"]
    assert values(outputs, "app-rows-changelog") == [b"abc", b"xy", b"ab", b"x", b"a"]


def test_a_processor_that_puts_the_same_value_at_each_flush_ends() -> None:
    runner = TopologyRunner(TABLE, CACHED, {"Shorten": shorten(always=True, shortest=2)})
    assert values(runner.feed(runner.record("in", b"k", b"abc", 1)), "out") == [b"abc", b"ab"]
    assert values(runner.feed(runner.record("in", b"k", b"ab", 2)), "out") == [b"ab", b"ab"]


def test_updates_without_end_stop_the_task() -> None:
    class Extend(Processor):
        def init(self, context: ProcessorContext) -> None:
            self.rows = context.state_store("rows")

        def process(self, record: Record) -> None:
            self.rows.put(record.key, ValueAndTimestamp(record.value + "a", record.timestamp))

    runner = TopologyRunner(TABLE, CACHED, {"Shorten": Extend})
    with pytest.raises(PoisonRecordError, match="EndlessUpdatesError: the updates of rows cause new ones"):
        runner.feed(runner.record("in", b"k", b"a", 1))


def test_windows_that_are_emitted_on_close_are_logged_once_per_batch() -> None:
    runner = TopologyRunner(TOPOLOGIES["tumbling on close"], EngineSettings(emit_interval_ms=0))
    times = (1_000, 2_000, 12_000, 16_000, 40_000)
    written = runner.feed(*(runner.record("in", b"k", b"v", time) for time in times))
    assert [time for topic, *_, time, _ in written if topic.endswith("-changelog")] == [2_000, 16_000, 40_000]
    assert [time for topic, *_, time, _ in written if topic == "out"] == [2_000, 16_000]
