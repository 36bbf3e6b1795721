"""The texts of plans and of the planner's problems, held by golden files."""

import inspect
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from infra import planner
from infra.model.problems import ProblemCode
from infra.planner import Plan
from infra.report import plan_text, problems_text
from tests.report.planned import PLANS

_GOLDEN = Path(__file__).parent / "golden" / "plans"
_PLANNER = Path(inspect.getfile(planner)).parent


@pytest.mark.parametrize("name", PLANS)
def test_text_of_a_plan(name: str, golden: Callable[[Path, str], None]) -> None:
    golden(_GOLDEN / f"{name}.txt", _text(PLANS[name]()))


def test_every_code_that_the_planner_emits_has_a_text() -> None:
    emitted = {
        ProblemCode[name]
        for file in _PLANNER.rglob("*.py")
        for name in re.findall(r"ProblemCode\.([A-Z_]+)", file.read_text(encoding="utf-8"))
    }
    shown = {problem.code for make in PLANS.values() for problem in make().problems}
    assert emitted == shown & emitted


@pytest.mark.parametrize("name", PLANS)
def test_the_first_line_says_all_in_numbers(name: str) -> None:
    plan = PLANS[name]()
    first = plan_text(plan).splitlines()[0]
    assert first.startswith("Plan for ")
    assert ("Refused" in first) == (not plan.is_applicable)


def _text(plan: Plan) -> str:
    problems = f"\n{problems_text(plan.problems)}\n" if plan.problems else ""
    return f"{plan_text(plan)}\n{problems}"
