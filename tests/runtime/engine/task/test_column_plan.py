"""Batches in columns lead to the same records, in the same order in each topic, as records one by one."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater_spark.engine import column_plan
from headwater_spark.engine.column_operators import rows
from headwater_spark.engine.column_operators.rows import SourceColumns
from headwater_spark.engine.error_handlers import PoisonRecordError
from headwater_spark.engine.partition_columns import held_back
from headwater_spark.engine.program_interface import EngineSettings
from headwater_spark.engine.record_order import PartitionGroup
from headwater_spark.engine.records import InputRecord, OutputRecord, TopicPartition
from headwater_spark.engine.task import Task
from headwater_spark.worker.local_state import MemoryState
from tests.runtime.engine.task.topologies import CLASSES, TOPOLOGIES
from tests.runtime.partition_columns import by_topic, columns_of
from tests.runtime.topology_runner import NO_CACHE, PythonProgram, programs

CACHED = EngineSettings(emit_interval_ms=0)
_TEXT = "serdes: {key: string, value: string}"
_STREAM = f"- stream: {{topic: in, as: left, {_TEXT}}}\n"
_TABLE = f"- table: {{topic: other, as: right, materialized: rows, {_TEXT}}}\n"
_JOIN = "value: \"left + '+' + (right or '')\", serdes: {value: string}"
_BOTH = "value: \"(left or '') + '+' + (right or '')\", serdes: {value: string}"
_OUT = "- toStream: null\n- to: {topic: out}\n"
_TABLES = f"- table: {{topic: in, as: left, {_TEXT}}}\n{_TABLE}"
IN_COLUMNS = {
    "reduce": TOPOLOGIES["reduce"],
    "aggregate": TOPOLOGIES["aggregate"],
    "sum": (
        f"{_STREAM}- groupByKey: {{from: left}}\n"
        f"- aggregate: {{init: '0', add: 'total + len(value)', "
        "materialized: {store: totals, serdes: {key: string, value: long}}}\n"
        "- toStream: null\n- to: {topic: out, serdes: {key: string, value: long}}\n"
    ),
    "reduce of two topics": (
        f"- stream: {{topics: [in, other], {_TEXT}}}\n- groupByKey: null\n"
        f"- reduce: {{add: '(total + value)[-20:]'}}\n{_OUT}"
    ),
    "filter, then reduce, then filter the table": (
        f"{_STREAM}- filter: {{where: \"value != 'b'\"}}\n- mapValues: {{value: 'value and value * 2'}}\n"
        f"- groupByKey: null\n- reduce: {{add: 'max(total, value)'}}\n"
        f"- filter: {{where: \"value > 'aa'\", materialized: kept}}\n{_OUT}"
    ),
    "table": f"{_TABLE}{_OUT}",
    "table filter": f"{_TABLE}- filter: {{where: \"value > 'a'\", materialized: kept}}\n{_OUT}",
    "table filter of old values": (
        f"{_TABLE}- filter: {{where: \"value > 'a'\"}}\n- mapValues: {{value: value + '!'}}\n"
        f"- filterNot: {{where: \"value == 'b!'\", materialized: kept}}\n{_OUT}"
    ),
    "table grouped": TOPOLOGIES["table grouped"].split("- aggregate")[0] + f"- count: null\n{_OUT}",
    "table of two topics": (
        f"- stream: {{topics: [in, other], {_TEXT}}}\n- toTable: {{materialized: rows}}\n{_OUT}"
    ),
    "join of tables": f"{_TABLES}- join: {{from: left, with: right, {_BOTH}}}\n{_OUT}",
    "outer join of tables with a store": (
        f"{_TABLES}- outerJoin: {{from: left, with: right, {_BOTH}, materialized: joined}}\n{_OUT}"
    ),
    "join of a stream and a table": (
        f"{_STREAM}{_TABLE}- join: {{from: left, with: right, {_JOIN}}}\n- to: {{topic: out}}\n"
    ),
    "left join of a stream and a table, with other steps": (
        f"{_STREAM}{_TABLE}- filter: {{from: left, where: \"value != 'b'\"}}\n"
        "- mapValues: {value: \"(value or '') + '!'\"}\n"
        f"- leftJoin: {{with: right, {_JOIN}}}\n- selectKey: {{key: 'value[:1]'}}\n- to: {{topic: out}}\n"
    ),
    "filter and map": (
        f"{_STREAM}- filter: {{where: \"value != 'b'\"}}\n- map: {{key: value, value: 'key'}}\n"
        "- to: {topic: out}\n"
    ),
}
_THREE_TOPICS = (
    f"{_STREAM}{_TABLE}- table: {{topic: third, as: third, materialized: thirds, {_TEXT}}}\n"
    f"- join: {{from: left, with: right, {_JOIN}}}\n- to: {{topic: out}}\n"
)
_NOT_IN_COLUMNS = {
    "a join of tables that reads rows when another table is flushed": (
        f"{_THREE_TOPICS}- join: {{from: right, with: third, {_BOTH}}}\n- toStream: null\n"
        "- to: {topic: pairs}\n"
    ),
    "a join that reads rows when another table is flushed": (
        f"{_THREE_TOPICS}- toStream: {{from: right, as: rights}}\n"
        f"- join: {{from: rights, with: third, {_JOIN}}}\n- to: {{topic: pairs}}\n"
    ),
    "processor": TOPOLOGIES["processor"],
    "versioned table": TOPOLOGIES["versioned table"],
    "windows": TOPOLOGIES["tumbling"],
    "merged streams": (
        f"{_STREAM}- stream: {{topic: other, as: right, {_TEXT}}}\n- merge: {{from: left, with: right}}\n"
        "- to: {topic: out}\n"
    ),
    "an expression that reads its record": (
        f"{_STREAM}- groupByKey: null\n- reduce: {{add: 'max(total, str(current.record[2]))'}}\n{_OUT}"
    ),
    "two sinks of a topic": (
        f"{_STREAM}- to: {{topic: out}}\n- mapValues: {{from: left, value: value}}\n- to: {{topic: out}}\n"
    ),
}
BATCHES = st.lists(
    st.lists(
        st.tuples(
            st.sampled_from(["in", "other"]),
            st.integers(0, 1),
            st.integers(-1, 30) | st.integers(0, 30) | st.integers(0, 3),
            st.none() | st.sampled_from([b"", b"a", b"b", b"\xff", b"c", b"d"]),
            st.none() | st.sampled_from([b"", b"a", b"b", b"c", b"\xfe", b"longer than others"]),
            st.sampled_from([(), (), (("h", b"1"),)]),
        ),
        min_size=1,
        max_size=16,
    ),
    max_size=4,
)
Drawn = Sequence[Sequence[tuple[str, int, int, bytes | None, bytes | None, tuple[tuple[str, bytes], ...]]]]


def task(topology: str, settings: EngineSettings = CACHED) -> Task:
    return Task(programs(topology, settings, CLASSES)[0], 0, MemoryState())


def topics_of(topology: str) -> list[str]:
    return [topic for topic in ("in", "other") if re.search(rf"[ \[]{topic}[,\]}}]", topology)]


def batches_of(topology: str, drawn: Drawn) -> list[list[InputRecord]]:
    """Return batches of records, by offset in each partition."""
    topics = topics_of(topology)
    offsets: dict[TopicPartition, int] = defaultdict(int)
    batches = []
    for batch in drawn:
        records: list[InputRecord] = []
        for drawn_topic, partition, *fields in batch:
            topic = drawn_topic if drawn_topic in topics else topics[0]
            records.append((topic, partition, offsets[topic, partition], *fields))  # type: ignore[arg-type]
            offsets[topic, partition] += 1
        batches.append(records)
    return batches


@pytest.fixture(scope="module")
def all_batches_attempted() -> Iterator[None]:
    """Attempt each batch, also with few records per key and after failures."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(column_plan, "_RECORDS_PER_KEY", 0)
        patch.setattr(column_plan, "_RECORDS_OF_JOIN", 0)
        patch.setattr(column_plan, "_MOST_SKIPPED", 0)
        patch.setattr(rows, "_MANY_RECORDS", 2)
        yield


@pytest.mark.usefixtures("all_batches_attempted")
@pytest.mark.parametrize("topology", IN_COLUMNS.values(), ids=IN_COLUMNS)
@given(drawn=BATCHES, cache_bytes=st.sampled_from([1, 200, 400, 1_000, 10_000_000, 10_000_000]))
def test_columns_lead_to_the_same_records(topology: str, drawn: Drawn, cache_bytes: int) -> None:
    one_by_one, in_columns = task(topology), task(topology)
    assert in_columns.is_columnar
    for each in (one_by_one, in_columns):
        each.resize_cache(cache_bytes)
    for records in batches_of(topology, drawn):
        expected = one_by_one.process(records, 5)
        found, held_back = in_columns.process_partitions(columns_of(records), (), 5)
        assert by_topic(found) == by_topic(expected)
        assert not held_back
        assert in_columns.context.dropped == one_by_one.context.dropped
        assert in_columns.state.metadata == one_by_one.state.metadata
        assert in_columns.state.changes() == one_by_one.state.changes()
        for each in (one_by_one, in_columns):
            each.state.commit(each.state.version)


@pytest.mark.parametrize("topology", IN_COLUMNS.values(), ids=IN_COLUMNS)
def test_a_batch_is_processed_in_columns_if_the_cache_has_room(topology: str) -> None:
    tasks = task(topology), task(topology, EngineSettings(emit_interval_ms=0, cache_max_bytes=1))
    topics = topics_of(topology)
    records: list[InputRecord] = [(topic, 0, at, at, b"k", b"v", ()) for topic in topics for at in range(3)]
    ran = []
    for each in tasks:
        plan = each._column_plan
        assert plan is not None
        each._begin_batch(0)
        ran.append(plan.run(columns_of(records)) is not None)
    has_cache = topology != IN_COLUMNS["filter and map"]
    assert ran == [True, not has_cache]


@pytest.mark.parametrize("name", ["table", "join of a stream and a table"])
def test_a_large_value_needs_room_for_one_row_only(name: str) -> None:
    keys = 100
    large: InputRecord = ("other", 0, keys, 0, b"1", b"v" * 1_000, ())
    records: list[InputRecord] = [("other", 0, at, at, b"%d" % at, b"v", ()) for at in range(keys)]
    ran = []
    for bytes_per_row in (60, 100):
        settings = EngineSettings(emit_interval_ms=0, cache_max_bytes=keys * bytes_per_row + 3_000)
        of_table = task(IN_COLUMNS[name], settings)
        plan = of_table._column_plan
        assert plan is not None
        of_table._begin_batch(0)
        ran.append(plan.run(columns_of([*records, large])) is not None)
    assert ran == [False, True]


@pytest.mark.parametrize("topology", _NOT_IN_COLUMNS.values(), ids=_NOT_IN_COLUMNS)
def test_single_records_matter(topology: str) -> None:
    assert not task(topology).is_columnar


def test_updates_that_are_forwarded_at_once_are_not_processed_in_columns() -> None:
    for name in ("reduce", "table", "join of tables", "join of a stream and a table"):
        assert not task(IN_COLUMNS[name], NO_CACHE).is_columnar


def test_a_batch_is_not_kept_after_it_is_processed() -> None:
    records = columns_of([("other", 0, at, at, b"k", b"v%d" % at, ()) for at in range(3)])
    of_table = task(IN_COLUMNS["table"])
    plan = of_table._column_plan
    assert plan is not None
    for _ in range(2):
        of_table._begin_batch(0)
        assert plan.run(records) is not None
        assert [table.columns for table in plan._tables] == [None]
        of_table._end_batch(0)
        of_table.state.commit(of_table.state.version)


def test_batches_are_skipped_after_failures() -> None:
    topology = IN_COLUMNS["sum"].replace("init: '0', add: 'total + len(value)'", "init: '0', add: 'None'")
    without_totals = task(topology)
    plan = without_totals._column_plan
    assert plan is not None
    process, attempted, batch = plan._process, list[int](), 0

    def note_attempt(columns: Mapping[str, SourceColumns]) -> None:
        attempted.append(batch)
        process(columns)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(column_plan, "_MOST_SKIPPED", 64)
        patch.setattr(plan, "_process", note_attempt)
        for batch in range(10):
            records: list[InputRecord] = [("in", 0, 3 * batch + at, at, b"k", b"v", ()) for at in range(3)]
            without_totals.process_partitions(columns_of(records), (), 0)
            without_totals.state.commit(without_totals.state.version)
    assert attempted == [0, 2, 5], "after a failure, no batch of 1, 2, 4, … batches is attempted"


@pytest.mark.parametrize("window", ["", "- windowedBy: {tumbling: {size: 1h}}\n"])
@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize(
    ("total_format", "init", "add", "total"),
    [
        ("float", "0.0", "total + value", "1.6777216E7"),
        ("double", "0", "total + value", "1.6777219E7"),
        ("json", "[]", "total if [value] in total else [*total, (value,)]", "[[16777216],[1]]"),
        ("json", "{}", "{**total, value: len(total)}", '{"16777216":0,"1":2}'),
        ("json", "{}", "{**total, str(value): [len(total)]}", '{"16777216":[0],"1":[2]}'),
        ("json", "[]", "[*total, chr(10) * (len(total) % 3)]", r'["","\n","\n\n",""]'),
        (
            "json",
            "[]",
            r"[*total, '\\ud83d\\ude00'[len(total) % 2]]",
            r'["\uD83D","\uDE00","\uD83D","\uDE00"]',
        ),
        ("json", "2.5", "total * 1e308 if total == 2.5 else total + 'x'", '"Infinityxxx"'),
        ("string", "''", r"total + '\\ud83d\\ude00'[len(total) % 2]", '"????"'),
        ("json", "''", r"total + '\\ud83d\\ude00'[len(total) % 2]", r'"\uD83D\uDE00\uDE00\uD83D"'),
        (
            "uuid",
            "'AAAAAAAA-AAAA-AAAA-AAAA-AAAAAAAAAAAA'",
            "total[:-1] + str(value)[-1]",
            '"aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaa1"',
        ),
    ],
)
def test_each_record_reads_the_total_as_the_store_returns_it(
    *, window: str, columns: bool, total_format: str, init: str, add: str, total: str
) -> None:
    """In Kafka Streams the cache has bytes: a `float` of 16777216 plus 1 three times is 16777216."""
    topology = (
        "- stream: {topic: in, serdes: {key: string, value: long}}\n- groupByKey: null\n"
        f'{window}- aggregate: {{init: "{init}", add: "{add}", '
        f"materialized: {{store: totals, serdes: {{key: string, value: {total_format}}}}}}}\n"
        "- toStream: null\n- map: {key: '1', value: value}\n"
        "- to: {topic: out, serdes: {key: long, value: json}}\n"
    )
    values = [value.to_bytes(8, "big") for value in (16_777_216, 1, 1, 1)]
    records: list[InputRecord] = [("in", 0, at, at, b"k", value, ()) for at, value in enumerate(values)]
    outputs = process(task(topology), records, columns=columns)
    assert [record[3] for record in outputs if record[0] == "out"] == [total.encode()]


@pytest.mark.parametrize("window", ["", "- windowedBy: {tumbling: {size: 1h}}\n"])
@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize(
    ("count_format", "count"), [("double", "2.0"), ("float", "2.0"), ("json", "2"), ("integer", "2")]
)
def test_a_count_is_forwarded_as_the_store_returns_it(
    *, window: str, columns: bool, count_format: str, count: str
) -> None:
    topology = (
        f"- stream: {{topic: in, serdes: {{key: string, value: long}}}}\n- groupByKey: null\n{window}"
        f"- count: {{materialized: {{store: counts, serdes: {{key: string, value: {count_format}}}}}}}\n"
        "- toStream: null\n- map: {key: '1', value: value}\n"
        "- to: {topic: out, serdes: {key: long, value: json}}\n"
    )
    records: list[InputRecord] = [("in", 0, at, at, b"k", at.to_bytes(8, "big"), ()) for at in range(2)]
    outputs = process(task(topology), records, columns=columns)
    assert [record[3] for record in outputs if record[0] == "out"] == [count.encode()]


def process(on: Task, records: list[InputRecord], *, columns: bool) -> Iterable[OutputRecord]:
    if columns:
        return on.process_partitions(columns_of(records), (), 0)[0]
    return on.process(records, 0)


@pytest.mark.parametrize(
    "topology",
    [
        IN_COLUMNS["reduce"].replace("max(total, value)", "total + value[2]"),
        IN_COLUMNS["join of a stream and a table"].replace("(right or '')", "right[2]"),
        IN_COLUMNS["filter and map"].replace("value: 'key'", "value: 'value[2]'"),
    ],
)
def test_a_failure_names_the_first_record_that_fails(topology: str) -> None:
    records: list[InputRecord] = [
        *(("in", 0, at, 10 + at, b"k", b"abc" if at < 2 else b"ab", ()) for at in range(4)),
        *(("other", 0, at, 5 + 7 * at, b"k", b"abc" if at < 1 else b"ab", ()) for at in range(3)),
    ]
    if "other" not in topology:
        records = records[:4]
    messages = []
    for columns in (False, True):
        failing = task(topology)
        with pytest.raises(PoisonRecordError) as caught:
            process(failing, records, columns=columns)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


def test_timestamps_whose_order_would_overflow_are_processed_one_by_one() -> None:
    topology = IN_COLUMNS["join of a stream and a table"]
    times = 0, 2**62, 2**63 - 1
    records: list[InputRecord] = [
        (topic, 0, at, time, b"k", b"v%d" % at, ())
        for topic in topics_of(topology)
        for at, time in enumerate(times)
    ]
    one_by_one, in_columns = (
        by_topic(process(task(topology), records, columns=columns)) for columns in (False, True)
    )
    assert in_columns == one_by_one


_TIMES = st.dictionaries(
    st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 1)), st.lists(st.integers(0, 6), max_size=6)
)


@given(times=_TIMES, awaited=st.sets(st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 1))))
def test_columns_are_held_back_as_records(
    times: dict[TopicPartition, list[int]], awaited: set[TopicPartition]
) -> None:
    records: list[InputRecord] = [
        (*partition, at, time, None, None, ())
        for partition, each in times.items()
        for at, time in enumerate(each)
    ]
    group = PartitionGroup(records, awaited, lambda each: each)
    list(group)
    assert held_back(columns_of(records), awaited) == group.held_back


@pytest.mark.parametrize("name", ["join of tables", "join of a stream and a table", "versioned table"])
@given(drawn=BATCHES, awaited=st.sets(st.tuples(st.sampled_from(["in", "other"]), st.integers(0, 1))))
def test_the_same_is_processed_and_held_back(name: str, drawn: Drawn, awaited: set[TopicPartition]) -> None:
    topology = IN_COLUMNS.get(name) or _NOT_IN_COLUMNS[name]
    one_by_one, in_columns = task(topology), task(topology)
    for records in batches_of(topology, drawn):
        expected, group = one_by_one.process_group(records, awaited, 5)
        found, rest = in_columns.process_partitions(columns_of(records), awaited, 5)
        assert by_topic(found) == by_topic(expected)
        assert rest == group.held_back
        for each in (one_by_one, in_columns):
            each.state.commit(each.state.version)


@given(drawn=BATCHES, awaited=st.sets(st.tuples(st.sampled_from(["in", "other"]), st.integers(0, 1))))
def test_records_that_are_skipped_hold_nothing_back(drawn: Drawn, awaited: set[TopicPartition]) -> None:
    topology = IN_COLUMNS["join of a stream and a table"].replace("value: string}", "value: json}", 1)
    skipping = attrs.evolve(CACHED, on_bad_input="continue")
    one_by_one, in_columns = task(topology, skipping), task(topology, skipping)
    assert in_columns.is_columnar
    for records in batches_of(topology, drawn):
        records = [  # noqa: PLW2901 - half of the values are JSON
            (*record[:5], b'"%s"' % record[5] if record[5] in {b"a", b"b"} else record[5], record[6])
            for record in records
        ]
        expected, group = one_by_one.process_group(records, awaited, 5)
        found, rest = in_columns.process_partitions(columns_of(records), awaited, 5)
        assert by_topic(found) == by_topic(expected)
        assert rest == group.held_back
        assert in_columns.take_dropped() == one_by_one.take_dropped()
        for each in (one_by_one, in_columns):
            each.state.commit(each.state.version)


def test_the_order_does_not_depend_on_a_record_that_is_skipped() -> None:
    topology = IN_COLUMNS["join of a stream and a table"].replace("value: string}", "value: json}", 1)
    records: list[InputRecord] = [
        ("in", 0, 0, 0, b"k", b'"a"', ()),
        ("in", 0, 1, 5, b"k", b"not JSON", ()),
        ("in", 0, 2, 1, b"k", b'"b"', ()),
        ("other", 0, 0, 0, b"k", b"1", ()),
        ("other", 0, 1, 2, b"k", b"2", ()),
    ]
    skipping = task(topology, attrs.evolve(CACHED, on_bad_input="continue"))
    found, held_back = skipping.process_partitions(columns_of(records), {("other", 0)}, 5)
    assert [record[3] for record in found if record[0] == "out"] == [b"b+1"]
    assert not held_back


FOREIGN_KEY = (
    f"- table: {{topic: in, as: left, materialized: lefts, {_TEXT}}}\n{_TABLE}"
    f"- leftJoin: {{from: left, with: right, foreignKey: 'value[:1]', {_JOIN}}}\n{_OUT}"
)


def next_inputs(
    program: PythonProgram,
    records: Sequence[InputRecord],
    forwarded: Iterable[OutputRecord],
    offsets: dict[str, int],
) -> list[InputRecord]:
    """Return the records of a batch: some of a user's topics, and what another sub-topology has written."""
    found = [record for record in records if record[0] in program.sources and record[1] == 0]
    for topic, _, key, value, time, headers in forwarded:
        if topic in program.sources:
            found.append((topic, 0, offsets[topic], time, key, value, headers))
            offsets[topic] += 1
    return found


@pytest.mark.parametrize("rows_per_update", [0, 1])
@given(drawn=BATCHES, cache_bytes=st.sampled_from([1, 200, 400, 1_000, 10_000_000, 10_000_000]))
def test_a_table_is_updated_between_the_messages_of_a_foreign_key_join(
    rows_per_update: int, drawn: Drawn, cache_bytes: int
) -> None:
    """All messages are processed one by one; the updates of the table come between them in columns."""
    sides = programs(FOREIGN_KEY, CACHED, CLASSES)
    both = [[Task(each, 0, MemoryState()) for each in sides] for _ in range(2)]
    for each in (*both[0], *both[1]):
        each.resize_cache(cache_bytes)
    forwarded: list[OutputRecord] = []
    offsets: dict[str, int] = defaultdict(int)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(column_plan, "_UPDATES_PER_RECORD", rows_per_update)
        for batch in (*batches_of(FOREIGN_KEY, drawn), [], []):
            written: list[OutputRecord] = []
            for program, one_by_one, in_columns in zip(sides, *both, strict=True):
                records = next_inputs(program, batch, forwarded, offsets)
                expected = one_by_one.process(records, 5)
                found, _ = in_columns.process_partitions(columns_of(records), (), 5)
                assert by_topic(found) == by_topic(expected)
                assert in_columns.context.dropped == one_by_one.context.dropped
                assert in_columns.state.metadata == one_by_one.state.metadata
                assert in_columns.state.changes() == one_by_one.state.changes()
                for task_ in (one_by_one, in_columns):
                    task_.state.commit(task_.state.version)
                written += expected
            forwarded = written


def test_messages_of_a_foreign_key_join_are_processed_between_updates() -> None:
    program = programs(FOREIGN_KEY, CACHED)[0]
    left = Task(program, 0, MemoryState())
    topic = next(topic for topic in program.sources if topic not in {"in", "other"})
    records: list[InputRecord] = [
        *(("in", 0, at, at, b"k", b"v%d" % at, ()) for at in range(20)),
        (topic, 0, 0, 10, b"k", b"\x80", ()),
    ]
    plan = left._column_plan
    assert plan is not None
    left._begin_batch(0)
    assert plan.run(columns_of(records)) is None
    single = plan.interleave_records(columns_of(records))
    assert single is not None
    assert [(record[0], left.stores["lefts"].get("k")[0]) for record in single] == [(topic, "v9")]
    assert left.stores["lefts"].get("k")[0] == "v19"
    assert plan.interleave_records(columns_of(records[13:])) is None, "too few updates per message"
