"""Stateful topologies of each kind for property tests; all read `in` (string, string) and write `out`."""

from headwater_spark.engine.program_interface import EngineSettings
from headwater_spark.engine.records import Windowed
from headwater_spark.engine.task import Task
from headwater_spark.processors import Processor, ProcessorContext, PunctuationType, Record
from headwater_spark.worker.local_state import MemoryState
from tests.runtime.topology_runner import CACHED, programs

_STREAM = "- stream: {topic: in, serdes: {key: string, value: string}}\n"
_TABLE = "- table: {topic: in, serdes: {key: string, value: string}}\n"
_GROUPED = f"{_STREAM}- groupByKey: null\n"
_OUT = "- toStream: null\n- to: {topic: out}\n"


def _windowed(window: str, then: str = "count: null") -> str:
    return f"{_GROUPED}- windowedBy: {{{window}}}\n- {then}\n{_OUT}"


TOPOLOGIES = {
    "count": f"{_GROUPED}- count: null\n{_OUT}",
    "reduce": f"{_GROUPED}- reduce: {{add: 'max(total, value)'}}\n{_OUT}",
    "aggregate": f"{_GROUPED}- aggregate: {{init: \"''\", add: '(total + value)[-6:]'}}\n{_OUT}",
    "aggregate to nothing": (
        f"{_STREAM}- groupByKey: null\n"
        f"- aggregate: {{init: \"''\", add: 'None if value == \"c\" else total + value'}}\n{_OUT}"
    ),
    "tumbling": _windowed("tumbling: {size: 10s, grace: 5s}"),
    "hopping": _windowed("hopping: {size: 10s, advance: 4s, grace: 0s}"),
    "unlimited": _windowed("unlimited: {}"),
    "sliding": _windowed("sliding: {difference: 10s, grace: 5s}"),
    "session": _windowed("session: {gap: 6s, grace: 5s}"),
    "session reduce": _windowed("session: {gap: 6s, grace: 5s}", "reduce: {add: 'max(total, str(value))'}"),
    "tumbling on close": _windowed("tumbling: {size: 10s, grace: 5s}, emit: onWindowClose"),
    "sliding on close": _windowed("sliding: {difference: 10s, grace: 5s}, emit: onWindowClose"),
    "session on close": _windowed("session: {gap: 6s, grace: 5s}, emit: onWindowClose"),
    "suppress until close": _windowed(
        "tumbling: {size: 10s, grace: 5s}", "count: null\n- suppress: {until: windowCloses}"
    ),
    "suppress for a time": (
        f"{_TABLE}- suppress: {{until: timeLimit, timeLimit: 8s, maxRecords: 2}}\n{_OUT}"
    ),
    "suppress in few bytes": (
        f"{_TABLE}- suppress: {{until: timeLimit, timeLimit: 1h, maxBytes: 150}}\n{_OUT}"
    ),
    "table": f"{_TABLE}{_OUT}",
    "table filter": f"{_TABLE}- filter: {{where: \"value > 'a'\", materialized: kept}}\n{_OUT}",
    "table filter of old values": (
        f"{_TABLE}- filter: {{where: \"value > 'a'\"}}\n- mapValues: {{value: value + '!'}}\n"
        f"- filterNot: {{where: \"value == 'b!'\", materialized: kept}}\n{_OUT}"
    ),
    "table grouped": (
        f"{_TABLE}- groupBy: {{key: value, value: key}}\n"
        "- aggregate: {init: \"''\", add: \"''.join(sorted(total + value))\","
        " remove: \"total.replace(value, '', 1)\"}\n"
        f"{_OUT}"
    ),
    "table counted": f"{_TABLE}- groupBy: {{key: value, value: key}}\n- count: null\n{_OUT}",
    "table reduced": (
        f"{_TABLE}- groupBy: {{key: 'value[:1]', value: key}}\n"
        f"- reduce: {{add: 'total + value', remove: \"total.replace(value, '', 1)\"}}\n{_OUT}"
    ),
    "versioned table": (
        "- table: {topic: in, serdes: {key: string, value: string}, materialized: {supplier: "
        "{name: history, kind: versionedKeyValue, retention: 20s}}}\n"
        f"- filter: {{where: \"value > 'a'\"}}\n{_OUT}"
    ),
    "count of counts": (
        f"{_GROUPED}- count: null\n- groupBy: {{key: str(value), value: '1'}}\n- count: null\n{_OUT}"
    ),
    "processor": (
        "- addStateStore: {name: totals, serdes: {key: string, value: long}}\n"
        "- addStateStore: {name: seen, kind: window, retention: 60s, windowSize: 10s,"
        " serdes: {key: string, value: string}}\n"
        "- addStateStore: {name: visits, kind: session, retention: 60s,"
        " serdes: {key: string, value: string}}\n"
        f"{_STREAM}- process: {{class: 'Busy', stores: [totals, seen, visits]}}\n- to: {{topic: out}}\n"
    ),
}


class Busy(Processor):
    """Uses stores of three kinds, and reports what they hold on either clock."""

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        self.totals = context.state_store("totals")
        self.seen = context.state_store("seen")
        self.visits = context.state_store("visits")
        context.schedule(7_000, PunctuationType.STREAM_TIME, self.report)

    def process(self, record: Record) -> None:
        if record.key is None:
            return
        total = (self.totals.get(record.key) or 0) + 1
        self.totals.put(record.key, total)
        start = record.timestamp // 10_000 * 10_000
        before = self.seen.fetch(record.key, start) or ""
        self.seen.put(record.key, before + (record.value or "-"), start)
        for session, visits in list(self.visits.fetch(record.key)):
            self.visits.remove(session)
            self.visits.put(session._replace(end=max(session.end, record.timestamp)), visits)
            break
        else:
            self.visits.put(type(self).session(record), "first")
        self.context.forward(record.with_value(f"{total} {before}"))

    @staticmethod
    def session(record: Record) -> Windowed:
        return Windowed(record.key, record.timestamp, record.timestamp)

    def report(self, timestamp: int) -> None:
        lines = [f"{key}={total}" for key, total in self.totals.all()]
        lines += [f"{window}" for window in self.seen.all()]
        self.context.forward(Record("report", " ".join(lines), timestamp))


CLASSES = {"Busy": Busy}


def create_task(topology: str, settings: EngineSettings = CACHED) -> Task:
    """Return task 0 of the first sub-topology, without state."""
    return Task(programs(topology, settings, CLASSES)[0], 0, MemoryState())
