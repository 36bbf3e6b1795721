"""The formats of the records that a topology writes."""

import pytest

from headwater.model.formats import Format, RecordFormat
from headwater.model.nodes import SinkNode
from headwater.model.problems import errors
from tests.compiler.dsl.documents import built_calls


def _written(topology: str) -> RecordFormat:
    """Return the format of the only sink to a user topic."""
    nodes = built_calls(topology)
    assert not errors(nodes.problems), nodes.problems
    (sink,) = (node for node in nodes.nodes if isinstance(node, SinkNode) and node.topic == "out")
    assert sink.writes is not None
    return sink.writes.format


SOURCE = "- stream: {topic: in, serdes: {key: string, value: json}, as: s}\n"
OUT = "- to: {topic: out}\n"
SESSIONS = "- groupByKey:\n- windowedBy: {session: {gap: 10}}\n- reduce:\n"
STRING, LONG, JSON = Format("string"), Format("long"), Format("json")


@pytest.mark.parametrize(
    ("calls", "key", "value"),
    [
        ("", STRING, JSON),
        ("- mapValues: {}\n", STRING, JSON),
        ("- mapValues: {serdes: {value: long}}\n- filter: {}\n", STRING, LONG),
        ("- map: {serdes: {key: long}}\n", LONG, JSON),
        ("- groupByKey:\n- count:\n- toStream:\n", STRING, LONG),
        ("- groupBy: {serdes: {key: long}}\n- reduce:\n- toStream:\n", LONG, JSON),
        (
            "- groupByKey:\n- aggregate: {materialized: {store: a, serdes: {value: long}}}\n- toStream:\n",
            STRING,
            LONG,
        ),
        (
            "- groupByKey:\n- windowedBy: {tumbling: {size: 10}}\n- count:\n- toStream:\n",
            Format("string", "time", 10),
            LONG,
        ),
        (
            "- groupByKey:\n- windowedBy: {session: {gap: 10}}\n- count:\n- toStream:\n- selectKey:\n",
            STRING,
            LONG,
        ),
        (f"{SESSIONS}- suppress: {{until: windowCloses}}\n- toStream:\n", Format("string", "session"), JSON),
        ("- merge: {with: s}\n", STRING, JSON),
        ("- join: {with: s, window: {difference: 1}, serdes: {value: string}}\n", STRING, STRING),
        ("- mapValues: {serdes: {key: default, value: default}}\n", Format("default"), Format("default")),
    ],
)
def test_formats_are_kept_without_serdes(calls: str, key: Format, value: Format) -> None:
    assert _written(SOURCE + calls + OUT) == RecordFormat(key, value)


@pytest.mark.parametrize(
    ("named", "key"),
    [
        ("time-windowed:60000", Format("string", "time", 60_000)),
        ("time-windowed", Format("string", "time")),
        ("session-windowed:long", Format("long", "session")),
        ("time-windowed:5:avro:a/b.avsc", Format("avro:a/b.avsc", "time", 5)),
    ],
)
def test_windowed_formats_are_given_by_name(named: str, key: Format) -> None:
    assert _written(f"{SOURCE}- to: {{topic: out, serdes: {{key: '{named}'}}}}\n").key == key
