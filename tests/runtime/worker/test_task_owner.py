"""Which process owns a task: leases, forwarded batches, and waits that end."""

import pickle
import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client
from pathlib import Path
from threading import Event
from typing import Any, cast

import attrs
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from headwater_spark.worker import task_owner
from headwater_spark.worker.messages import BatchRequest, BatchResult
from headwater_spark.worker.owner_socket import _ShortPath
from headwater_spark.worker.task_input import COLUMNS, ColumnInput, RecordInput, TaskInput
from headwater_spark.worker.task_lease import Lease
from headwater_spark.worker.task_owner import TaskOwnedError, TaskOwner, _OwnerWait

_TASK = "app-0-0"
_SECONDS = 60
"""Far more than any of these waits takes."""


@attrs.frozen
class Request:
    """The part of a `BatchRequest` that task owners use."""

    state_folder: Path
    layout_version: int = 1
    subtopology: str = "0"

    def task_name(self, partition: int) -> str:
        return f"app-0-{partition}"


class FakeTask:
    """Commits like a transactional task: whoever opened the task last fences the others."""

    latest = 0
    is_fenced = True
    opened: list["FakeTask"]
    may_finish: Event
    started: Event

    def __init__(self, request: Request, partition: int) -> None:
        FakeTask.latest += 1
        self.number = FakeTask.latest
        self.layout_version = request.layout_version
        self.partition = partition
        self.is_closed = False
        self.is_slow = False
        self.ticks: list[bool] = []
        FakeTask.opened.append(self)

    def process_batch(self, _request: Request, input_: TaskInput, *, tick: bool) -> BatchResult:
        self.ticks.append(tick)
        assert not self.is_closed
        FakeTask.started.set()
        assert FakeTask.may_finish.wait(_SECONDS)
        if FakeTask.is_fenced and self.number != FakeTask.latest:
            raise RuntimeError("fenced")
        return BatchResult(partition=self.partition, read=len(input_), written=self.number)

    def close(self) -> None:
        self.is_closed = True


Process = Callable[..., Future[BatchResult]]


def _records(count: int) -> list[Any]:
    return [("in", 0, offset, 0, b"k", b"v", ()) for offset in range(count)]


def _columns(count: int) -> ColumnInput:
    values = zip(*_records(count), strict=True)
    batch = pa.RecordBatch.from_arrays([pa.array(column) for column in values], names=COLUMNS)
    return ColumnInput(("in", 0), [batch])


@pytest.fixture(autouse=True)
def fake_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeTask.latest, FakeTask.opened = 0, []
    FakeTask.may_finish, FakeTask.started = Event(), Event()
    FakeTask.may_finish.set()
    monkeypatch.setattr(task_owner, "OpenTask", FakeTask)


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Process]:
    """Process some records by an owner in a thread, as one of several Python workers does."""
    with ThreadPoolExecutor() as threads:

        def submit(
            owner: TaskOwner,
            records: int = 1,
            layout_version: int = 1,
            *,
            task: int = 0,
            columns: bool = False,
            tick: bool = False,
        ) -> Future[BatchResult]:
            request = cast("BatchRequest", Request(tmp_path / "state", layout_version))
            input_ = _columns(records) if columns else RecordInput(_records(records))
            return threads.submit(owner.process_or_forward, request, task, input_, tick=tick)

        yield submit
        FakeTask.may_finish.set()


@pytest.mark.parametrize("records", [3, 20_000])
@pytest.mark.parametrize("tick", [False, True])
def test_records_are_processed_by_the_owner(process: Process, records: int, *, tick: bool) -> None:
    owner, other = TaskOwner(), TaskOwner()
    process(owner).result(_SECONDS)
    result = process(other, records=records, tick=tick).result(_SECONDS)
    assert result == BatchResult(partition=0, read=records, written=1)
    assert [task.ticks for task in FakeTask.opened] == [[False, tick]]


def test_more_records_are_sent_as_columns(process: Process) -> None:
    owner, other = TaskOwner(), TaskOwner()
    process(owner).result(_SECONDS)
    result = process(other, records=20_001, columns=True).result(_SECONDS)
    assert result == BatchResult(partition=0, read=20_001, written=1)


@pytest.mark.parametrize("columns", [False, True])
def test_the_ownership_moves_for_many_records(
    process: Process, monkeypatch: pytest.MonkeyPatch, *, columns: bool
) -> None:
    monkeypatch.setattr(task_owner, "_MAX_FORWARDED_BYTES", 1_000)
    owner, other = TaskOwner(), TaskOwner()
    process(owner).result(_SECONDS)
    assert process(other, records=20_001, columns=columns).result(_SECONDS).written == 2
    assert FakeTask.opened[0].is_closed
    assert process(owner).result(_SECONDS).written == 2


@pytest.mark.parametrize(("records", "opened"), [(2_000, 2), (2_001, 3)])
def test_an_owner_that_processes_another_task_keeps_this_one_for_few_records_only(
    process: Process, monkeypatch: pytest.MonkeyPatch, records: int, opened: int
) -> None:
    monkeypatch.setattr(FakeTask, "is_fenced", False)
    owner, other = TaskOwner(), TaskOwner()
    for task in (0, 1):
        process(owner, task=task).result(_SECONDS)
    FakeTask.may_finish.clear()
    FakeTask.started.clear()
    busy = process(owner, task=1)
    assert FakeTask.started.wait(_SECONDS)
    FakeTask.started.clear()
    processed = process(other, records)
    assert FakeTask.started.wait(_SECONDS)
    assert len(FakeTask.opened) == opened
    FakeTask.may_finish.set()
    assert processed.result(_SECONDS).read == records
    assert busy.result(_SECONDS).read == 1


def test_an_owner_answers_after_a_caller_without_its_key(process: Process, tmp_path: Path) -> None:
    owner, other = TaskOwner(), TaskOwner()
    process(owner).result(_SECONDS)
    address, _, _ = Lease.owner_of(tmp_path / "state", _TASK).partition("\n")
    with pytest.raises(AuthenticationError), _ShortPath(Path(address)) as short:
        Client(short, authkey=b"another")
    assert process(other).result(_SECONDS).written == 1


def test_tasks_that_are_released_have_no_owner(process: Process, tmp_path: Path) -> None:
    owner = TaskOwner()
    process(owner).result(_SECONDS)
    owner.close()
    assert FakeTask.opened[0].is_closed
    assert Lease.owner_of(tmp_path / "state", _TASK) == ""
    assert process(owner).result(_SECONDS).written == 2


def test_another_process_waits_for_a_slow_owner_and_gets_its_result(process: Process) -> None:
    owner, other = TaskOwner(), TaskOwner()
    process(owner).result(_SECONDS)
    FakeTask.may_finish.clear()
    FakeTask.started.clear()
    waiting = process(other, records=5)
    assert FakeTask.started.wait(_SECONDS)
    assert not waiting.done()
    FakeTask.may_finish.set()
    assert waiting.result(_SECONDS) == BatchResult(partition=0, read=5, written=1)


@pytest.mark.parametrize("records", [5, 20_001], ids=["forwarded", "release requested"])
def test_a_wait_for_the_owner_ends_with_an_error(
    process: Process, monkeypatch: pytest.MonkeyPatch, records: int
) -> None:
    owner, other = TaskOwner(), TaskOwner()
    process(owner).result(_SECONDS)
    FakeTask.may_finish.clear()
    FakeTask.started.clear()
    busy = process(owner)
    assert FakeTask.started.wait(_SECONDS)
    monkeypatch.setattr(task_owner, "_OWNER_TIMEOUT_SECONDS", 0.2)
    with pytest.raises(TaskOwnedError, match="another process owns task app-0-0 and did not finish"):
        process(other, records).result(_SECONDS)
    FakeTask.may_finish.set()
    assert busy.result(_SECONDS).written == 1
    monkeypatch.undo()
    monkeypatch.setattr(task_owner, "OpenTask", FakeTask)
    assert process(other, records).result(_SECONDS).read == records


def test_a_lease_that_stays_locked_ends_with_an_error(
    process: Process, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_owner, "_OWNER_TIMEOUT_SECONDS", 0.2)
    lease = Lease.try_acquire(tmp_path / "state", _TASK, "")
    assert lease is not None
    with pytest.raises(TaskOwnedError):
        process(TaskOwner()).result(_SECONDS)
    lease.release()
    assert process(TaskOwner()).result(_SECONDS).written == 1


def test_a_long_wait_is_logged_once(
    process: Process, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lease = Lease.try_acquire(tmp_path / "state", _TASK, "")
    assert lease is not None
    check, checks = _OwnerWait.check, 0

    def check_three_times(wait: _OwnerWait) -> None:
        nonlocal checks
        checks += 1
        check(wait)
        if checks == 3:
            lease.release()

    monkeypatch.setattr(task_owner, "_REPORT_AFTER_SECONDS", 0.0)
    monkeypatch.setattr(_OwnerWait, "check", check_three_times)
    assert process(TaskOwner()).result(_SECONDS).written == 1
    assert checks == 3
    # Log lines go to stdout, or to stderr once another test has configured the logs of a command.
    output = capsys.readouterr()
    assert (output.out + output.err).count("waiting for the owner of a task") == 1


def test_after_a_lost_state_folder_the_new_owner_is_asked(process: Process, tmp_path: Path) -> None:
    """Both workers once waited for each other's lease without end."""
    owner, other = TaskOwner(), TaskOwner()
    process(owner).result(_SECONDS)
    shutil.rmtree(tmp_path / "state")
    assert process(other).result(_SECONDS).written == 2
    assert process(owner, records=4).result(_SECONDS) == BatchResult(partition=0, read=4, written=2)
    assert FakeTask.opened[0].is_closed


@pytest.mark.parametrize("records", [5, 20_001], ids=["forwarded", "taken over"])
def test_an_owner_whose_lease_was_deleted_does_not_use_its_outdated_state(
    process: Process, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, records: int
) -> None:
    """With at least once, the commit of the old owner would succeed."""
    monkeypatch.setattr(FakeTask, "is_fenced", False)
    owner, other = TaskOwner(), TaskOwner()
    process(owner).result(_SECONDS)
    shutil.rmtree(tmp_path / "state")
    assert process(other).result(_SECONDS).written == 2
    assert process(owner, records=records).result(_SECONDS).written == (2 if records == 5 else 3)
    assert FakeTask.opened[0].is_closed


def test_a_lost_state_folder_is_restored_by_the_only_owner(process: Process, tmp_path: Path) -> None:
    owner = TaskOwner()
    process(owner).result(_SECONDS)
    shutil.rmtree(tmp_path / "state")
    assert process(owner).result(_SECONDS).written == 2


def test_a_lease_of_a_dead_process_is_acquired(process: Process, tmp_path: Path) -> None:
    folder = tmp_path / "state"
    folder.mkdir()
    (folder / f"{_TASK}.lease").write_text(f"{tmp_path / 'no-such-socket'}\nkey", encoding="utf-8")
    started = time.monotonic()
    assert process(TaskOwner()).result(_SECONDS).written == 1
    assert time.monotonic() - started < _SECONDS


def test_a_lease_of_a_deleted_folder_is_not_acquired(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "state"

    def delete_folder(_file: int, _operation: int) -> None:
        shutil.rmtree(folder)

    monkeypatch.setattr("fcntl.flock", delete_folder)
    assert Lease.try_acquire(folder, _TASK, "owner") is None


def test_a_new_layout_opens_the_task_again(process: Process) -> None:
    owner = TaskOwner()
    process(owner).result(_SECONDS)
    assert process(owner, layout_version=2).result(_SECONDS).written == 2
    assert FakeTask.opened[0].is_closed


def test_the_stand_in_of_a_request_can_be_sent_to_the_owner(tmp_path: Path) -> None:
    assert pickle.loads(pickle.dumps(Request(tmp_path))) == Request(tmp_path)  # noqa: S301 - own data
