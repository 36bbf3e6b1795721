"""Pages of the repository: their links as links of the site, and lines that can be read in a diff."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.documentation.site.links import rewritten

_PAGES = {"README.md": "index.md", "docs/drift.md": "drift.md", "docs/adr/0001-x.md": "adr/0001-x.md"}


@pytest.mark.parametrize(
    ("source", "link", "expected"),
    [
        ("README.md", "[a](docs/drift.md)", "[a](drift.md)"),
        ("README.md", "[a](docs/drift.md#formats)", "[a](drift.md#formats)"),
        ("docs/drift.md", "[a](../README.md)", "[a](index.md)"),
        ("docs/drift.md", "[a](#formats) [b](https://kafka.apache.org/x)", None),
        ("docs/adr/0001-x.md", "![a](../../README.md)", "![a](../index.md)"),
        ("docs/drift.md", "[a](../deploy)", "a (`deploy`)"),
        ("docs/adr/0001-x.md", "[a](../../deploy/a.yaml)", "[a](../repository/deploy/a.yaml)"),
        ("docs/drift.md", "```\n[a](../README.md)\n```\n", None),
    ],
)
def test_links_lead_to_pages_and_files_of_the_site(source: str, link: str, expected: str | None) -> None:
    files: set[str] = set()
    assert rewritten(link, source, _PAGES[source], _PAGES, files) == (expected or link)
    assert files == ({"deploy/a.yaml"} if "deploy/a" in link else set())


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
