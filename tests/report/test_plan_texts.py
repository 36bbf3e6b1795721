"""The texts of plans (golden files); the tests of each rule have the texts of problems."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from headwater.report import application_text, plan_text
from headwater.report.plan_comment import read_preview
from tests.report.planned import PLANS

_GOLDEN = Path(__file__).parent / "golden" / "plans"


def test_the_text_of_one_application_of_several_names_it() -> None:
    plan = PLANS["first_setup"]()
    texts = [application_text(plan, application) for application in plan.applications]
    assert len(texts) == 2
    for text, application in zip(texts, plan.applications, strict=True):
        id_ = application.application_id
        assert text.startswith(f"Plan for {id_}: ")
        diagnostics = [{"severity": "info", "message": text}]
        preview = read_preview(json.dumps({"steps": [], "diagnostics": diagnostics}))
        assert preview.texts.keys() == {id_}


@pytest.mark.parametrize("name", PLANS)
def test_text_of_a_plan(name: str, golden: Callable[[Path, str], None]) -> None:
    golden(_GOLDEN / f"{name}.txt", plan_text(PLANS[name]()) + "\n")


@pytest.mark.parametrize("name", PLANS)
def test_first_line_has_the_numbers(name: str) -> None:
    plan = PLANS[name]()
    first = plan_text(plan).splitlines()[0]
    assert first.startswith("Plan for ")
    assert ("Refused" in first) == (not plan.is_applicable)
