"""docs/problems.md explains each problem code, and nothing else."""

import re
from pathlib import Path

import pytest

from headwater.model.problems import ProblemCode

GUIDE = (Path(__file__).parents[2] / "docs/problems.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^### (\w+)\n(.*?)(?=^##|\Z)", GUIDE, re.MULTILINE | re.DOTALL))


def test_every_code_has_its_section() -> None:
    assert set(SECTIONS) == {code.value for code in ProblemCode}


def test_the_table_lists_every_code_once() -> None:
    linked = re.findall(r"\[(\w+)\]\(#(\w+)\)", GUIDE.split("## Documents")[0])
    assert sorted(name for name, _ in linked) == sorted(SECTIONS)
    assert all(anchor == name.lower() for name, anchor in linked)


@pytest.mark.parametrize("code", ProblemCode, ids=str)
def test_a_section_explains_meaning_reason_and_fix(code: ProblemCode) -> None:
    text = SECTIONS[code]
    meaning = text.split("**Why it matters**:")[0]
    assert len(meaning.split()) > 5
    assert "**Why it matters**:" in text
    assert "**Do**" in text
