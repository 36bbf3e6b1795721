"""The tables of CONTRIBUTING.md and ARCHITECTURE.md name files that exist."""

import re
import subprocess
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_NAMED_FILE = re.compile(r"`([\w./-]+\.(?:py|java|json|yml|yaml|md)|[\w./-]+/)`")


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "ARCHITECTURE.md"])
def test_tables_name_files_that_exist(page: str) -> None:
    rows = [line for line in (_ROOT / page).read_text().splitlines() if line.startswith("|")]
    tracked = _tracked_files()
    assert [name for row in rows for name in _missing_files(row, tracked)] == []


def test_a_name_without_a_folder_is_searched_next_to_the_files_before_it() -> None:
    tracked = ["infra/headwater/planner/edits/verdicts.py", "infra/headwater/compiler/calls.py"]
    assert _missing_files("| calls | `edits/verdicts.py`, `calls.py` |", tracked) == ["calls.py"]
    assert _missing_files("| calls | `compiler/calls.py` |", tracked) == []


def _missing_files(row: str, tracked: list[str]) -> list[str]:
    """The files and folders that a row names and the repository does not have."""
    missing = []
    folders: set[str] = set()
    for name in _NAMED_FILE.findall(row):
        found = [file for file in tracked if _is_named(file, name)]
        if "/" not in name and folders:
            found = [file for file in found if file.rpartition("/")[0] in folders]
        if not found:
            missing.append(name)
        folders |= {file.rpartition("/")[0] for file in found}
    return missing


def _is_named(file: str, name: str) -> bool:
    return f"/{name}" in f"/{file}" if name.endswith("/") else f"/{file}".endswith(f"/{name}")


def _tracked_files() -> list[str]:
    listing = subprocess.run(["git", "ls-files"], cwd=_ROOT, capture_output=True, text=True, check=True)
    return listing.stdout.splitlines()
