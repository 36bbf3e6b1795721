"""The local state on a disk that is full."""

import errno
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from headwater_spark.engine.stores.backend import Batch, Prepared
from headwater_spark.worker.local_state import LmdbBackend
from headwater_spark.worker.state_folders import StateNotWrittenError, named_disk_failures
from headwater_spark.worker.task_lease import Lease

_OPEN = """
import sys
from pathlib import Path
from headwater_spark.worker.local_state import LmdbBackend

backend = LmdbBackend(Path(sys.argv[1]))
backend.open("s")
backend.close()
"""


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte; only root can mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m,mode=700", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("a file system cannot be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(disk: Path) -> None:
    with suppress(OSError), (disk / "filler").open("ab", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)


@pytest.fixture
def full_disk(small_disk: Path) -> Path:
    fill(small_disk)
    return small_disk


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


@pytest.mark.parametrize("has_folder", [True, False])
def test_a_disk_that_is_full_from_the_beginning_is_named(full_disk: Path, *, has_folder: bool) -> None:
    """LMDB once ended the process by SIGBUS, so this runs in a process of its own."""
    folder = full_disk / "app" / "0_0"
    if has_folder:
        (full_disk / "filler").rename(full_disk / "0")
        os.truncate(full_disk / "0", 900 * 1024)
        folder.mkdir(parents=True)
        fill(full_disk)
    result = subprocess.run(
        [sys.executable, "-c", _OPEN, str(folder)], capture_output=True, text=True, check=False
    )
    assert result.returncode == 1, result
    assert re.search(
        r"StateNotWrittenError: the local state in .*0_0 cannot be written: the disk is full \(0 KiB free\). "
        "Free space there, or choose another disk by --state-dir",
        result.stderr,
    )


@pytest.mark.parametrize(
    "free",
    [pytest.param(free, marks=[] if free in (8, 20, 40) else [pytest.mark.slow]) for free in range(4, 48, 4)],
)
def test_any_free_space_is_too_little_or_enough(full_disk: Path, free: int) -> None:
    """The disk fills up at each step of the first opening."""
    os.truncate(full_disk / "filler", (full_disk / "filler").stat().st_size - free * 1024)
    result = subprocess.run(
        [sys.executable, "-c", _OPEN, str(full_disk / "0_0")], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0 or "the disk is full" in result.stderr, result


def test_a_full_disk_does_not_delete_the_state(small_disk: Path) -> None:
    backend = LmdbBackend(small_disk / "0_0")
    backend.apply({"s": entries(100)}, Batch(1))
    backend.close()
    fill(small_disk)
    full = LmdbBackend(small_disk / "0_0")
    with pytest.raises(StateNotWrittenError, match="the disk is full"):
        full.apply({"s": entries(2_000)}, Batch(2))
    full.close()
    for file in small_disk.glob("filler*"):
        file.unlink()
    assert LmdbBackend(small_disk / "0_0").latest().version == 1


def test_a_lease_on_a_full_disk_leaves_no_open_file(full_disk: Path) -> None:
    for _ in range(3):
        with pytest.raises(StateNotWrittenError, match="the disk is full"):
            Lease.try_acquire(full_disk, "task", "address")
    assert _open_files(full_disk) == []
    (full_disk / "filler").unlink()
    lease = Lease.try_acquire(full_disk, "task", "address")
    assert lease is not None
    lease.release()


def _open_files(folder: Path) -> list[str]:
    """Return the open files of this process in a folder; clients of earlier tests open others meanwhile."""
    found = []
    for entry in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            found.append(str(entry.readlink()))
    return [each for each in found if each.startswith(str(folder))]


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
