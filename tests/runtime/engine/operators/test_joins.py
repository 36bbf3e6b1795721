"""Joins in cases that are rare in recorded and random data: null keys, throttling, versions."""

import struct
from typing import Any

import attrs
import pytest

from headwater.spec import load_text
from headwater_spark.engine.program_interface import EngineSettings
from headwater_spark.engine.records import OutputRecord
from tests.runtime.replay import UNCACHED, BatchReplay, runnable_programs

JOINED = "coalesce(left, '-') || '+' || coalesce(right, '-')"
STREAMS = "[{stream: {topic: left, as: l}}, {stream: {topic: right, as: r}}, "


def replay(topology: str, settings: EngineSettings = UNCACHED, version: str = "4.3") -> BatchReplay:
    application = f'application: {{id: app, kafkaStreams: "{version}"}}'
    loaded = load_text(f"{application}\ntopology: {topology}", "join.yaml")
    assert not loaded.problems, loaded.problems
    return BatchReplay(runnable_programs(loaded.documents[0], (), settings))


Text = str | None


def pipe(run: BatchReplay, topic: str, key: Text, value: Text, time: int, *, wall: int = 0) -> list[Any]:
    """Return the records of `out`: (key, value, timestamp)."""
    written_key = None if key is None else key.encode()
    written_value = None if value is None else value.encode()
    return shown(run.pipe(topic, written_key, written_value, time, wall_clock_ms=wall))


def shown(written: list[OutputRecord]) -> list[Any]:
    return [
        (key and key.decode(), value and value.decode(), time)
        for topic, _, key, value, time, _ in written
        if topic == "out"
    ]


def streams(call: str, window: str, settings: EngineSettings = UNCACHED, version: str = "4.3") -> BatchReplay:
    join = f'{{{call}: {{from: l, with: r, window: {window}, value: "{JOINED}"}}}}'
    return replay(f"{STREAMS}{join}, {{to: {{topic: out}}}}]", settings, version)


@pytest.mark.parametrize(
    ("call", "left", "right"),
    [
        ("join", [], []),
        ("leftJoin", [(None, "l+-", 5)], []),
        ("outerJoin", [(None, "l+-", 5)], [(None, "-+r", 6)]),
    ],
)
def test_null_keys_have_no_partners(call: str, left: list[Any], right: list[Any]) -> None:
    run = streams(call, "{difference: 10}")
    assert pipe(run, "left", None, "l", 5) == left
    assert pipe(run, "right", None, "r", 6) == right
    assert pipe(run, "left", "k", None, 7) == []


@pytest.mark.parametrize(
    ("call", "expected"),
    [("join", ["L1+R1"]), ("leftJoin", ["L0+-", "L1+R1"]), ("outerJoin", ["-+R0", "L0+-", "L1+R1"])],
)
def test_join_stores_expire_within_a_batch_as_they_have_no_cache(call: str, expected: list[str]) -> None:
    run = streams(call, "{difference: 10s, grace: 3s}", EngineSettings())
    times = [("left", b"L1", 1_061_000), ("right", b"R1", 1_061_001), ("left", b"L0", 0), ("right", b"R0", 1)]
    records: list[OutputRecord] = [(topic, None, b"k", value, time, ()) for topic, value, time in times]
    values = [each[1] for record in records[:2] for each in shown(run.pipe_together([record]))]
    values += [each[1] for each in shown(run.pipe_together(records[2:]))]
    assert sorted(values) == expected


def test_join_windows_are_relative_to_the_left_side() -> None:
    run = streams("join", "{before: 10, after: 3, grace: 20}")
    pipe(run, "right", "k", "early", 90)
    pipe(run, "right", "k", "late", 103)
    pipe(run, "right", "k", "too late", 104)
    assert pipe(run, "left", "k", "l", 100) == [("k", "l+early", 100), ("k", "l+late", 103)]
    assert pipe(run, "right", "k", "r", 97) == [("k", "l+r", 100)]


def test_records_without_a_partner_wait_for_the_end_of_their_window() -> None:
    run = streams("outerJoin", "{difference: 10, grace: 5}")
    assert pipe(run, "left", "a", "l", 100) == []
    assert pipe(run, "right", "b", "r", 101) == []
    assert pipe(run, "left", "c", "x", 115) == []
    assert pipe(run, "right", "c", "y", 116) == [("a", "l+-", 100), ("c", "x+y", 116)]
    # `x` was waiting at the last search: the next search is when the window of `x` closes
    assert pipe(run, "right", "d", "z", 117) == []
    assert pipe(run, "right", "e", "z", 131) == [("b", "-+r", 101)]


def test_a_partner_within_the_grace_period_is_joined() -> None:
    run = streams("leftJoin", "{difference: 10, grace: 5}")
    pipe(run, "left", "a", "l", 100)
    pipe(run, "left", "b", "x", 114)
    assert pipe(run, "right", "a", "r", 105) == [("a", "l+r", 105)]
    assert pipe(run, "left", "c", "x", 200) == [("b", "x+-", 114)]


EAGER = [
    (("left", "k", "l", 100), [("k", "l+-", 100)], None),
    (("right", "k", "r", 105), [("k", "l+r", 105)], None),
    (("right", "k", "r2", 95), [("k", "l+r2", 100)], None),
    (("right", "x", "alone", 101), [], [("x", "-+alone", 101)]),
    (("left", "x", "first", 101), [("x", "first+alone", 101)], None),
    (("left", "other", "z", 200), [("other", "z+-", 200)], None),
    # out of order: the left records of `k` are older than the retention, the right ones are not
    (("right", "k", "late", 101), [], [("k", "-+late", 101)]),
    (("left", "k", "late", 96), [("k", "late+r2", 96), ("k", "late+late", 101), ("k", "late+r", 105)], None),
    (("left", "x", "late", 191), [("x", "late+-", 191)], None),
    (("left", "m", "v", 176), [("m", "v+-", 176)], None),
    (("right", "m", "v", 178), [("m", "v+v", 178)], None),
    # too late to be put, but joined
    (("left", "m", "v2", 174), [("m", "v2+v", 178)], None),
    (("right", "m", "v3", 180), [("m", "v+v3", 180)], None),
    (("left", None, "n", 201), [(None, "n+-", 201)], None),
    (("right", None, "n", 202), [], [(None, "-+n", 202)]),
    (("left", "k", None, 203), [], None),
]
"""A record, and what Kafka Streams emits in a left join, and in an outer join if it differs.

3.7.2, 3.9.2, 4.0.2, 4.1.1 and 4.3.1 emit the same.
"""


@pytest.mark.parametrize("version", ["3.7", "3.9", "4.3"])
@pytest.mark.parametrize("call", ["leftJoin", "outerJoin"])
def test_eager_joins_emit_records_without_a_partner_at_once(call: str, version: str) -> None:
    run = streams(call, "{difference: 10, grace: 5, eager: true}", version=version)
    for record, left, outer in EAGER:
        expected = left if call == "leftJoin" or outer is None else outer
        assert pipe(run, *record) == expected, record


def test_an_eager_inner_join_emits_only_matches() -> None:
    run = streams("join", "{difference: 10, grace: 5, eager: true}")
    assert pipe(run, "left", "k", "l", 100) == []
    assert pipe(run, "right", "k", "r", 105) == [("k", "l+r", 105)]
    assert pipe(run, "left", "other", "z", 200) == []


def test_eager_joins_keep_records_for_a_day_by_default() -> None:
    run = streams("leftJoin", "{difference: 10, eager: true}")
    day = 24 * 60 * 60 * 1000
    assert pipe(run, "right", "k", "r", 5) == []
    assert pipe(run, "right", "k", "kept", 6) == []
    assert pipe(run, "right", "other", "z", 5 + day) == []
    assert pipe(run, "left", "k", "l", 7) == [("k", "l+kept", 7)]


def test_emission_is_throttled_by_the_wall_clock() -> None:
    throttled = attrs.evolve(UNCACHED, outer_join_interval_ms=1000)
    run = streams("leftJoin", "{difference: 1}", throttled)
    assert pipe(run, "left", "a", "1", 0, wall=0) == []
    assert pipe(run, "left", "b", "2", 10, wall=500) == []
    assert pipe(run, "left", "c", "3", 20, wall=999) == []
    assert pipe(run, "left", "d", "4", 30, wall=1000) == [("a", "1+-", 0), ("b", "2+-", 10), ("c", "3+-", 20)]
    assert pipe(run, "left", "e", "5", 40, wall=1999) == []
    assert pipe(run, "left", "f", "6", 50, wall=2000) == [("d", "4+-", 30), ("e", "5+-", 40)]


@pytest.mark.parametrize(
    ("key_format", "keys"),
    [
        ("json", [b'{"id":1}', b'{"id":2}']),
        ("json", [b"1", b"1.0"]),
        ("json", [b"1", b"true"]),
        ("json", [b"[1]", b"[2]"]),
        ("double", [struct.pack(">d", 0.0), struct.pack(">d", -0.0)]),
    ],
)
def test_records_without_a_partner_are_emitted_once_whatever_their_keys(
    key_format: str, keys: list[bytes]
) -> None:
    serdes = f"serdes: {{key: {key_format}}}"
    run = replay(
        f"[{{stream: {{topic: left, as: l, {serdes}}}}}, {{stream: {{topic: right, as: r, {serdes}}}}}, "
        f'{{leftJoin: {{from: l, with: r, window: {{difference: 10}}, value: "{JOINED}"}}}}, '
        "{to: {topic: out}}]"
    )
    other = struct.pack(">d", 7.0) if key_format == "double" else b"7"
    written = [run.pipe("left", key, b"l", 100) for key in keys]
    written += [run.pipe("left", other, b"l", time) for time in (1000, 2000)]
    emitted = [(record[2], record[4]) for batch in written for record in batch if record[0] == "out"]
    assert emitted == [*((key, 100) for key in keys), (other, 1000)]


def test_emitted_windows_have_the_headers_of_the_record_that_closes_them() -> None:
    run = streams("leftJoin", "{difference: 1}")
    pipe(run, "left", "a", "1", 0)
    written = [record for record in run.pipe("left", b"b", b"2", 10) if record[0] == "out"]
    assert [(record[2], record[4]) for record in written] == [(b"a", 0)]


TABLE = (
    "[{stream: {topic: left, as: l}}, {table: {topic: right, materialized: "
    "{supplier: {name: v, kind: versionedKeyValue, retention: 100}}, as: r}}, "
)


def test_a_versioned_table_is_read_as_of_the_records_timestamp() -> None:
    run = replay(f'{TABLE}{{join: {{from: l, with: r, value: "{JOINED}"}}}}, {{to: {{topic: out}}}}]')
    pipe(run, "right", "k", "one", 100)
    pipe(run, "right", "k", "two", 110)
    assert pipe(run, "left", "k", "l", 105) == [("k", "l+one", 105)]
    assert pipe(run, "left", "k", "l", 110) == [("k", "l+two", 110)]
    assert pipe(run, "left", "k", "l", 99) == []


def test_a_versioned_table_is_read_as_of_the_timestamp_through_a_transformer() -> None:
    transformed = (
        '{transformValues: {from: r, class: "tests.runtime.engine.fuzzing.processors:Append", as: x}}'
    )
    run = replay(
        f'{TABLE}{transformed}, {{join: {{from: l, with: x, value: "{JOINED}"}}}}, {{to: {{topic: out}}}}]'
    )
    pipe(run, "right", "k", "one", 100)
    pipe(run, "right", "k", "two", 110)
    assert pipe(run, "left", "k", "l", 105) == [("k", "l+onex", 105)]


def test_with_a_grace_period_records_wait_for_late_table_versions() -> None:
    join = f'{{leftJoin: {{from: l, with: r, grace: 10, value: "{JOINED}"}}}}'
    run = replay(f"{TABLE}{join}, {{to: {{topic: out}}}}]")
    assert pipe(run, "left", "k", "l", 100) == []
    pipe(run, "right", "k", "late", 95)
    assert pipe(run, "left", "m", "x", 110) == [("k", "l+late", 100)]
    assert pipe(run, "left", "k", "too late", 99) == [("k", "too late+late", 99)]


@pytest.mark.parametrize(("call", "answers"), [("join", []), ("leftJoin", [("k", "none+-", 1)])])
def test_a_key_of_a_global_table_may_be_missing(call: str, answers: list[Any]) -> None:
    key = "nullif(value, 'none')"
    run = replay(
        "[{globalTable: {topic: right, materialized: g, as: r}}, {stream: {topic: left}}, "
        f'{{{call}: {{with: r, key: "{key}", value: "{JOINED}"}}}}, {{to: {{topic: out}}}}]'
    )
    pipe(run, "right", "x", "r", 0)
    assert pipe(run, "left", "k", "x", 1) == [("k", "x+r", 1)]
    assert pipe(run, "left", "k", "none", 1) == answers


def tables(call: str) -> BatchReplay:
    return replay(
        "[{table: {topic: left, as: l}}, {table: {topic: right, as: r}}, "
        f'{{{call}: {{from: l, with: r, value: "{JOINED}"}}}}, toStream, {{to: {{topic: out}}}}]'.replace(
            "toStream", "{toStream: }"
        )
    )


@pytest.mark.parametrize(
    ("call", "answers"),
    [
        ("join", [[], [("k", "l+r", 2)], [("k", None, 3)], [], []]),
        ("leftJoin", [[("k", "l+-", 1)], [("k", "l+r", 2)], [("k", None, 3)], [], []]),
        ("outerJoin", [[("k", "l+-", 1)], [("k", "l+r", 2)], [("k", "-+r", 3)], [("k", None, 4)], []]),
    ],
)
def test_joins_of_tables_while_rows_change(call: str, answers: list[Any]) -> None:
    run = tables(call)
    steps = [("left", "l", 1), ("right", "r", 2), ("left", None, 3), ("right", None, 4), ("left", None, 5)]
    assert [pipe(run, topic, "k", value, time) for topic, value, time in steps] == answers


def foreign(call: str) -> BatchReplay:
    return replay(
        "[{table: {topic: left, as: l}}, {table: {topic: right, as: r}}, "
        f"{{{call}: {{from: l, with: r, foreignKey: \"nullif(value, 'missing')\", "
        f'value: "{JOINED}"}}}}, {{toStream: }}, {{to: {{topic: out}}}}]'
    )


@pytest.mark.parametrize(
    ("call", "answers"),
    [
        ("join", [[], [("k", "x+X", 2)], [("k", None, 3)], [], [("k", "x+X", 5)], [("k", None, 6)]]),
        (
            "leftJoin",
            [
                [("k", "x+-", 1)],
                [("k", "x+X", 2)],
                [("k", "missing+-", 3)],
                [("k", "y+-", 4)],
                [("k", "x+X", 5)],
                [("k", "x+-", 6)],
            ],
        ),
    ],
)
def test_foreign_keys_that_change(call: str, answers: list[Any]) -> None:
    run = foreign(call)
    steps = [
        ("left", "k", "x", 1),
        ("right", "x", "X", 2),
        ("left", "k", "missing", 3),
        ("left", "k", "y", 4),
        ("left", "k", "x", 5),
        ("right", "x", None, 6),
    ]
    assert [pipe(run, *step) for step in steps] == answers


def test_a_response_goes_to_the_partition_that_subscribed() -> None:
    run = foreign("join")
    pipe(run, "left", "k", "x", 1)
    written = run.pipe("right", b"x", b"X", 2)
    partitions = [record[1] for record in written if record[0].endswith("-RESPONSE-0000000014-topic")]
    assert partitions == [0]
