"""The local state on a disk that is full."""

import errno
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from spark_jobs.runtime.engine.stores.backend import Batch, Prepared
from spark_jobs.runtime.worker.lmdb_backend import LmdbBackend
from spark_jobs.runtime.worker.state_errors import StateNotWrittenError, named_disk_failures


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte; only root can mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("a file system cannot be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def entries(number: int) -> Mapping[bytes, bytes]:
    return {b"%d" % each: b"%d" % each * 300 for each in range(number)}


def test_a_full_disk_is_named_when_a_batch_is_applied(small_disk: Path) -> None:
    backend = LmdbBackend(small_disk / "0_0")
    with pytest.raises(StateNotWrittenError, match=r"state in .*0_0 cannot be written: the disk is full"):
        backend.apply({"s": entries(2_000)}, Batch(1))


def test_a_full_disk_is_named_when_a_batch_is_prepared(small_disk: Path) -> None:
    backend = LmdbBackend(small_disk / "0_0")
    with pytest.raises(StateNotWrittenError, match=r"the disk is full \(\d+ KiB free\)"):
        backend.save_prepared(Prepared(0, {}, {"s": entries(2_000)}))


def test_other_failures_keep_their_reason(tmp_path: Path) -> None:
    with (
        pytest.raises(StateNotWrittenError, match=r"cannot be written: .*Input/output error"),
        named_disk_failures(tmp_path),
    ):
        raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_a_folder_that_was_deleted_is_named(tmp_path: Path) -> None:
    backend = LmdbBackend(tmp_path / "0_0")
    for file in (tmp_path / "0_0").iterdir():
        file.unlink()
    (tmp_path / "0_0").rmdir()
    with pytest.raises(StateNotWrittenError, match="No such file or directory"):
        backend.save_prepared(Prepared(0, {}, {"s": entries(1)}))
