"""The engine alone: records per second of CPU time, by operator, without Spark and Kafka."""

import random
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from headwater_spark.engine.program_interface import EngineSettings
from headwater_spark.engine.records import InputRecord
from headwater_spark.engine.task import Task
from headwater_spark.processors import Processor, ProcessorContext, Record
from headwater_spark.worker.local_state import LocalState
from headwater_spark.worker.task_input import number_keys
from tests.bench.figures import Figure, shown
from tests.runtime.partition_columns import column_input
from tests.runtime.topology_runner import NO_CACHE, programs

_BATCH = 50_000
_BATCHES = 4
_ROWS = 2_000
_SMALL_CACHE = 2 * 1024 * 1024
"""Bytes: less than the entries of a batch with unique keys."""
_STREAM = "- stream: {topic: in, serdes: {key: string, value: string}}\n"
_TABLE = "- table: {topic: in, serdes: {key: string, value: string}, materialized: rows}\n"
_KEYS: Mapping[str, Callable[[int], int]] = {"5,000 keys": lambda i: i % 5000, "unique keys": lambda i: i}
_LEFT = _STREAM.replace("topic: in,", "topic: in, as: left,")
_RIGHT = _TABLE.replace("topic: in,", "topic: other, as: right,")
_JOIN = "value: left + right, serdes: {value: string}"
_OUT = "- toStream: null\n- to: {topic: out}\n"
_GROUPED = f"{_STREAM}- groupByKey: null\n"


class Counter(Processor):
    """A count as a user's processor."""

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        self.totals = context.state_store("totals")

    def process(self, record: Record) -> None:
        total = (self.totals.get(record.key) or 0) + 1
        self.totals.put(record.key, total)
        self.context.forward(record.with_value(str(total)))


_JSON_TOTAL = "{'count': total.get('count', 0) + 1, 'largest': max(total.get('largest', ''), value)}"
_COUNTED = f"- count: null\n{_OUT}"
_WINDOWS = {
    "tumbling": "tumbling: {size: 60s, grace: 60s}",
    "hopping": "hopping: {size: 60s, advance: 20s, grace: 60s}",
    "session": "session: {gap: 5s, grace: 60s}",
    "sliding": "sliding: {difference: 5s, grace: 60s}",
}
_LATE = {", 0.1 % late": 0.001, ", 1 % late": 0.01, ", 10 % late": 0.1}
"""The share of records that are up to 90 seconds late."""
_LATEST_MS = 90_000
_SUPPRESS = {"windows close": "until: windowCloses", "a time limit": "until: timeLimit, timeLimit: 1s"}
_KINDS = {
    "map, filter": (
        f"{_STREAM}- filter: {{where: \"value != 'x'\"}}\n- mapValues: {{value: value + '!'}}\n"
        "- to: {topic: out}\n"
    ),
    "count, update per record": f"{_GROUPED}{_COUNTED}",
    "count, update per batch": f"{_GROUPED}{_COUNTED}",
    "count, full record cache": f"{_GROUPED}{_COUNTED}",
    "reduce, update per record": f"{_GROUPED}- reduce: {{add: value}}\n{_OUT}",
    "reduce, update per batch": f"{_GROUPED}- reduce: {{add: value}}\n{_OUT}",
    **{
        f"{kind} count{', update per batch' if cached else ''}": (
            f"{_GROUPED}- windowedBy: {{{window}}}\n{_COUNTED}"
        )
        for kind, window in _WINDOWS.items()
        for cached in (False, True)
    },
    "inner join of two streams, update per batch": (
        f"{_LEFT}{_LEFT.replace('in, as: left', 'other, as: right')}"
        f"- join: {{from: left, with: right, {_JOIN}, window: {{difference: 5s, grace: 60s}}}}\n"
        "- to: {topic: out}\n"
    ),
    "join of two streams, update per batch": (
        f"{_STREAM.replace('}}', '}, as: left}')}"
        "- filter: {where: \"key[-1:] in '02468'\", as: even}\n"
        "- leftJoin: {from: even, with: left, value: left, window: {difference: 5s, grace: 60s}}\n"
        "- to: {topic: out}\n"
    ),
    **{
        f"{kind} count, update per batch, from columns{late}": (
            f"{_GROUPED}- windowedBy: {{{_WINDOWS[kind]}}}\n{_COUNTED}"
        )
        for kind in _WINDOWS
        for late in ("", *_LATE)
    },
    "aggregate, update per batch": (
        f"{_GROUPED}- aggregate: {{init: '0', add: total + len(value), "
        f"materialized: {{store: totals, serdes: {{key: string, value: long}}}}}}\n"
        "- toStream: null\n- to: {topic: out, serdes: {key: string, value: long}}\n"
    ),
    "aggregate to JSON, update per batch": (
        f"{_GROUPED}- aggregate: {{init: '{{}}', add: \"{_JSON_TOTAL}\", "
        f"materialized: {{store: totals, serdes: {{key: string, value: json}}}}}}\n"
        "- toStream: null\n- to: {topic: out, serdes: {key: string, value: json}}\n"
    ),
    "table": f"{_TABLE}{_OUT}",
    "table, update per batch": f"{_TABLE}{_OUT}",
    "join of a stream and a table, update per batch": (
        f"{_LEFT}{_RIGHT}- join: {{from: left, with: right, {_JOIN}}}\n- to: {{topic: out}}\n"
    ),
    "join of two tables, update per batch": (
        f"{_LEFT.replace('stream', 'table')}{_RIGHT}- join: {{from: left, with: right, {_JOIN}}}\n{_OUT}"
    ),
    "foreign-key join, left table, update per batch": (
        f"{_LEFT.replace('stream', 'table')}{_RIGHT}"
        f"- join: {{from: left, with: right, foreignKey: value, {_JOIN}}}\n{_OUT}"
    ),
    "table, filtered and mapped": (
        f"{_TABLE}- filter: {{where: \"value != 'x'\"}}\n- mapValues: {{value: value + '!'}}\n{_OUT}"
    ),
    **{
        f"suppress until {until}{how}": (
            f"{_GROUPED}- windowedBy: {{tumbling: {{size: 1s, grace: 0s}}}}\n- count: null\n"
            f"- suppress: {{{settings}}}\n{_OUT}"
        )
        for until, settings in _SUPPRESS.items()
        for how in ("", ", update per batch", ", update per batch, from columns")
    },
    "processor with a store": (
        "- addStateStore: {name: totals, serdes: {key: string, value: long}}\n"
        f"{_STREAM}- process: {{class: Counter, stores: [totals]}}\n- to: {{topic: out}}\n"
    ),
}


def run(*_: object) -> Iterator[Figure]:
    """Yield a figure per operator, for 5,000 keys that repeat and for unique keys."""
    for kind, topology in _KINDS.items():
        settings = _settings(kind)
        for keys, key in _KEYS.items():
            late = next((share for name, share in _LATE.items() if kind.endswith(name)), 0.0)
            rate = _rate(topology, settings, key, late, in_columns="from columns" in kind)
            yield Figure(what=f"{kind}; {keys}", unit="records per CPU second", ours=rate, is_rate=True)


def _settings(kind: str) -> EngineSettings:
    if "update per batch" in kind:
        return EngineSettings()
    return EngineSettings(cache_max_bytes=_SMALL_CACHE) if kind.endswith("full record cache") else NO_CACHE


def _rate(
    topology: str, settings: EngineSettings, key: Callable[[int], int], late: float, *, in_columns: bool
) -> float:
    """Return records per second for processing, preparing and committing to LMDB; without Kafka.

    The input is created before, in the form that the task processes. `in_columns`: the records are Arrow
    columns, from which the task counts.
    """
    program = programs(topology, settings, {"Counter": Counter})[0]
    with tempfile.TemporaryDirectory(prefix="headwater-engine-") as folder:
        state = LocalState(Path(folder))
        task = Task(program, 0, state)
        topics = [topic for topic in ("in", "other") if topic in program.sources]
        batches = [[_records(topic, number, key, late) for topic in topics] for number in range(_BATCHES)]
        are_columns = in_columns or task.is_columnar
        inputs = [[column_input(each, _ROWS) for each in batch] for batch in batches if are_columns]
        records = [[record for each in batch for record in each] for batch in batches]
        started = time.process_time()
        for number in range(_BATCHES):
            if in_columns:
                keyed = number_keys(inputs[number][0])
                assert keyed is not None
                assert task.process_windows(keyed, number) is not None
            elif task.is_columnar:
                columns = [part for each in inputs[number] for part in each.partition_columns()]
                task.process_partitions(columns, (), number)
            else:
                task.process(records[number], number)
            state.prepare(number)
            state.commit(number)
        spent = time.process_time() - started
        state.close()
    return _BATCH * _BATCHES * len(topics) / spent


def _records(topic: str, batch: int, key: Callable[[int], int], late: float) -> list[InputRecord]:
    """Return records of a topic, one per millisecond; records of the second topic come between them."""
    chance = random.Random(batch)  # noqa: S311 - the same in each run
    records: list[InputRecord] = []
    for at in range(batch * _BATCH, (batch + 1) * _BATCH):
        behind = chance.randrange(1_000, _LATEST_MS) if chance.random() < late else 0
        time = 1_700_000_000_000 + at - behind
        records.append((topic, 0, at, time, b"key-%08d" % key(at), b"value", ()))
    return records


if __name__ == "__main__":
    for figure in run():
        print(shown([figure]))  # noqa: T201
