"""The printed page: what we do, the command, what it said (shortened), what happened; a table at the end."""

import re
import textwrap
from collections.abc import Iterable, Sequence

import attrs
from rich import box
from rich.console import Console
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from infra.cli.demo.observation import Seen
from infra.cli.demo.story import Step
from infra.cli.pulumi_project import Finished

_MOST_LINES = 26
_LOG_PREFIX = re.compile(r"^( +)(?:error|warning): (?=error\[|warning\[)")
_NOISE = re.compile(
    r"^(Previewing update|Updating|@ |Loading policy|Duration:|More information|"
    r" *(error: )?an unhandled error occurred|Diagnostics:| *pulumi:pulumi:Stack)"
)
_RESOURCE = re.compile(r"^ [ +~=-]{1,2} +\S+:\S+ ")


@attrs.frozen
class Result:
    """A step that was done, what was seen of it and how long it took."""

    step: Step
    seen: Seen
    seconds: float

    @property
    def is_right(self) -> bool:
        return self.seen.meets(self.step.expected)


@attrs.frozen
class Teller:
    """Prints to `console`."""

    console: Console

    def introduce(self, broker: str, documents: Iterable[str]) -> None:
        self.console.print(
            f"\n[bold]Headwater[/bold], the whole story: a real Kafka broker (KRaft) at {broker}, the real "
            f"Pulumi engine.\nDocuments: {', '.join(documents)}. What starts here is stopped at the end.\n",
            highlight=False,
        )

    def begin(self, number: int, step: Step) -> None:
        self.console.print(Rule(Text(f"{number}. {step.title}", "bold cyan"), align="left", style="dim"))
        self.console.print(Text(step.story), highlight=False)

    def command(self, text: str) -> None:
        first, *rest = text.splitlines()
        lines = [
            Text.assemble(("  $ ", "green"), (first, "bold")),
            *(Text(f"    {line}", "bold") for line in rest),
        ]
        self.console.print(Text("\n").join(lines), soft_wrap=True)

    def output(self, finished: Finished) -> None:
        for line in shortened(finished.text).splitlines():
            self.console.print(Text.assemble(("    │ ", "dim"), _colored(line)), soft_wrap=True)

    def end(self, result: Result) -> None:
        if result.is_right:
            self.console.print(Text.assemble(("  ✓ ", "bold green"), result.step.outcome), highlight=False)
        else:
            self.console.print(
                Text(f"  ✗ expected: {result.step.expected}\n    seen:     {result.seen}", "bold red")
            )
        self.console.print()

    def conclude(self, results: Sequence[Result]) -> None:
        """Print the table of what was expected and what was seen."""
        table = Table(title="What happened", title_justify="left", header_style="bold", box=box.SIMPLE_HEAD)
        table.add_column("step")
        table.add_column("expected", overflow="fold")
        table.add_column("seen")
        table.add_column("s", justify="right")
        for number, result in enumerate(results, 1):
            mark = Text("✓ as expected", "green") if result.is_right else Text(f"✗ {result.seen}", "bold red")
            table.add_row(
                f"{number}. {result.step.title}", str(result.step.expected), mark, f"{result.seconds:.0f}"
            )
        self.console.print(table)
        wrong = sum(not result.is_right for result in results)
        verdict = (
            f"{wrong} of {len(results)} steps went otherwise"
            if wrong
            else f"All {len(results)} steps went as expected"
        )
        total = sum(result.seconds for result in results)
        self.console.print(Text(f"{verdict}, in {total:.0f} s.", "bold red" if wrong else "bold green"))


def shortened(text: str) -> str:
    """Return what a reader needs of a command's output: our texts and Pulumi's summary."""
    lines = [
        _LOG_PREFIX.sub(r"\1", line.rstrip())
        for line in text.splitlines()
        if not (_NOISE.match(line) or _RESOURCE.match(line))
    ]
    kept = [line for line, before in zip(lines, ["", *lines], strict=False) if line or before]
    while kept and not kept[-1]:
        kept.pop()
    if len(kept) > _MOST_LINES:
        tail = kept[-4:]
        kept = [*kept[: _MOST_LINES - 5], f"… {len(kept) - _MOST_LINES + 1} more lines", *tail]
    return textwrap.dedent("\n".join(kept))


def _colored(line: str) -> Text:
    colored = Text(line)
    colored.highlight_regex(r"error\[\w+\]", "bold red")
    colored.highlight_regex(r"warning\[\w+\]", "bold yellow")
    colored.highlight_regex(r"^ *(create|expand|adopt|recreate|rectify)\b", "cyan")
    return colored
