"""Links of a page of the repository, as links of the site."""

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
