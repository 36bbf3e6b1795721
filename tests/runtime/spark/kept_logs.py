"""Keep the whole logs of a test that has failed: temporary folders are deleted after a few runs."""

import re
import shutil
from collections.abc import Iterable
from contextlib import suppress
from itertools import count
from pathlib import Path

_KEPT = Path(__file__).parents[3] / "build" / "failed-tests"
_MOST_KEPT = 20
_NO_FILE_NAME = re.compile(r"[^A-Za-z0-9.-]+")


def keep_logs(test: str, folders: Iterable[Path], kept: Path = _KEPT) -> Path | None:
    """Copy the logs and documents below `folders`; return their folder, None if there are none.

    `test` is the name of the test. Of the folders of earlier failures, the oldest are deleted. Other workers
    of the run may do the same at this time, and programs of the test may delete files.
    """
    found = {
        folder: sorted({*folder.rglob("*.log"), *folder.rglob("*.yaml")})
        for folder in folders
        if folder.is_dir()
    }
    if not any(found.values()):
        return None
    kept.mkdir(parents=True, exist_ok=True)
    before = sorted(kept.iterdir(), key=_changed_at, reverse=True)
    for folder in before[_MOST_KEPT - 1 :]:
        shutil.rmtree(folder, ignore_errors=True)
    target = _new_folder(kept, _NO_FILE_NAME.sub("-", test).strip("-"))
    for folder, files in found.items():
        for file in files:
            copy = target / folder.name / file.relative_to(folder)
            copy.parent.mkdir(parents=True, exist_ok=True)
            with suppress(OSError):
                shutil.copyfile(file, copy)
    return target


def _changed_at(folder: Path) -> float:
    with suppress(FileNotFoundError):
        return folder.stat().st_mtime
    return 0.0


def _new_folder(kept: Path, name: str) -> Path:
    for number in count(1):
        with suppress(FileExistsError):
            (folder := kept / f"{name}-{number}").mkdir()
            return folder
    raise AssertionError
