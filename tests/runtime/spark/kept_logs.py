"""Keep the whole logs of a test that has failed: temporary folders are deleted after a few runs."""

import re
import shutil
from collections.abc import Iterable
from pathlib import Path

_KEPT = Path(__file__).parents[3] / "build" / "failed-tests"
_MOST_KEPT = 20
_NO_FILE_NAME = re.compile(r"[^A-Za-z0-9.-]+")


def keep_logs(test: str, folders: Iterable[Path], kept: Path = _KEPT) -> Path | None:
    """Copy the logs and documents below `folders`; return their folder, None if there are none.

    `test` is the name of the test. Of the folders of earlier failures, the oldest are deleted.
    """
    found = {
        folder: sorted({*folder.rglob("*.log"), *folder.rglob("*.yaml")})
        for folder in folders
        if folder.is_dir()
    }
    if not any(found.values()):
        return None
    kept.mkdir(parents=True, exist_ok=True)
    before = sorted(kept.iterdir(), key=lambda each: each.stat().st_mtime, reverse=True)
    for folder in before[_MOST_KEPT - 1 :]:
        shutil.rmtree(folder)
    target = _new_folder(kept, _NO_FILE_NAME.sub("-", test).strip("-"))
    for folder, files in found.items():
        for file in files:
            copy = target / folder.name / file.relative_to(folder)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copy)
    return target


def _new_folder(kept: Path, name: str) -> Path:
    number = 1
    while (folder := kept / f"{name}-{number}").exists():
        number += 1
    folder.mkdir()
    return folder
