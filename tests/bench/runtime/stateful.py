"""The steps of stateful operators; `Peer.java` has the same with the DSL of Kafka Streams.

Sources have 1,000 records per second of event time, so each of 1,000 keys has one per second.
"""

from collections.abc import Mapping

from tests.bench.runtime.workloads import Chain

_READ = "serdes: {key: string, value: string}"
_GROUPED = f"- stream: {{topic: %(source)s, {_READ}}}\n- groupByKey:\n"
_STREAMS = (
    f"- stream: {{topic: %(source)s, as: left%(n)s, {_READ}}}\n"
    f"- stream: {{topic: %(other)s, as: right%(n)s, {_READ}}}\n"
)
_STREAM_AND_TABLE = _STREAMS.replace(
    "- stream: {topic: %(other)s,", "- table: {topic: %(other)s, materialized: t,"
)
_STREAM_AND_GLOBAL_TABLE = _STREAM_AND_TABLE.replace(
    "- table: {topic: %(other)s", "- globalTable: {topic: %(table)s"
)
_TABLES = _STREAM_AND_TABLE.replace("- stream:", "- table:")
_JOINED = "value: \"concat(left, '+', right)\", serdes: {value: string}"
_BOTH = "from: left%(n)s, with: right%(n)s"
_OUT = f"- to: {{topic: %(sink)s, {_READ}}}\n"
_FOREIGN_KEY = "concat('key-', string(int(substring(value, 7)) % 1000))"
_WINDOWS = "serdes: {key: time-windowed, value: long}"


def _counted(window: str, key: str = "time-windowed", then: str = "") -> str:
    return (
        f"{_GROUPED}- windowedBy: {{{window}}}\n- count: {{materialized: counts}}\n{then}"
        f"- toStream:\n- to: {{topic: %(sink)s, serdes: {{key: {key}, value: long}}}}\n"
    )


_JSON = "serdes: {key: string, value: json}"
_LARGEST = "if(value > total.largest, value, total.largest)"

_STEPS: Mapping[str, str] = {
    "reduce": (
        f'{_GROUPED}- reduce: {{add: "if(value > total, value, total)", materialized: largest}}\n'
        f"- toStream:\n{_OUT}"
    ),
    "aggregate to JSON": (
        f"{_GROUPED}- aggregate:\n    init: \"named_struct('count', 0, 'largest', '')\"\n"
        f"    add: \"named_struct('count', total.count + 1, 'largest', {_LARGEST})\"\n"
        "    materialized: {store: totals, serdes: {value: json}}\n"
        f"- toStream:\n- to: {{topic: %(sink)s, {_JSON}}}\n"
    ),
    "processor with a store": (
        f"- stream: {{topic: %(source)s, {_READ}}}\n"
        '- process:\n    class: "tests.bench.runtime.text_lengths:TextLengths"\n'
        "    stores: [{name: lengths, serdes: {key: string, value: long}}]\n"
        "    serdes: {key: string, value: long}\n"
        "- to: {topic: %(sink)s, serdes: {key: string, value: long}}\n"
    ),
    "tumbling": _counted("tumbling: {size: 10s, grace: 1m}"),
    "hopping": _counted("hopping: {size: 10s, advance: 2s, grace: 1m}"),
    "sliding": _counted("sliding: {difference: 3s, grace: 1m}"),
    "session": _counted("session: {gap: 3s, grace: 1m}", "session-windowed"),
    "suppress": _counted("tumbling: {size: 10s, grace: 5s}", then="- suppress: {until: windowCloses}\n"),
    "stream-stream join": (
        f"{_STREAMS}- join: {{{_BOTH}, {_JOINED}, window: {{difference: 1s, grace: 1m}}}}\n{_OUT}"
    ),
    "stream-table join": f"{_STREAM_AND_TABLE}- join: {{{_BOTH}, {_JOINED}}}\n{_OUT}",
    "stream-global table join": (
        f"{_STREAM_AND_GLOBAL_TABLE}- join: {{{_BOTH}, key: key, {_JOINED}}}\n{_OUT}"
    ),
    "table-table join": (
        f"{_TABLES.replace('materialized: t', 'materialized: right')}"
        f"- join: {{{_BOTH}, {_JOINED}}}\n- toStream:\n{_OUT}"
    ),
    "foreign-key join": (
        f"{_TABLES.replace('materialized: t', 'materialized: right')}"
        f'- join: {{{_BOTH}, foreignKey: "{_FOREIGN_KEY}", {_JOINED}}}\n- toStream:\n{_OUT}'
    ),
    "eight operators": (
        f"{_STREAM_AND_TABLE}"
        '- filter: {from: left%(n)s, where: "length(value) > 7"}\n'
        '- mapValues: {value: "upper(value)"}\n'
        f"- leftJoin: {{with: right%(n)s, value: \"concat(left, '+', coalesce(right, ''))\", "
        "serdes: {value: string}}\n"
        "- selectKey: {key: \"concat(key, '-', right(value, 1))\", serdes: {key: string}}\n"
        "- groupByKey:\n- windowedBy: {tumbling: {size: 10s, grace: 1m}}\n"
        '- count: {materialized: counts}\n- filter: {where: "value % 2 = 1"}\n'
        f"- toStream:\n- to: {{topic: %(sink)s, {_WINDOWS}}}\n"
    ),
}


def steps_of(operator: str, chain: Chain, number: int) -> str:
    """Return the steps of a chain as YAML."""
    named = {
        "source": chain.source,
        "other": chain.other,
        "table": chain.global_table,
        "sink": chain.sink,
        "n": number,
    }
    text = _STEPS[operator]
    for name, value in named.items():
        text = text.replace(f"%({name})s", str(value))
    return text
