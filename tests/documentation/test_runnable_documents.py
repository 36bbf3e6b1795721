"""The complete documents of the guides can be run with `headwater run`."""

import re
from pathlib import Path

import pytest

from headwater.compiler import build_nodes
from headwater.spec import load_text
from headwater_spark.engine.program import problems_of

_ROOT = Path(__file__).parents[2]
_DOCUMENT = re.compile(
    r"^```yaml\n((?:# .*\n)?application:\n.*?^topology:\n.*?)^```\n", re.MULTILINE | re.DOTALL
)
_PAGES = ("README.md", "docs/documents.md", "docs/runtime.md", "docs/tutorial.md")


@pytest.mark.parametrize("page", _PAGES)
def test_documents_can_be_run(page: str) -> None:
    texts = _DOCUMENT.findall((_ROOT / page).read_text(encoding="utf-8"))
    assert texts
    for text in texts:
        loaded = load_text(text, "document.yaml")
        assert not loaded.problems
        (document,) = loaded.documents
        assert not problems_of(document, build_nodes(document))
