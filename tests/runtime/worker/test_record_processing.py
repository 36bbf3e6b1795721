"""A batch is processed in the first way that the nodes and the input of the task allow."""

import attrs
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headwater_spark.engine.program_interface import EngineSettings
from headwater_spark.engine.records import Headers, InputRecord, TopicPartition
from headwater_spark.engine.task import Task
from headwater_spark.worker import record_processing
from headwater_spark.worker.local_state import MemoryState
from headwater_spark.worker.partition_input import PartitionedInput
from headwater_spark.worker.record_processing import process_input
from headwater_spark.worker.task_input import RecordInput, TaskInput
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
        (_SESSIONS, _CACHED),
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
