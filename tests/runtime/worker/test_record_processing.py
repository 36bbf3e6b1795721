"""A batch is processed in the first way that the task allows; all ways have the same results."""

import attrs
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headwater_spark.engine.columns import Columns, OutputColumns, TopicColumns
from headwater_spark.engine.program_interface import EngineSettings
from headwater_spark.engine.records import Headers, InputRecord, OutputRecord, TopicPartition
from headwater_spark.engine.task import Task
from headwater_spark.worker import record_processing
from headwater_spark.worker.interleaving import interleave_records, with_task_header
from headwater_spark.worker.local_state import MemoryState
from headwater_spark.worker.record_processing import merged_columns, process_input
from headwater_spark.worker.task_input import ColumnInput, PartitionedInput, RecordInput, TaskInput
from tests.runtime.partition_columns import by_topic
from tests.runtime.topology_runner import NO_CACHE, programs
from tests.runtime.worker.test_task_input import columns

_CACHED = EngineSettings()
_READ = "- stream: {topic: in, serdes: {key: string, value: string}}\n- groupByKey: null\n"
_COUNT = (
    f"{_READ}- count: null\n- toStream: null\n- to: {{topic: out, serdes: {{key: string, value: long}}}}\n"
)
_WINDOWS = (
    f"{_READ}- windowedBy: {{tumbling: {{size: 10s, grace: 1m}}}}\n- count: null\n- toStream: null\n"
    "- to: {topic: out, serdes: {key: time-windowed, value: long}}\n"
)
_REDUCE = f"{_READ}- reduce: {{add: total + value}}\n- toStream: null\n- to: {{topic: out}}\n"
_SHARED = frozenset({"in"})
_WAYS = ("process_key_counts", "process_windows", "process_columns", "process_partitions", "process")


def _records(number: int) -> list[InputRecord]:
    return [("in", 0, at, at, b"k", b"v", ()) for at in range(number)]


def _shared(number: int) -> list[InputRecord]:
    return [(*record[:6], (("headwater.task", b"1"),)) for record in _records(number)]


def _way(
    monkeypatch: pytest.MonkeyPatch,
    topology: str,
    input_: TaskInput,
    *,
    settings: EngineSettings = _CACHED,
    shared: bool = False,
    in_columns: bool = True,
) -> str:
    """Process a batch; return the first method of the task that is called."""
    task = Task(programs(topology, settings)[0], 0, MemoryState())
    called: list[str] = []
    for name in _WAYS:
        method = getattr(task, name)

        def note(*arguments: object, name: str = name, method: object = method) -> object:
            called.append(name)
            assert callable(method)
            return method(*arguments)

        monkeypatch.setattr(task, name, note)
    topics = _SHARED if shared else frozenset[str]()
    assert list(process_input(task, input_, topics, 0, in_columns=in_columns))
    return called[0]


def test_counts_are_processed_as_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _way(monkeypatch, _COUNT, columns(_records(9))) == "process_key_counts"
    assert _way(monkeypatch, _COUNT, columns(_records(9)), shared=True) == "process"
    full = attrs.evolve(_CACHED, cache_max_bytes=1)
    assert _way(monkeypatch, _COUNT, columns(_records(9)), settings=full) == "process_partitions"
    assert _way(monkeypatch, _COUNT, columns(_records(9)), settings=NO_CACHE) == "process_columns"
    assert _way(monkeypatch, _COUNT, columns(_records(9)), settings=NO_CACHE, shared=True) == "process"


def test_many_records_are_counted_in_windows_together(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _way(monkeypatch, _WINDOWS, columns(_records(256), 64)) == "process_windows"
    assert _way(monkeypatch, _WINDOWS, columns(_records(255), 64)) == "process"
    assert _way(monkeypatch, _WINDOWS, columns(_records(256), 64), shared=True) == "process"
    small = attrs.evolve(_CACHED, cache_max_bytes=2**18 - 1)
    assert _way(monkeypatch, _WINDOWS, columns(_records(256), 64), settings=small) == "process"
    assert _way(monkeypatch, _WINDOWS, columns(_records(9)), settings=NO_CACHE) == "process_columns"


def test_other_batches_are_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _way(monkeypatch, _REDUCE, columns(_records(9))) == "process_partitions"
    other: list[InputRecord] = [("in", 1, *record[2:]) for record in _records(9)]
    both = PartitionedInput([columns(_records(9)), columns(other)])
    assert _way(monkeypatch, _REDUCE, both) == "process_partitions"
    assert _way(monkeypatch, _REDUCE, columns(_records(9)), shared=True) == "process"


def test_many_records_of_several_writers_are_merged_in_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    for topology, settings, way in (
        (_COUNT, _CACHED, "process_key_counts"),
        (_COUNT, NO_CACHE, "process_columns"),
        (_WINDOWS, NO_CACHE, "process_columns"),
        (_WINDOWS, _CACHED, "process_windows"),
        (_REDUCE, _CACHED, "process_partitions"),
    ):
        many, few = columns(_shared(256), 64), columns(_shared(255), 64)
        assert _way(monkeypatch, topology, many, settings=settings, shared=True) == way
        assert _way(monkeypatch, topology, few, settings=settings, shared=True) == "process"


_JOINED = (
    "- stream: {topic: in, serdes: {key: string, value: string}, as: left}\n"
    "- table: {topic: names, serdes: {key: string, value: string}, as: right}\n"
    "- join: {from: left, with: right, value: left + right}\n- to: {topic: out}\n"
)
_SESSIONS = _WINDOWS.replace("tumbling: {size: 10s, grace: 1m}", "session: {gap: 2ms, grace: 9ms}").replace(
    "time-windowed", "session-windowed"
)
_SLIDING = _WINDOWS.replace("tumbling: {size: 10s, grace: 1m}", "sliding: {difference: 2ms, grace: 9ms}")
_SMALL_WINDOWS = _WINDOWS.replace("size: 10s, grace: 1m", "size: 5ms, grace: 9ms")
_COUNTS_IN_WINDOWS = (
    f"{_READ}- count: null\n- toStream: null\n- groupByKey: {{serdes: {{key: string, value: long}}}}\n"
    "- windowedBy: {tumbling: {size: 5ms, grace: 0ms}}\n- count: null\n- toStream: null\n"
    "- to: {topic: out, serdes: {key: time-windowed, value: long}}\n"
)
"""Which records are late in the windows follows from the order in which the first count writes its keys."""
_DRAWN = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.integers(0, 3),
        st.integers(-1, 20),
        st.sampled_from([None, b"a", b"b"]),
        st.sampled_from([None, b"x", b"yz"]),
    ),
    min_size=1,
    max_size=25,
)


@pytest.mark.parametrize(
    ("topology", "settings"),
    [
        (_COUNT, _CACHED),
        (_COUNT, NO_CACHE),
        (_COUNTS_IN_WINDOWS, _CACHED),
        (_WINDOWS, _CACHED),
        (_SMALL_WINDOWS, _CACHED),
        (_SMALL_WINDOWS, NO_CACHE),
        (_SESSIONS, _CACHED),
        (_SLIDING, _CACHED),
        (_REDUCE, _CACHED),
        (_REDUCE, NO_CACHE),
        (_JOINED, _CACHED),
    ],
)
# In the order of offsets, the last record is late.
@example(batches=[[(0, 1, 18, b"b", b"x"), (0, 2, 4, b"a", b"x")]], at_once=1)
@given(batches=st.lists(_DRAWN, min_size=1, max_size=3), at_once=st.integers(1, 4))
def test_records_of_several_writers_have_the_same_results_in_columns(
    topology: str,
    settings: EngineSettings,
    batches: list[list[tuple[int, int, int, bytes | None, bytes | None]]],
    at_once: int,
) -> None:
    tasks = [Task(programs(topology, settings)[0], 0, MemoryState()) for _ in range(2)]
    offset = 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(record_processing, "_MANY_RECORDS", 1)
        for number, batch in enumerate(batches):
            own: Headers = (("trace", b"1"),) if number % 2 else ()
            parts: dict[TopicPartition, list[InputRecord]] = {}
            for partition, writer, time, key, value in batch:
                header = ("headwater.task", b"%d" % writer)
                record: InputRecord = ("in", partition, offset, time, key, value, (*own, header))
                parts.setdefault(("in", partition), []).append(record)
                offset += 1
            if topology is _JOINED:
                parts["names", 0] = [("names", 0, offset, offset, b"a", b"%d" % offset, ())]
            found = []
            for task, in_columns in zip(tasks, (True, False), strict=True):
                each = [columns(records, at_once) for _, records in sorted(parts.items())]
                input_ = each[0] if len(each) == 1 else PartitionedInput(each)
                found.append(by_topic(process_input(task, input_, _SHARED, 0, in_columns=in_columns)))
                task.state.commit(task.state.version)
            assert found[0] == found[1]
    assert tasks[0].context.dropped == tasks[1].context.dropped
    assert tasks[0].context.stream_time.now == tasks[1].context.stream_time.now


def test_refused_output_and_records_are_processed_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for topology in (_COUNT, _WINDOWS, _REDUCE):
        assert _way(monkeypatch, topology, columns(_records(300)), in_columns=False) == "process"
        assert _way(monkeypatch, topology, RecordInput(_records(300))) == "process"


def _processed_one_by_one(
    monkeypatch: pytest.MonkeyPatch, topology: str, records: list[InputRecord]
) -> list[int]:
    """Return the number of records of each call of `process`."""
    called = []
    process = Task.process

    def note(task: Task, records: list[InputRecord], now: int) -> list[OutputRecord]:
        called.append(len(records))
        return process(task, records, now)

    monkeypatch.setattr(Task, "process", note)
    assert _way(monkeypatch, topology, columns(records, 64)) == "process_windows"
    return called


@pytest.mark.parametrize("topology", [_SESSIONS, _SLIDING, _WINDOWS])
@pytest.mark.parametrize(
    "odd",
    [
        pytest.param((1, b"k", b"v"), id="late"),
        pytest.param((2**52, b"k", b"v"), id="in the future"),
        pytest.param((6_000, None, b"v"), id="without a key"),
        pytest.param((6_000, b"k", None), id="without a value"),
        pytest.param((-1, b"k", b"v"), id="without a timestamp"),
    ],
)
def test_a_record_leaves_others_in_columns(
    monkeypatch: pytest.MonkeyPatch, topology: str, odd: tuple[int, bytes | None, bytes | None]
) -> None:
    records: list[InputRecord] = [(*record[:3], 5_000 + record[3], *record[4:]) for record in _records(300)]
    records.insert(200, ("in", 0, 0, *odd, ()))
    assert _processed_one_by_one(monkeypatch, topology, records) == []


def test_sliding_windows_from_time_zero_on_are_counted_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _processed_one_by_one(monkeypatch, _SLIDING, _records(300)) == [300]


@pytest.mark.parametrize(
    ("topology", "settings"), [(_COUNT, _CACHED), (_COUNT, NO_CACHE), (_WINDOWS, NO_CACHE)]
)
def test_records_without_a_timestamp_are_dropped_in_columns(
    monkeypatch: pytest.MonkeyPatch, topology: str, settings: EngineSettings
) -> None:
    records: list[InputRecord] = [("in", 0, at, at - 1, b"k", b"v", ()) for at in range(9)]
    way = _way(monkeypatch, topology, columns(records), settings=settings)
    assert way == ("process_columns" if settings is NO_CACHE else "process_key_counts")


SHARED = frozenset({"shared"})
_NULLABLE = st.none() | st.binary(max_size=2)
_OWN: st.SearchStrategy[Headers] = st.sampled_from(
    [(), (), (("a", b"1"),), (("a", None), ("headwater.task", b"2"))]
)
_Row = tuple[int, int, bytes | None, bytes | None, Headers]
_RECORDS = st.lists(
    st.tuples(st.integers(0, 12), st.integers(-3, 20), _NULLABLE, _NULLABLE, _OWN), min_size=1
)


def _written(rows: list[_Row], partition: int = 0) -> list[InputRecord]:
    """Return records of (writer, time, key, value, own headers) as their reader gets them."""
    return [
        ("shared", partition, offset, time, key, value, (*own, ("headwater.task", b"%d" % writer)))
        for offset, (writer, time, key, value, own) in enumerate(rows)
    ]


def _merged(records: list[InputRecord], at_once: int) -> ColumnInput | None:
    found = merged_columns(columns(records, at_once), SHARED)
    assert found is None or isinstance(found, ColumnInput)
    return found


@given(_RECORDS, st.integers(1, 5))
def test_columns_are_merged_like_records(rows: list[_Row], at_once: int) -> None:
    records = _written(rows)
    merged = _merged(records, at_once)
    assert merged is not None
    assert merged.has_columns
    assert merged.records() == interleave_records(records, SHARED)


@given(_RECORDS, _RECORDS)
def test_each_shared_partition_is_merged(
    rows: list[_Row],
    others: list[_Row],
) -> None:
    parts = [_written(rows), _written(others, 1)]
    table: list[InputRecord] = [("table", 0, at, 9 - at, b"k", b"v", ()) for at in range(3)]
    merged = merged_columns(PartitionedInput([*map(columns, parts), columns(table)]), SHARED)
    assert isinstance(merged, PartitionedInput)
    found = [part.records() for part in merged.parts]
    assert found == [*(interleave_records(part, SHARED) for part in parts), table]


def test_columns_are_kept_for_a_later_attempt() -> None:
    records = _written([(1, 5, b"k", b"v", ()), (2, 3, b"k", b"v", ())])
    input_ = columns(records)
    assert merged_columns(input_, SHARED) is not None
    assert input_.has_columns
    assert input_.records() == records


@pytest.mark.parametrize(
    "headers",
    [
        (),
        (("trace", b"1"),),
        (("headwater.task", None),),
        (("headwater.task", b"1"), ("trace", b"1")),
    ],
)
def test_records_that_do_not_name_their_writer_are_merged_one_by_one(headers: Headers) -> None:
    first, last = _written([(1, 5, b"k", b"v", ()), (2, 3, b"k", b"v", ())])
    assert _merged([first, (*last[:6], headers)], 2) is None
    if headers:
        assert _merged([first, (*last[:6], ()), (*last[:6], (*headers, *headers))], 3) is None


def test_columns_that_are_merged_one_by_one_stay_in_batches() -> None:
    """Each batch is released when its records are created, so they are not in memory twice."""
    *others, last = _written([(1, at, b"k", b"v", ()) for at in range(4)])
    input_ = columns([*others, (*last[:6], ())], 1)
    assert merged_columns(input_, SHARED) is None
    assert [batch.num_rows for batch in input_.batches] == [1, 1, 1, 1]


def test_only_columns_of_shared_topics_are_merged() -> None:
    input_ = columns(_written([(1, 5, b"k", b"v", ())]))
    assert merged_columns(input_, frozenset({"other"})) is input_
    assert merged_columns(RecordInput(_written([(1, 5, b"k", b"v", ())])), SHARED) is None
    input_.records()
    assert merged_columns(input_, SHARED) is None
    assert merged_columns(PartitionedInput([input_]), SHARED) is None


def test_large_columns_are_merged_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    input_ = columns(_written([(1, 5, b"k", b"v", ()), (2, 3, b"k", b"v", ())]))
    monkeypatch.setattr(record_processing, "_MOST_BYTES", input_.size)
    assert merged_columns(input_, SHARED) is not None
    monkeypatch.setattr(record_processing, "_MOST_BYTES", input_.size - 1)
    assert merged_columns(input_, SHARED) is None


def test_large_records_are_merged_one_by_one() -> None:
    """Columns need up to twice the memory of single records, and no less time."""

    def written(size: int) -> list[InputRecord]:
        return _written([(1, 5, b"k", b"v" * size, ()), (2, 3, b"k", b"v" * size, ())])

    assert _merged(written(500), 2) is not None
    assert _merged(written(1_000), 2) is None
    small, large = columns(written(1)), columns(_written([(1, 5, b"k", b"v" * 1_100, ())], 1))
    assert merged_columns(PartitionedInput([small]), SHARED) is not None
    assert merged_columns(PartitionedInput([small, large]), SHARED) is None


def test_columns_are_not_in_memory_more_than_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """The batches of the input are joined, and merged records can be released in parts."""
    monkeypatch.setattr(record_processing, "_ROWS_AT_ONCE", 2)
    records = _written([(at % 2, at, b"k", b"v", ()) for at in range(5)])
    input_ = columns(records, 1)
    merged = merged_columns(input_, SHARED)
    assert isinstance(merged, ColumnInput)
    assert [batch.num_rows for batch in merged.batches] == [2, 2, 1]
    assert [batch.num_rows for batch in input_.batches] == [5]
    assert input_.records() == records


def test_output_columns_get_the_header_of_the_task() -> None:
    headers: list[Headers] = [(), (("trace", b"1"),)]
    parts: list[Columns] = [([b"a", b"b"], [b"1", None], [3, 4], headers), ([b"c"], [b"3"], [5], [()])]
    rest: list[OutputRecord] = [("shared", 1, b"d", b"4", 6, ()), ("own", 1, b"d", b"4", 6, ())]
    outputs = OutputColumns([TopicColumns("shared", parts), TopicColumns("own", parts)], rest)
    found = with_task_header(outputs, SHARED, 7)
    assert isinstance(found, OutputColumns)
    assert list(found) == with_task_header(list(outputs), SHARED, 7)
    assert list(found) == list(found)
