"""A batch in the process that owns its task: when the task is opened again, and what a failure returns."""

import os
from pathlib import Path
from typing import Any, ClassVar, cast

import attrs
import pytest
from confluent_kafka import KafkaError

from headwater_spark.engine.partitioners.static import TaskMigrated
from headwater_spark.engine.records import NO_RECORD
from headwater_spark.engine.task import PoisonRecordError
from headwater_spark.worker import task_owner
from headwater_spark.worker.messages import BatchRequest, BatchResult
from headwater_spark.worker.record_sender import RecordsRefusedError, Refusal, RefusedRecords
from headwater_spark.worker.task_input import RecordInput
from headwater_spark.worker.task_lease import Lease
from headwater_spark.worker.task_owner import TaskOwner, process_task_batch

RECORD = ("out", 0, b"k", b"v", 1_000, ())


def refusal(number: int) -> RecordsRefusedError:
    """Return the refusal of one record."""
    code = KafkaError.INVALID_RECORD
    refused = Refusal(code=code, text=f"refused {number}", record=RECORD, now_ms=0)
    return RecordsRefusedError(KafkaError(code), [refused])


@attrs.frozen
class Request:
    state_folder: Path
    layout_version: int = 1
    subtopology: str = "0"

    def task_name(self, partition: int) -> str:
        return f"app-0-{partition}"


class FakeTask:
    """A task whose batches fail as `failures` say, one after the other; None: the batch succeeds."""

    opened: ClassVar[list["FakeTask"]]
    failures: ClassVar[list[BaseException | None]]

    def __init__(self, request: Request, partition: int, refused: RefusedRecords | None = None) -> None:
        self.layout_version = request.layout_version
        self.partition = partition
        self.refused = refused
        self.is_slow = False
        self.is_closed = False
        self.current_record = NO_RECORD
        self.ticks: list[bool] = []
        FakeTask.opened.append(self)

    def process_batch(self, _: Request, input_: RecordInput, *, tick: bool) -> BatchResult:
        assert not self.is_closed
        self.ticks.append(tick)
        failure = FakeTask.failures.pop(0) if FakeTask.failures else None
        if failure is not None:
            raise failure
        return BatchResult(partition=self.partition, read=len(input_), written=len(FakeTask.opened))

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture(autouse=True)
def fake_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeTask.opened, FakeTask.failures = [], []
    monkeypatch.setattr(task_owner, "OpenTask", FakeTask)


@pytest.fixture
def owner() -> TaskOwner:
    return TaskOwner()


def process(owner: TaskOwner, folder: Path, *, layout_version: int = 1, tick: bool = False) -> BatchResult:
    request = cast("BatchRequest", Request(folder, layout_version))
    return owner.process_or_forward(request, 3, RecordInput([cast("Any", RECORD)]), tick=tick)


def test_an_open_task_is_kept(owner: TaskOwner, tmp_path: Path) -> None:
    for tick in (False, True):
        assert process(owner, tmp_path, tick=tick) == BatchResult(partition=3, read=1, written=1)
    [task] = FakeTask.opened
    assert (task.ticks, task.refused, task.is_closed) == ([False, True], None, False)


def test_a_task_of_another_layout_or_a_slow_one_is_opened_again(owner: TaskOwner, tmp_path: Path) -> None:
    process(owner, tmp_path)
    assert process(owner, tmp_path, layout_version=2).written == 2
    assert process(owner, tmp_path, layout_version=2).written == 2
    FakeTask.opened[-1].is_slow = True
    assert process(owner, tmp_path, layout_version=2).written == 3
    assert [task.is_closed for task in FakeTask.opened] == [True, True, False]


def test_a_batch_is_processed_again_without_the_refused_records(owner: TaskOwner, tmp_path: Path) -> None:
    FakeTask.failures = [refusal(1), refusal(2)]
    assert process(owner, tmp_path, tick=True).written == 3
    first, second, last = FakeTask.opened
    assert (first.refused, first.is_closed, second.is_closed, last.is_closed) == (None, True, True, False)
    assert second.refused is last.refused
    assert last.refused is not None
    assert (last.refused.reason(RECORD) or "").startswith("refused 1")
    assert [task.ticks for task in FakeTask.opened] == [[True]] * 3
    assert {task.partition for task in FakeTask.opened} == {3}


def test_the_last_refusal_is_raised(owner: TaskOwner, tmp_path: Path) -> None:
    failures = [refusal(number) for number in range(30)]
    FakeTask.failures = [*failures]
    with pytest.raises(RecordsRefusedError) as raised:
        process(owner, tmp_path)
    assert raised.value is failures[-1]
    assert all(task.is_closed for task in FakeTask.opened)
    assert Lease.owner_of(tmp_path, "app-0-3") == ""


def test_a_missing_partition_and_a_poison_record_are_results(owner: TaskOwner, tmp_path: Path) -> None:
    FakeTask.failures = [
        TaskMigrated("out", 5, 4),
        PoisonRecordError("record of in", "processing.exception.handler"),
    ]
    assert process(owner, tmp_path) == BatchResult(partition=3, missing_partition=("out", 5, 4))
    assert Lease.owner_of(tmp_path, "app-0-3") == ""
    assert process(owner, tmp_path) == BatchResult(
        partition=3, poison_record="record of in", poison_handler="processing.exception.handler"
    )
    assert all(task.is_closed for task in FakeTask.opened)


def test_a_failed_batch_of_an_open_task_is_tried_once_more(owner: TaskOwner, tmp_path: Path) -> None:
    """Another process may have owned the task meanwhile: a new session reads the offsets."""
    process(owner, tmp_path)
    FakeTask.failures = [RuntimeError("fenced")]
    assert process(owner, tmp_path).written == 2
    FakeTask.failures = [RuntimeError("fenced"), RuntimeError("again")]
    with pytest.raises(RuntimeError, match="again"):
        process(owner, tmp_path)


def test_a_batch_with_a_tick_is_processed_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_owner, "_TASK_OWNER", TaskOwner())
    request = cast("BatchRequest", Request(tmp_path))
    result = process_task_batch(request, 3, RecordInput([cast("Any", RECORD)]), tick=True)
    assert (result.read, result.partition) == (1, 3)
    assert FakeTask.opened[0].ticks == [True]


def test_only_the_user_may_read_a_lease(tmp_path: Path) -> None:
    """It contains the key that its owner requires."""
    mask = os.umask(0)
    try:
        lease = Lease.try_acquire(tmp_path / "new" / "state", "task", "address\nkey")
    finally:
        os.umask(mask)
    assert lease is not None
    file = tmp_path / "new" / "state" / "task.lease"
    assert file.stat().st_mode & 0o777 == 0o600
    assert Lease.owner_of(tmp_path / "new" / "state", "task") == "address\nkey"
    lease.release()
    assert Lease.owner_of(tmp_path / "new" / "state", "task") == ""


def test_nothing_is_left_of_the_address_of_an_owner_that_died(tmp_path: Path) -> None:
    (tmp_path / "task.lease").write_text("a long address of another process\nkey")
    lease = Lease.try_acquire(tmp_path, "task", "short\nkey")
    assert lease is not None
    assert Lease.owner_of(tmp_path, "task") == "short\nkey"
    lease.release()
    assert Lease.owner_of(tmp_path, "unknown") == ""
