"""docs/documents.md matches the code: its reference, its links, its snippets and its limits."""

import os
import re
from pathlib import Path

import pytest

from headwater.model.problems import Severity
from headwater.spec import load_text
from headwater.spec.locations import MAX_BYTES, MAX_DEPTH, MAX_NODES
from headwater.spec.schema import operators
from tests.spec.document_reference import GROUPS, reference

ROOT = Path(__file__).parents[2]
DOCUMENTATION = ROOT / "docs/documents.md"
_START = "# Reference\n\n"


def test_the_reference_is_generated_from_the_schema() -> None:
    guide, _, written = DOCUMENTATION.read_text().partition(_START)
    if "UPDATE_GOLDEN" in os.environ:
        DOCUMENTATION.write_text(guide + _START + reference())
        return
    assert written == reference()


def test_each_operator_is_in_a_group_of_the_reference() -> None:
    assert sorted(name for names in GROUPS.values() for name in names.split()) == sorted(operators())


def test_the_page_has_no_broken_links() -> None:
    text = DOCUMENTATION.read_text()
    headings = {heading.lower().replace(" ", "-") for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE)}

    for target in re.findall(r"\]\(([^)]+)\)", text):
        if target.startswith("#"):
            assert target[1:] in headings, target
        else:
            assert (DOCUMENTATION.parent / target).exists(), target


def snippets() -> list[str]:
    guide = DOCUMENTATION.read_text().partition(_START)[0]
    return re.findall(r"```yaml\n(.*?)```", guide, re.DOTALL)


@pytest.mark.parametrize("snippet", snippets())
def test_the_snippets_of_the_guide_are_valid(snippet: str, tmp_path: Path) -> None:
    (tmp_path / "billing.describe.txt").write_text(
        "Topologies:\n   Sub-topology: 0\n    Source: s (topics: [t])\n      --> none\n\n"
    )
    text = snippet if "application:" in snippet else f"application: {{id: shown}}\n{snippet}"

    problems = load_text(text, str(tmp_path / "shown.yaml")).problems

    assert [problem for problem in problems if problem.severity is Severity.ERROR] == []


def test_the_page_has_the_limits_of_the_code() -> None:
    text = " ".join(DOCUMENTATION.read_text().split())
    assert f"at most {MAX_BYTES // 1024**2} MiB, {MAX_NODES:,} values and {MAX_DEPTH} levels" in text
