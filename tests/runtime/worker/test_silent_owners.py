"""An owner of a task that does not answer, or has died: each wait ends, and nothing of it is left."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException

from headwater.toolchain.broker.readiness import until
from headwater_spark.worker import clients, task_owner
from headwater_spark.worker.owner_socket import _connect_to_owner
from headwater_spark.worker.partition_reader import OffsetRange, PartitionReader
from headwater_spark.worker.task_lease import Lease
from headwater_spark.worker.task_owner import TaskOwnedError, TaskOwner
from headwater_spark.worker.transaction import AtLeastOnceProducer
from tests.runtime.spark.processes import is_stopped
from tests.runtime.worker.owner_process import TASK, IdleTask, process

_SECONDS = 60.0
_LIMIT = 0.5
"""How long a process waits for the owner in these tests."""
_SENT_BYTES = 8 * 2**20
"""More than a socket keeps until it is read."""


@pytest.fixture(autouse=True)
def idle_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_owner, "OpenTask", IdleTask)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "state"


@contextmanager
def owner_process(folder: Path, *options: str) -> Iterator[tuple["subprocess.Popen[str]", int]]:
    """Start a process that owns the task; yield it with the number that it printed."""
    command = [sys.executable, "-m", "tests.runtime.worker.owner_process", str(folder), *options]
    root = Path(__file__).parents[3]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as started:
        try:
            assert started.stdout is not None
            yield started, int(started.stdout.readline())
        finally:
            started.kill()


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        assert until(lambda: is_stopped(pid), _SECONDS)
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@pytest.mark.parametrize("size", [1, _SENT_BYTES], ids=["small batch", "large batch"])
def test_the_wait_for_a_stopped_owner_ends_and_is_logged(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], size: int
) -> None:
    monkeypatch.setattr(task_owner, "_OWNER_TIMEOUT_SECONDS", _LIMIT)
    monkeypatch.setattr(task_owner, "_REPORT_AFTER_SECONDS", 0.0)
    owner = TaskOwner()
    with owner_process(folder) as (other, _):
        with stopped(other.pid):
            started = time.monotonic()
            for _ in range(2):  # also a second time, when the first call is still waiting there
                with pytest.raises(TaskOwnedError, match=TASK):
                    process(owner, folder, b"x" * size)
            assert time.monotonic() - started < _SECONDS
        output = capsys.readouterr()
        assert (output.out + output.err).count("waiting for the owner of a task") == 2
        monkeypatch.undo()
        monkeypatch.setattr(task_owner, "OpenTask", IdleTask)
        assert process(owner, folder, b"x" * size).written == other.pid
    assert process(owner, folder).written == os.getpid()
    owner.close()


def test_a_task_whose_owner_is_stopped_while_it_listens_ends_for_many_callers(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More calls than a stopped process can keep waiting."""
    monkeypatch.setattr(task_owner, "_OWNER_TIMEOUT_SECONDS", _LIMIT)
    with owner_process(folder) as (other, _), stopped(other.pid):
        address = Lease.owner_of(folder, TASK).partition("\n")[0]
        waiting = []
        for _ in range(200):
            waiting.append(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            waiting[-1].settimeout(0)
            try:
                _connect_to_owner(waiting[-1], address)
            except BlockingIOError:
                break
        else:
            pytest.fail("the backlog has no end")
        with pytest.raises(TaskOwnedError):
            process(TaskOwner(), folder)
        for each in waiting:
            each.close()


def test_a_child_of_a_killed_owner_does_not_keep_the_task(folder: Path) -> None:
    """User code may fork, and the child keeps each open file of its parent."""
    with owner_process(folder, "forks") as (other, child):
        try:
            other.kill()
            other.wait()
            owner = TaskOwner()
            assert process(owner, folder).written == os.getpid()
            owner.close()
        finally:
            os.kill(child, signal.SIGKILL)


def test_a_caller_that_does_not_authenticate_delays_no_other(folder: Path) -> None:
    owner, other = TaskOwner(), TaskOwner()
    process(owner, folder)
    address = Lease.owner_of(folder, TASK).partition("\n")[0]
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stuck:
        _connect_to_owner(stuck, address)
        stuck.recv(1)  # the owner waits for the answer to its challenge
        assert process(other, folder).read == 1
    assert other._ownership(TASK).task is None
    owner.close()


def test_the_wait_for_another_thread_of_the_process_ends(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_owner, "_OWNER_TIMEOUT_SECONDS", _LIMIT)
    owner = TaskOwner()
    with owner._ownership(TASK).lock, pytest.raises(TaskOwnedError):
        process(owner, folder)
    assert process(owner, folder).read == 1
    owner.close()


def test_a_killed_owner_leaves_no_file(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    with owner_process(folder) as (other, _):
        other.kill()
        other.wait()
    owner = TaskOwner()
    process(owner, folder)
    [path] = (folder / "sockets").iterdir()
    assert str(path) == Lease.owner_of(folder, TASK).partition("\n")[0]
    assert (folder / "sockets").stat().st_mode & 0o777 == 0o700
    owner.close()
    assert list(temporary.iterdir()) == []


def test_a_task_is_found_after_its_owners_socket_was_deleted(folder: Path) -> None:
    owner, other = TaskOwner(), TaskOwner()
    process(owner, folder)
    shutil.rmtree(folder / "sockets")
    process(owner, folder)
    process(other, folder)
    assert other._ownership(TASK).task is None
    owner.close()


@pytest.mark.parametrize("length", [50, 101, 200])
def test_the_folder_may_have_a_long_name(tmp_path: Path, length: int) -> None:
    folder = tmp_path / ("x" * length)
    owner, other = TaskOwner(), TaskOwner()
    process(owner, folder)
    process(other, folder)
    assert other._ownership(TASK).task is None
    owner.close()


def test_a_file_system_without_sockets_is_no_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bind = socket.socket.bind

    def refuse_files(self: socket.socket, address: Any) -> None:  # noqa: ANN401 - as in the library
        if not str(address).startswith("\0"):
            raise PermissionError
        bind(self, address)

    class Socket(socket.socket):
        bind = refuse_files

    monkeypatch.setattr(socket, "socket", Socket)
    owner, other = TaskOwner(), TaskOwner()
    process(owner, folder)
    process(other, folder)
    assert other._ownership(TASK).task is None
    assert list((folder / "sockets").iterdir()) == []
    owner.close()


class Broker:
    """Librdkafka's clients when no broker answers."""

    def flush(self, _: float) -> int:
        return 3

    def consume(self, *_: object, **__: object) -> list[object]:
        return []

    def get_watermark_offsets(self, *_: object) -> tuple[int, int]:
        return 0, 10

    def assign(self, _: object) -> None:
        """Do nothing."""

    def __len__(self) -> int:
        return 3


def _read() -> None:
    reader: Any = PartitionReader.__new__(PartitionReader)
    reader._consumer = Broker()
    list(reader.read("changelog", 0, OffsetRange()))


def _deliver() -> None:
    producer: Any = AtLeastOnceProducer.__new__(AtLeastOnceProducer)
    producer._producer = Broker()
    producer._deliver()


@pytest.mark.parametrize("wait", [_read, _deliver], ids=["restore", "delivery"])
def test_a_wait_for_silent_brokers_ends(wait: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "REQUEST_SECONDS", 0.05)
    failures: list[BaseException] = []

    def run() -> None:
        try:
            wait()
        except KafkaException as error:
            failures.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(_SECONDS)
    assert [failure.args[0].name() for failure in failures] == ["_TIMED_OUT"]
