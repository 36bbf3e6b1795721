"""Tests that pages name exist. (`kips.md` has a test of its own.)"""

import re
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_TEST = re.compile(r"`((?:\w+/)+(?:test_\w+))`")


@pytest.mark.parametrize("page", ["reliability.md", "security.md", "threat-model.md"])
def test_the_tests_of_a_page_exist(page: str) -> None:
    named = _TEST.findall((_ROOT / "docs" / page).read_text())
    assert len(named) > 5
    assert [name for name in named if not (_ROOT / "tests" / f"{name}.py").exists()] == []
