"""The texts of plans (golden files); the tests of each rule have the texts of problems."""

from collections.abc import Callable
from pathlib import Path

import pytest

from headwater.report import plan_text
from tests.report.planned import PLANS

_GOLDEN = Path(__file__).parent / "golden" / "plans"


@pytest.mark.parametrize("name", PLANS)
def test_text_of_a_plan(name: str, golden: Callable[[Path, str], None]) -> None:
    golden(_GOLDEN / f"{name}.txt", plan_text(PLANS[name]()) + "\n")


@pytest.mark.parametrize("name", PLANS)
def test_first_line_has_the_numbers(name: str) -> None:
    plan = PLANS[name]()
    first = plan_text(plan).splitlines()[0]
    assert first.startswith("Plan for ")
    assert ("Refused" in first) == (not plan.is_applicable)
