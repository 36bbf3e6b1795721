"""After an expansion, a task deletes the entries of keys that have moved while it processes batches."""

from typing import TYPE_CHECKING

import attrs
import pytest

from headwater.model.offset_metadata import DELETING_KEY, OffsetMetadata
from headwater_spark.engine.scaling.processors import Processors
from headwater_spark.worker import task_batch
from headwater_spark.worker.local_state import LocalState
from headwater_spark.worker.messages import BatchRequest
from headwater_spark.worker.task_batch import OpenTask
from headwater_spark.worker.task_input import RecordInput
from tests.runtime.worker.memory_broker import IN, Broker

if TYPE_CHECKING:
    from headwater_spark.engine.records import InputRecord

PROCESSORS = Processors(1, 2)
KEYS = [b"key-%d" % each for each in range(20)]
OWN = [key for key in KEYS if PROCESSORS.owner_of_key(key) == 0]


def process(task: OpenTask, request: BatchRequest, start: int, keys: list[bytes]) -> None:
    records: list[InputRecord] = [
        (*IN, start + each, 1_000 + start + each, key, b"v", ()) for each, key in enumerate(keys)
    ]
    task.process_batch(request, RecordInput(records), tick=False)


def open_and_process(request: BatchRequest, start: int) -> None:
    """Open the task, process a batch of one record, and close it."""
    task = OpenTask(request, 0)
    process(task, request, start, [OWN[0]])
    task.close()


@pytest.fixture
def moved(broker: Broker, request_: BatchRequest) -> BatchRequest:
    """Return the request after keys have moved, which the local state of task 0 still has."""
    task = OpenTask(request_, 0)
    process(task, request_, 0, KEYS)
    task.close()
    offset, _ = broker.committed[IN]
    clocks = {**broker.metadata.clocks, DELETING_KEY: 1}
    broker.committed[IN] = offset, OffsetMetadata(broker.metadata.version, clocks).encode(-1)
    broker.records.clear()
    return attrs.evolve(request_, processors=PROCESSORS)


def remaining(request: BatchRequest) -> list[bytes]:
    [folder] = request.state_folder.iterdir()
    state = LocalState(folder)
    found = [key for key, _ in state.store("counts").range()]
    state.release()
    return found


def tombstones(broker: Broker) -> list[bytes | None]:
    return [
        record[2]
        for record in broker.records
        if record[0] == "counted-counts-changelog" and record[3] is None
    ]


def test_entries_are_deleted_in_several_batches_without_a_restore(
    broker: Broker, moved: BatchRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task that is opened again begins with the first entry again."""
    monkeypatch.setattr(task_batch, "_DELETED_AT_ONCE", 6)
    restores = broker.restores
    open_and_process(moved, 20)
    assert 0 < len(tombstones(broker)) <= 6
    task = OpenTask(moved, 0)
    batches = 0
    while DELETING_KEY in broker.metadata.clocks:
        process(task, moved, 21 + batches, [OWN[0]])
        batches += 1
        assert batches <= len(KEYS) // 6 + 1
    task.close()
    assert broker.restores == restores
    assert remaining(moved) == sorted(OWN)
    assert sorted(key or b"" for key in tombstones(broker)) == sorted(set(KEYS) - set(OWN))


def test_all_entries_are_deleted_at_once_if_ranges_are_read_now(
    broker: Broker, moved: BatchRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The document may have changed since the expansion."""
    monkeypatch.setattr(task_batch, "_DELETED_AT_ONCE", 1)
    monkeypatch.setattr(task_batch, "can_delete_later", lambda _: False)
    open_and_process(moved, 20)
    assert DELETING_KEY not in broker.metadata.clocks
    assert remaining(moved) == sorted(OWN)


def test_nothing_is_deleted_by_a_batch_that_fails(
    broker: Broker, moved: BatchRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = OpenTask(moved, 0)
    monkeypatch.setattr(Broker, "commit", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        process(task, moved, 20, [OWN[0]])
    task.close()
    assert not tombstones(broker)
    assert remaining(moved) == sorted(KEYS)
    assert DELETING_KEY in broker.metadata.clocks


def test_partitions_of_global_topics_are_not_processors(
    broker: Broker, moved: BatchRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If inputs have as many partitions as there are processors, the request contains no processors."""
    monkeypatch.setattr(task_batch, "read_global_stores", lambda _: {})
    rates = attrs.evolve(moved.program, sources={"rates": "source"})
    request = attrs.evolve(
        moved, processors=None, partition_counts={"in": 2, "rates": 3}, global_programs=(rates,)
    )
    open_and_process(request, 20)
    assert DELETING_KEY not in broker.metadata.clocks
    assert remaining(moved) == sorted(OWN)


def test_a_local_state_that_is_behind_does_not_begin_to_delete_again(
    broker: Broker, moved: BatchRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another executor has had the task meanwhile, and has deleted all entries."""
    monkeypatch.setattr(task_batch, "_DELETED_AT_ONCE", 1)
    open_and_process(moved, 20)
    assert DELETING_KEY in broker.metadata.clocks
    clocks = {name: time for name, time in broker.metadata.clocks.items() if name != DELETING_KEY}
    broker.committed[IN] = 30, OffsetMetadata(broker.metadata.version + 5, clocks).encode(-1)
    open_and_process(moved, 30)
    assert DELETING_KEY not in broker.metadata.clocks
