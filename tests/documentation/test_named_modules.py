"""CONTRIBUTING.md, ARCHITECTURE.md and the decision records name files that exist."""

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_PAGES = (
    "CONTRIBUTING.md",
    "ARCHITECTURE.md",
    *(f"docs/adr/{each.name}" for each in (_ROOT / "docs/adr").iterdir()),
)
_OF_USERS = {"infra/__init__.py"}
"""Files of a user that a decision record is about."""
_NAMED_FILE = re.compile(r"`([\w./-]+\.(?:py|java|json|yml|yaml|md)|[\w./-]+/)`")


@pytest.mark.parametrize("page", sorted(_PAGES))
def test_guides_and_decisions_name_files_that_exist(page: str) -> None:
    files = [*_files_of_repository(), *_OF_USERS]
    lines = (_ROOT / page).read_text(encoding="utf-8").splitlines()
    assert [name for line in lines for name in _missing_files(line, files)] == []


def test_a_name_without_a_folder_is_searched_next_to_the_files_before_it() -> None:
    files = ["infra/headwater/planner/edits/verdicts.py", "infra/headwater/compiler/calls.py"]
    assert _missing_files("| calls | `edits/verdicts.py`, `calls.py` |", files) == ["calls.py"]
    assert _missing_files("| calls | `compiler/calls.py` |", files) == []


def test_a_name_in_a_text_is_searched_everywhere() -> None:
    files = ["infra/headwater/planner/edits/verdicts.py", "infra/headwater/compiler/calls.py"]
    text = "`edits/verdicts.py` reads `calls.py`, and not `tables.py`."
    assert _missing_files(text, files) == ["tables.py"]


def _missing_files(line: str, files: list[str]) -> list[str]:
    """Return the names of files and folders in a line that are not in `files`.

    In the row of a table, a name without a folder means a file next to the files before it.
    """
    missing = []
    folders: set[str] = set()
    for name in _NAMED_FILE.findall(line):
        found = [file for file in files if _is_named(file, name)]
        if "/" not in name and folders and line.startswith("|"):
            found = [file for file in found if file.rpartition("/")[0] in folders]
        if not found:
            missing.append(name)
        folders |= {file.rpartition("/")[0] for file in found}
    return missing


def _is_named(file: str, name: str) -> bool:
    return f"/{name}" in f"/{file}" if name.endswith("/") else f"/{file}".endswith(f"/{name}")


@cache
def _files_of_repository() -> list[str]:
    """Return tracked and new files, without deleted and ignored files."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=True)
    return [file for file in listing.stdout.splitlines() if (_ROOT / file).exists()]
