"""A run with `-m` does not import modules whose tests it excludes, and runs all others."""

import ast

import pytest

from tests.durations import ROOT
from tests.excluded_modules import excluded_marks, marks_of_module


@pytest.mark.parametrize(
    ("expression", "marks"),
    [
        ("not soak", {"soak"}),
        ("not broker and not slow", {"broker", "slow"}),
        ("", set()),
        ("slow", set()),
        ("not soak or hypothesis", set()),
        ("not (soak and slow)", set()),
        ("broker and not slow", set()),
    ],
)
def test_marks_are_excluded_only_by_an_expression_that_names_nothing_else(
    expression: str, marks: set[str]
) -> None:
    assert excluded_marks(expression) == marks


@pytest.mark.parametrize(
    ("source", "marks"),
    [
        ("import pytest\n\npytestmark = pytest.mark.broker\n", {"broker"}),
        ("pytestmark = [pytest.mark.pulumi, pytest.mark.timeout(900)]\nX = 1\n", {"pulumi", "timeout"}),
        (
            "pytestmark = [\n    # one\n    pytest.mark.spark,\n    *(pytest.mark.slow,),\n]\n",
            {"spark", "slow"},
        ),
        (
            'pytestmark = pytest.mark.parametrize("a", [1, pytest.param(2, marks=pytest.mark.slow)])\n',
            {"parametrize"},
        ),
        ("@pytest.mark.broker\ndef test_one() -> None: ...\n", set()),
        ("if True:\n    pytestmark = pytest.mark.broker\n", set()),
    ],
)
def test_the_marks_of_a_module_are_in_its_source(source: str, marks: set[str]) -> None:
    assert marks_of_module(source) == marks


def test_many_modules_need_brokers() -> None:
    """Otherwise the sources are no longer read correctly."""
    modules = (ROOT / "tests").rglob("test_*.py")
    assert sum("broker" in marks_of_module(each.read_text(encoding="utf-8")) for each in modules) > 50


@pytest.mark.slow  # it parses many modules
def test_each_module_sets_its_marks_once_outside_of_functions_and_texts() -> None:
    """Otherwise a run could silently leave out a module, even if Python cannot parse the module."""
    for file in (ROOT / "tests").rglob("test_*.py"):
        source = file.read_text(encoding="utf-8")
        if not (marks := marks_of_module(source)):
            continue  # it is imported
        module = ast.parse(source, str(file))
        names = [each for each in ast.walk(module) if isinstance(each, ast.Name) and each.id == "pytestmark"]
        set_by = [each for each in module.body if isinstance(each, ast.Assign) and each.targets == names]
        assert [marks_of_module(ast.unparse(each)) for each in set_by] == [marks], file
