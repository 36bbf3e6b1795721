"""Lines of the guides can be read in a diff: at most 120 characters, except tables, code and long names."""

from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
_LONGEST = 120
_GENERATED = "Measured on "


def _long_lines(text: str) -> Iterator[int]:
    """Yield the numbers of lines that are too long and could be wrapped."""
    is_code = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        can_be_wrapped = len(line.split()) > 1 and not line.startswith(("|", _GENERATED))
        if len(line) > _LONGEST and can_be_wrapped and not is_code:
            yield number


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_lines_are_short(page: Path) -> None:
    assert not list(_long_lines(page.read_text(encoding="utf-8")))


def test_only_text_that_can_be_wrapped_is_too_long() -> None:
    long = "word " * 30
    assert list(_long_lines(f"{long}\n| {long}\n```\n{long}\n```\n  {'x' * 130}\nshort\n{long}")) == [1, 8]
