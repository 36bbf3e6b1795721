"""`headwater explain`: what a problem code means, offline, by the sections of docs/problems.md."""

import re
import sys
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from pathlib import Path

import attrs
import click

from headwater.cli.console import json_text, write_text
from headwater.cli.options import output_option

_SECTION = re.compile(r"^### (?P<code>\w+)\n(?P<text>.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[(?P<text>[^\]]+)\]\((?P<page>[^)#\s]*)(?:#[^)\s]*)?\)")
_CODE = re.compile(r"(?:(?:error|warning|info|hint)\[)?(?P<code>\w+)\]?")
_WIDTH = 100


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


def _find_explanation(word: str) -> Explanation | None:
    """Return the section of a code, written as in the output: `WrongCluster` or `error[WrongCluster]`."""
    match = _CODE.fullmatch(word.strip())
    wanted = match["code"].lower() if match else ""
    return next((each for code, each in problem_guide().items() if code.lower() == wanted), None)


def _near_codes(word: str) -> list[str]:
    """Return the codes that `word` may mean, the most similar first: misspelled, or a part of their names."""
    lowered = {code.lower(): code for code in problem_guide()}
    wanted = re.sub(r"[^a-z]", "", word.lower())
    near = get_close_matches(wanted, lowered, n=3, cutoff=0.6)
    parts = [code for code in lowered if len(wanted) > 2 and wanted in code and code not in near]  # noqa: PLR2004
    return [lowered[code] for code in (*near, *parts)][:5]


def _without_links(text: str) -> str:
    """Return the text with `[x](page.md#y)` as `x (docs/page.md)`, and links within the page as `x`."""

    def replace_link(match: re.Match[str]) -> str:
        page = match["page"]
        if not page or match["text"] in page:
            return f"docs/{page}" if page else match["text"]
        return f"{match['text']} ({page if '://' in page else f'docs/{page}'})"

    return _LINK.sub(replace_link, text)


@click.command()
@click.argument("code", required=False)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@output_option
def explain(code: str | None, *, form: str, output: Path | None) -> None:
    """Explain a problem code: what it means, why it matters, what to do.

    CODE is written as in the output of other commands, such as WrongCluster or error[WrongCluster]. Without
    CODE, all codes are listed. The texts are the sections of docs/problems.md, and need no network.

    \b
    Examples:
      headwater explain OverPartitionedInternalTopic
      headwater explain 'error[WrongCluster]'
      headwater explain --format json
    """
    found = [*problem_guide().values()] if code is None else [_require_explanation(code)]
    if form == "json":
        entries = [{"code": each.code, "markdown": each.text} for each in found]
        write_text(json_text({"problems": entries}), output)
    elif code is None:
        write_text("".join(f"{each.code:34}{_first_sentence(each)}\n" for each in found), output)
    elif output is None and sys.stdout.isatty():
        _print_explanation(found[0])
    else:
        write_text(f"{found[0].code}\n\n{found[0].text}\n", output)


def _require_explanation(code: str) -> Explanation:
    found = _find_explanation(code)
    if found is None:
        near = _near_codes(code)
        hint = f"Did you mean {' or '.join(near)}?" if near else "`headwater explain` lists all codes."
        raise click.BadParameter(f"there is no problem code {code!r}. {hint}", param_hint="CODE")
    return found


def _first_sentence(explanation: Explanation) -> str:
    """Return the first sentence, as much as fits on the line."""
    text = explanation.text.partition("**Why it matters**")[0].partition("\n- ")[0]
    line = " ".join(text.split())
    sentence = line.partition(". ")[0].rstrip(".:")
    return sentence if len(sentence) <= _WIDTH else f"{sentence[: _WIDTH - 1].rsplit(' ', 1)[0]} …"


def _print_explanation(explanation: Explanation) -> None:
    from rich.console import Console  # noqa: PLC0415 - only on a terminal
    from rich.markdown import Markdown  # noqa: PLC0415 - only on a terminal

    console = Console(highlight=False)
    console.print(f"[bold]{explanation.code}[/bold]\n")
    console.print(Markdown(explanation.text), width=min(console.width, _WIDTH))
