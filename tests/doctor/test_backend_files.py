"""The files of a stack in a backend in files, where other projects and stacks have files, too."""

import json
import os
import socket
from pathlib import Path

import pytest

from headwater.cli.doctor.pulumi_stack import BackendFiles

_ENDED = 2**22 + 1  # more than the highest process id


@pytest.fixture
def files(tmp_path: Path) -> BackendFiles:
    found = BackendFiles.from_url(
        f"file://{tmp_path}?metadata=skip", Path("/elsewhere"), "shop", "production"
    )
    assert found is not None
    return found


def write_lock(files: BackendFiles, folder: str, pid: int = _ENDED, host: str | None = None) -> None:
    file = files.folder / "locks" / folder / "4711.json"
    file.parent.mkdir(parents=True)
    lock = {
        "pid": pid,
        "username": "al",
        "hostname": host or socket.gethostname(),
        "timestamp": "2026-11-22T17:58:44Z",
    }
    file.write_text(json.dumps(lock))


@pytest.mark.parametrize("folder", ["organization/shop/production", "production"])
def test_locks_of_the_stack_are_found(files: BackendFiles, folder: str) -> None:
    assert files.locks() == ()
    write_lock(files, folder)
    (lock,) = files.locks()
    assert lock.owner == f"al@{socket.gethostname()} (process {_ENDED})"
    assert (lock.since, lock.is_running) == ("2026-11-22T17:58:44", False)


@pytest.mark.parametrize("folder", ["organization/other/production", "organization/shop/test", "test"])
def test_locks_of_other_stacks_are_ignored(files: BackendFiles, folder: str) -> None:
    write_lock(files, folder)
    assert files.locks() == ()


def test_a_process_is_checked_only_on_this_machine(files: BackendFiles) -> None:
    write_lock(files, "organization/shop/production", os.getpid())
    assert [lock.is_running for lock in files.locks()] == [True]
    (file,) = files.folder.rglob("*.json")
    file.write_text(file.read_text().replace(socket.gethostname(), "another-machine"))
    assert [lock.is_running for lock in files.locks()] == [None]
    file.write_text("{")
    assert [(lock.owner, lock.is_running) for lock in files.locks()] == [("an unknown user", None)]


def test_only_empty_attributes_of_the_stack_are_found(files: BackendFiles) -> None:
    for name in ("shop/production.json.attrs", "shop/test.json.attrs", "other/production.json.attrs"):
        file = files.folder / "stacks" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    (files.folder / "stacks/shop/production.json.bak.attrs").write_text("{}")
    assert files.empty_attributes() == (str(files.folder / "stacks/shop/production.json.attrs"),)


def test_addresses_of_backends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/al")

    def folder(url: str) -> Path | None:
        files = BackendFiles.from_url(url, tmp_path, "shop", "organization/shop/production")
        return files.folder if files else None

    assert folder("file://~/state") == Path("/home/al/state/.pulumi")
    assert folder("file://./state?metadata=skip") == tmp_path / "state" / ".pulumi"
    assert folder("s3://states") is None
