"""Files and tests that pages name exist, and `make test` runs the tests of the KIPs."""

import ast
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


_TEST = re.compile(r"`((?:\w+/)+(?:test_\w+))`")
_OF_KIPS = re.compile(r"`((?:\w+/)+test_\w+)::(test_\w+)`(\s+\(in\s+`make\s+fuzz`\))?")


@pytest.mark.parametrize("page", ["reliability.md", "security.md", "threat-model.md"])
def test_the_tests_of_a_page_exist(page: str) -> None:
    named = _TEST.findall((_ROOT / "docs" / page).read_text())
    assert len(named) > 5
    assert [name for name in named if not (_ROOT / "tests" / f"{name}.py").exists()] == []


_WITH_NOTE = re.compile(_TEST.pattern + r"((?:,|\s+\()\s*in\s+`make\s+fuzz`)?")


def test_the_page_about_faults_says_which_modules_only_make_fuzz_runs() -> None:
    named = _WITH_NOTE.findall((_ROOT / "docs" / "reliability.md").read_text())
    assert [name for name, note in named if _is_soak(name, "") and not note] == []
    assert len([name for name, note in named if note]) > 5


def test_kips_say_which_tests_only_make_fuzz_runs() -> None:
    named = _OF_KIPS.findall((_ROOT / "docs" / "kips.md").read_text())
    assert len(named) > 80
    wrong = [f"{file}::{test}" for file, test, note in named if _is_soak(file, test) != bool(note)]
    assert wrong == []


def test_kip_663_names_tests_without_a_path_that_make_test_runs() -> None:
    section = (_ROOT / "docs" / "kips.md").read_text().partition("\n## KIP-663")[2].partition("\n## ")[0]
    file, named = "runtime/spark/test_stream_threads", set(re.findall(r"`(test_\w+)`", section))
    assert len(named) > 8
    existing = {node.name for node in _parsed(file).body if isinstance(node, ast.FunctionDef)}
    assert named <= existing, named - existing
    assert [test for test in sorted(named) if _is_soak(file, test)] == []


def _is_soak(file: str, test: str) -> bool:
    """Return whether all cases of a test have the mark `soak`."""
    module = _parsed(file)
    marks = [
        each
        for node in module.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"
        for each in (node.value.elts if isinstance(node.value, ast.List) else [node.value])
    ]
    found = [node for node in ast.walk(module) if isinstance(node, ast.FunctionDef) and node.name == test]
    marks += [mark for node in found for mark in node.decorator_list]
    return any(ast.unparse(mark) == "pytest.mark.soak" for mark in marks)


@cache
def _parsed(file: str) -> ast.Module:
    return ast.parse((_ROOT / "tests" / f"{file}.py").read_text())
