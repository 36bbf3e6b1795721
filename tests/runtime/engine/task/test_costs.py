"""The cost of a batch depends on its records and on stored entries, not on the distances of timestamps.

Costs are executed lines of Python, so they are the same in each run.
"""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from headwater_spark.engine.program_interface import EngineSettings
from headwater_spark.processors import Processor, ProcessorContext, PunctuationType, Record
from tests.runtime.engine.task.topologies import CLASSES, TOPOLOGIES
from tests.runtime.topology_runner import TopologyRunner

_A = "- stream: {topic: in, as: a, serdes: {key: string, value: string}}\n"
_B = "- stream: {topic: other, as: b, serdes: {key: string, value: string}}\n"
_TABLES = (
    "- table: {topic: in, as: a, serdes: {key: string, value: string}}\n"
    "- table: {topic: other, as: b, serdes: {key: string, value: string}}\n"
)
_OUT = "- toStream: null\n- to: {topic: out}\n"
_JOINED = "value: 'str(left) + str(right)'"
_COGROUP = f"{_A}{_B}- groupByKey: {{from: a, as: ga}}\n- groupByKey: {{from: b, as: gb}}\n"


def _join(call: str, options: str = "") -> str:
    window = f"window: {{difference: 10s, grace: 5s{options}}}"
    return f"{_A}{_B}- {call}: {{from: a, with: b, {_JOINED}, {window}}}\n- to: {{topic: out}}\n"


def _cogroup(window: str, merge: str = "") -> str:
    add = "add: '(total + value)[-9:]'"
    return (
        f"{_COGROUP}- cogroup: {{from: ga, {add}}}\n- cogroup: {{with: gb, {add}}}\n"
        f"- windowedBy: {{{window}}}\n- aggregate: {{init: \"''\"{merge}}}\n{_OUT}"
    )


class Ticking(Processor):
    """Reports on both clocks."""

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        context.schedule(1, PunctuationType.STREAM_TIME, self.report)
        context.schedule(1, PunctuationType.WALL_CLOCK_TIME, self.report)

    def process(self, record: Record) -> None:
        self.context.forward(record)

    def report(self, timestamp: int) -> None:
        self.context.forward(Record("tick", "tick", timestamp))


_CLASSES = {**CLASSES, "Ticking": Ticking}
_TOPOLOGIES = {
    **TOPOLOGIES,
    "join": _join("join"),
    "left join": _join("leftJoin"),
    "outer join": _join("outerJoin"),
    "eager outer join": _join("outerJoin", ", eager: true"),
    "self-join": (
        f"{_A}- join: {{from: a, with: a, {_JOINED}, window: {{difference: 10s, grace: 5s}}}}\n"
        "- to: {topic: out}\n"
    ),
    "join of a stream and a versioned table": (
        f"{_A}- table: {{topic: other, as: b, serdes: {{key: string, value: string}}, materialized: "
        "{supplier: {name: rows, kind: versionedKeyValue, retention: 20s}}}\n"
        f"- leftJoin: {{from: a, with: b, {_JOINED}, grace: 5s}}\n- to: {{topic: out}}\n"
    ),
    "join of tables": f"{_TABLES}- join: {{from: a, with: b, {_JOINED}}}\n{_OUT}",
    "foreign-key join": (
        f"{_TABLES}- join: {{from: a, with: b, foreignKey: value, {_JOINED}, serdes: {{value: string}}}}\n"
        f"{_OUT}"
    ),
    "cogroup": _cogroup("tumbling: {size: 10s, grace: 5s}"),
    "cogroup of sessions": _cogroup("session: {gap: 6s, grace: 5s}", ", merge: '(left + right)[-9:]'"),
    "hopping on close": TOPOLOGIES["tumbling on close"].replace(
        "tumbling: {size: 10s", "hopping: {size: 10s, advance: 4s"
    ),
    "session with suppress": TOPOLOGIES["suppress until close"].replace(
        "tumbling: {size: 10s", "session: {gap: 6s"
    ),
    "ticking processor": f"{_A}- process: {{class: Ticking}}\n- to: {{topic: out}}\n",
}
_NOW = 1_795_000_000_000
_YEAR_2200 = 7_258_118_400_000
_MONTH = 30 * 86_400_000
_SECOND = 1000


def _steps(first: int, gap: int, jump: int = 0) -> Callable[[int], int]:
    """Return a function from a record's number to its time; each tenth record is `jump` later."""
    return lambda number: first + number * gap + number // 10 * jump


_TIMES: dict[str, Callable[[int], int]] = {
    "1970": _steps(0, 500),
    "now": _steps(_NOW, 500),
    "2200": _steps(_YEAR_2200, 500),
    "far apart": _steps(_NOW, _MONTH),
    "months between groups": _steps(_NOW, 500, _MONTH),
    "1970, then now": lambda number: _NOW + 500 * number if number else _SECOND,
    "now, then 1970": lambda number: 500 * number if number else _NOW,
    "now and 2200 in turn": lambda number: (_NOW, _YEAR_2200)[number % 2] + 500 * number,
    "backward": lambda number: _NOW - 500 * number,
}
_DEFAULT = EngineSettings().cache_max_bytes
_MOST = 4
"""How much more than an update a record may cost if its entries expire, or are emitted when windows close."""
_LIMIT = 2_000_000


def cost_of(topology: str, cache: int, times: Callable[[int], int], records: int, batches: int) -> int:
    """Return the number of lines that are executed for some batches, while the wall clock advances."""
    runner = TopologyRunner(topology, EngineSettings(cache_max_bytes=cache), _CLASSES)
    topics = ["in", "other"] if "topic: other" in topology else ["in"]
    made = [
        runner.record(
            topics[number // 7 % len(topics)],
            b"key%d" % (number % 5),
            b"abcde"[number % 5 : number % 5 + 1],
            times(number),
        )
        for number in range(records)
    ]

    def run() -> None:
        for batch in range(batches):
            runner.wall += _MONTH
            runner.feed(*made[batch * records // batches : (batch + 1) * records // batches])

    return lines_of(run)


def lines_of(run: Callable[[], None]) -> int:
    lines = 0

    def count(_: FrameType, event: str, __: Any) -> Callable[..., Any]:  # noqa: ANN401 - as `settrace` has it
        nonlocal lines
        lines += event == "line"
        assert lines < _LIMIT
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        run()
    finally:
        sys.settrace(before)
    return lines


@pytest.mark.parametrize(
    "cache",
    [pytest.param(0, marks=pytest.mark.slow), pytest.param(600, marks=pytest.mark.soak), _DEFAULT],
)
@pytest.mark.parametrize("name", _TOPOLOGIES)
def test_cost_does_not_depend_on_distances_of_timestamps(name: str, cache: int) -> None:
    costs = {what: cost_of(_TOPOLOGIES[name], cache, times, 40, 2) for what, times in _TIMES.items()}
    assert max(costs.values()) <= _MOST * costs["1970"], costs


@pytest.mark.parametrize("cache", [pytest.param(0, marks=pytest.mark.slow), _DEFAULT])
@pytest.mark.parametrize("name", _TOPOLOGIES)
def test_cost_grows_with_the_number_of_records(name: str, cache: int) -> None:
    for what in ("now", "far apart", "backward"):
        times = _TIMES[what]
        few, many = (cost_of(_TOPOLOGIES[name], cache, times, records, 1) for records in (40, 160))
        assert many <= 6 * few, (what, few, many)
