"""The guide to problem codes, docs/problems.md, section by section: what `headwater explain` prints."""

import re
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from pathlib import Path

import attrs

_SECTION = re.compile(r"^### (?P<code>\w+)\n(?P<text>.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[(?P<text>[^\]]+)\]\((?P<page>[^)#\s]*)(?:#[^)\s]*)?\)")
_CODE = re.compile(r"(?:(?:error|warning|info|hint)\[)?(?P<code>\w+)\]?")


@attrs.frozen
class Explanation:
    """The section of a problem code as Markdown, without links: they lead nowhere in a terminal."""

    code: str
    text: str


@cache
def problem_guide() -> Mapping[str, Explanation]:
    """Return problem code → its section, in the order of the page; from a clone or an installed package."""
    installed = files("headwater").joinpath("docs")
    folder = installed if installed.is_dir() else Path(__file__).parents[3] / "docs"
    text = folder.joinpath("problems.md").read_text(encoding="utf-8")
    return {
        found["code"]: Explanation(found["code"], _without_links(found["text"].strip()))
        for found in _SECTION.finditer(text)
    }


def find_explanation(word: str) -> Explanation | None:
    """Return the section of a code, written as in the output: `WrongCluster` or `error[WrongCluster]`."""
    match = _CODE.fullmatch(word.strip())
    wanted = match["code"].lower() if match else ""
    return next((each for code, each in problem_guide().items() if code.lower() == wanted), None)


def near_codes(word: str) -> list[str]:
    """Return the codes that `word` may mean, the most similar first: misspelled, or a part of their names."""
    lowered = {code.lower(): code for code in problem_guide()}
    wanted = re.sub(r"[^a-z]", "", word.lower())
    near = get_close_matches(wanted, lowered, n=3, cutoff=0.6)
    parts = [code for code in lowered if len(wanted) > 2 and wanted in code and code not in near]  # noqa: PLR2004
    return [lowered[code] for code in (*near, *parts)][:5]


def _without_links(text: str) -> str:
    """Return the text with `[x](page.md#y)` as `x (docs/page.md)`, and links within the page as `x`."""

    def shown(match: re.Match[str]) -> str:
        page = match["page"]
        if not page or match["text"] in page:
            return f"docs/{page}" if page else match["text"]
        return f"{match['text']} ({page if '://' in page else f'docs/{page}'})"

    return _LINK.sub(shown, text)
