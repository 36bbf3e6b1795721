"""Which folders are accepted for state, leases and checkpoints."""

import os
import stat
from pathlib import Path

import pytest

from headwater_spark.worker.state_folders import TRUSTED, UnsafeFolderError, create_private_folder

_ANOTHER_USER = 12_345


def _mode(folder: Path) -> int:
    return stat.S_IMODE(folder.stat().st_mode)


def test_missing_folders_are_created_for_this_user_only(tmp_path: Path) -> None:
    create_private_folder(tmp_path / "a" / "b")
    assert [_mode(tmp_path / "a"), _mode(tmp_path / "a" / "b")] == [0o700, 0o700]


def test_a_readable_folder_of_this_user_becomes_private(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir(mode=0o755)
    create_private_folder(tmp_path / "state")
    assert _mode(tmp_path / "state") == 0o700


@pytest.mark.parametrize(("mode", "writers"), [(0o777, "all users"), (0o772, "all users")])
def test_a_parent_that_others_can_write_is_refused(tmp_path: Path, mode: int, writers: str) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(mode)
    with pytest.raises(UnsafeFolderError, match=f"{writers} can write to"):
        create_private_folder(tmp_path / "shared" / "state")


def test_a_folder_that_others_can_write_is_refused_even_if_it_is_sticky(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state").chmod(0o1777)
    with pytest.raises(UnsafeFolderError, match="all users can write to"):
        create_private_folder(tmp_path / "state")


def test_a_sticky_parent_is_accepted(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o1777)
    create_private_folder(tmp_path / "shared" / "state")


def test_a_link_counts_as_the_folder_that_it_names(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o777)
    (tmp_path / "shared" / "state").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "shared" / "state")
    with pytest.raises(UnsafeFolderError, match="shared"):
        create_private_folder(tmp_path / "link")


@pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser can give a folder to another user")
def test_a_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    os.chown(tmp_path / "theirs", _ANOTHER_USER, _ANOTHER_USER)
    for folder in (tmp_path / "theirs", tmp_path / "theirs" / "state"):
        with pytest.raises(UnsafeFolderError, match=f"user id {_ANOTHER_USER}"):
            create_private_folder(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser can change the group to any other")
def test_a_group_with_other_members_is_refused(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    os.chown(tmp_path / "shared", 0, _ANOTHER_USER)
    (tmp_path / "shared").chmod(0o770)
    with pytest.raises(UnsafeFolderError, match="its group can write to"):
        create_private_folder(tmp_path / "shared" / "state")


def test_a_container_of_one_user_can_trust_its_volumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kubernetes creates volumes that all users can write."""
    (tmp_path / "volume").mkdir()
    (tmp_path / "volume").chmod(0o777)
    monkeypatch.setenv(TRUSTED, "1")
    create_private_folder(tmp_path / "volume" / "state")
