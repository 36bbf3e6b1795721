"""Tests that pages name exist, and `make test` runs the tests of the KIPs.

`test_the_tests_that_a_page_names_exist` compares the names of functions, too.
"""

import ast
import re
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_TEST = re.compile(r"`((?:\w+/)+(?:test_\w+))`")


_OF_KIPS = re.compile(r"`((?:\w+/)+test_\w+)::(test_\w+)`(\s+\(in\s+`make\s+fuzz`\))?")


@pytest.mark.parametrize("page", ["reliability.md", "security.md", "threat-model.md"])
def test_the_tests_of_a_page_exist(page: str) -> None:
    named = _TEST.findall((_ROOT / "docs" / page).read_text())
    assert len(named) > 5
    assert [name for name in named if not (_ROOT / "tests" / f"{name}.py").exists()] == []


def test_kips_say_which_tests_only_make_fuzz_runs() -> None:
    named = _OF_KIPS.findall((_ROOT / "docs" / "kips.md").read_text())
    assert len(named) > 80
    wrong = [f"{file}::{test}" for file, test, note in named if _is_soak(file, test) != bool(note)]
    assert wrong == []


def _is_soak(file: str, test: str) -> bool:
    """Return whether all cases of a test have the mark `soak`."""
    module = ast.parse((_ROOT / "tests" / f"{file}.py").read_text())
    marks = [
        each
        for node in module.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"
        for each in (node.value.elts if isinstance(node.value, ast.List) else [node.value])
    ]
    found = [node for node in ast.walk(module) if isinstance(node, ast.FunctionDef) and node.name == test]
    marks += [mark for node in found for mark in node.decorator_list]
    return any(ast.unparse(mark) == "pytest.mark.soak" for mark in marks)
