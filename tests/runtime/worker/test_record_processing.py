"""A batch is processed in the first way that the nodes and the input of the task allow."""

import attrs
import pytest

from headwater_spark.engine.program_interface import EngineSettings
from headwater_spark.engine.records import InputRecord
from headwater_spark.engine.task import Task
from headwater_spark.worker.local_state import MemoryState
from headwater_spark.worker.partition_input import PartitionedInput
from headwater_spark.worker.record_processing import process_input
from headwater_spark.worker.task_input import RecordInput, TaskInput
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
    topics = frozenset({"in"}) if shared else frozenset[str]()
    assert list(process_input(task, input_, topics, 0, in_columns=in_columns))
    return called[0]


def test_counts_are_processed_as_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _way(monkeypatch, _COUNT, columns(_records(9))) == "process_key_counts"
    assert _way(monkeypatch, _COUNT, columns(_records(9)), shared=True) == "process_key_counts"
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
        (_COUNT, NO_CACHE, "process_columns"),
        (_WINDOWS, _CACHED, "process_windows"),
        (_REDUCE, _CACHED, "process_partitions"),
    ):
        many, few = columns(_shared(256), 64), columns(_shared(255), 64)
        assert _way(monkeypatch, topology, many, settings=settings, shared=True) == way
        assert _way(monkeypatch, topology, few, settings=settings, shared=True) == "process"


def test_refused_output_and_records_are_processed_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for topology in (_COUNT, _WINDOWS, _REDUCE):
        assert _way(monkeypatch, topology, columns(_records(300)), in_columns=False) == "process"
        assert _way(monkeypatch, topology, RecordInput(_records(300))) == "process"
