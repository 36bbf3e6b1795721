"""`headwater explain`: what a problem code means, offline."""

import sys
from pathlib import Path

import click

from headwater.cli.console import json_text, write
from headwater.cli.options import output_option
from headwater.report.problem_guide import Explanation, find_explanation, near_codes, problem_guide

_WIDTH = 100


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
    found = [*problem_guide().values()] if code is None else [_find(code)]
    if form == "json":
        entries = [{"code": each.code, "markdown": each.text} for each in found]
        write(json_text({"problems": entries}), output)
    elif code is None:
        write("".join(f"{each.code:34}{_summary(each)}\n" for each in found), output)
    elif output is None and sys.stdout.isatty():
        _print(found[0])
    else:
        write(f"{found[0].code}\n\n{found[0].text}\n", output)


def _find(code: str) -> Explanation:
    found = find_explanation(code)
    if found is None:
        near = near_codes(code)
        hint = f"Did you mean {' or '.join(near)}?" if near else "`headwater explain` lists all codes."
        raise click.BadParameter(f"there is no problem code {code!r}. {hint}", param_hint="CODE")
    return found


def _summary(explanation: Explanation) -> str:
    """Return the first sentence, as much as fits on the line."""
    line = " ".join(explanation.text.partition("**Why it matters**")[0].split())
    sentence = line.partition(". ")[0].rstrip(".:")
    return sentence if len(sentence) <= _WIDTH else f"{sentence[: _WIDTH - 1].rsplit(' ', 1)[0]} …"


def _print(explanation: Explanation) -> None:
    from rich.console import Console  # noqa: PLC0415 - only on a terminal
    from rich.markdown import Markdown  # noqa: PLC0415 - same

    console = Console(highlight=False)
    console.print(f"[bold]{explanation.code}[/bold]\n")
    console.print(Markdown(explanation.text), width=min(console.width, _WIDTH))
