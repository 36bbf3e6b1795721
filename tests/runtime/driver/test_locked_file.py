"""A client proves with the file that it has locked that the last client has died."""

import os
import resource
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater.model.problems import ProblemCode, ProblemsError
from headwater_spark.driver.active_client import membership
from headwater_spark.driver.active_client.membership import LockedFile
from headwater_spark.driver.preflight import check_state_folder, checkpoint_lock


def test_each_client_with_the_same_folder_has_the_same_lock(tmp_path: Path) -> None:
    """Containers on one machine may have different paths, and a path may be a link."""
    folder, link = tmp_path / "checkpoint", tmp_path / "link"
    link.symlink_to(folder)
    with checkpoint_lock(str(folder), "shop") as first:
        assert first is not None
    with checkpoint_lock(str(link), "shop") as second:
        assert second is not None
        assert second.lock_id() == first.lock_id() != ""


def test_a_folder_that_was_created_again_has_another_lock(tmp_path: Path) -> None:
    """Both clients have locked a file at the same path, and both are alive."""
    with checkpoint_lock(str(tmp_path), "shop") as first:
        shutil.rmtree(tmp_path / "shop")
        with checkpoint_lock(str(tmp_path), "shop") as second:
            assert first is not None
            assert second is not None
            assert second.lock_id() != first.lock_id()


@pytest.fixture
def no_space() -> Iterator[None]:
    """Let this process write no byte to files, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.usefixtures("no_space")
def test_folders_that_cannot_be_written_are_named(tmp_path: Path) -> None:
    with pytest.raises(ProblemsError) as checkpoint, checkpoint_lock(str(tmp_path / "c"), "shop"):
        pass
    with pytest.raises(ProblemsError) as state:
        check_state_folder(tmp_path / "s", "shop")
    for raised, folder in ((checkpoint, "c/shop"), (state, "s")):
        (problem,) = raised.value.problems
        assert problem.code is ProblemCode.NOT_RUNNABLE
        assert problem.found == f"{tmp_path / folder}: File too large"
        assert "free space there" in problem.fix
    _, limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    check_state_folder(tmp_path / "s", "shop")
    with checkpoint_lock(str(tmp_path / "c"), "shop") as lock:
        assert lock is not None


def test_the_lock_is_the_open_file_and_not_its_path(tmp_path: Path) -> None:
    path = tmp_path / "client.lock"
    path.touch()
    file = os.open(path, os.O_RDWR)
    try:
        found = path.stat()
        path.rename(tmp_path / "moved")
        path.touch()
        assert LockedFile.from_descriptor(file) == LockedFile(found.st_dev, found.st_ino)
    finally:
        os.close(file)


@pytest.mark.parametrize("boot_id", [None, ""])
def test_without_the_start_of_the_machine_a_lock_proves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, boot_id: str | None
) -> None:
    """Another machine with the same host name may have a file with the same numbers."""
    path = tmp_path / "boot_id"
    if boot_id is not None:
        path.write_text(boot_id, encoding="ascii")
    monkeypatch.setattr(membership, "_BOOT_ID", path)
    assert LockedFile(1, 2).lock_id() == ""


def test_a_checkpoint_at_a_url_has_no_lock() -> None:
    with checkpoint_lock("s3a://bucket/checkpoints", "shop") as lock:
        assert lock is None
