"""The output of the demo: each step with its command, the shortened output and the result; then a table."""

import re
import textwrap
from collections.abc import Iterable, Sequence

import attrs
from rich import box
from rich.console import Console
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from headwater.cli.demo.observation import ACTIONS, Observation
from headwater.cli.demo.steps import Step
from headwater.toolchain.pulumi_cli import Finished

_MOST_LINES = 26
_LOG_PREFIX = re.compile(r"^( +)(?:error|warning): (?=error\[|warning\[)")
_NOISE = re.compile(
    r"^(Previewing update|Updating|@ |Loading policy|Duration:|More information|"
    r" *(error: )?an unhandled error occurred|Diagnostics:| *pulumi:pulumi:Stack)"
)
_RESOURCE = re.compile(r"^ [ +~=-]{1,2} +\S+:\S+ ")


@attrs.frozen
class Result:
    """A finished step: its observation, and its duration in seconds."""

    step: Step
    observed: Observation
    seconds: float

    @property
    def is_expected(self) -> bool:
        return self.observed.matches(self.step.expected)


@attrs.frozen
class Output:
    """Prints the demo to `console`."""

    console: Console

    def header(self, broker: str, documents: Iterable[str]) -> None:
        self.console.print(
            f"\n[bold]Headwater[/bold] demo: real Kafka broker (KRaft) at {broker}, real Pulumi engine.\n"
            f"Documents: {', '.join(documents)}. The broker is stopped at the end.\n",
            highlight=False,
        )

    def step_header(self, number: int, step: Step) -> None:
        self.console.print(Rule(Text(f"{number}. {step.title}", "bold cyan"), align="left", style="dim"))
        self.console.print(Text(step.description), highlight=False)

    def command(self, text: str) -> None:
        first, *rest = text.splitlines()
        lines = [
            Text.assemble(("  $ ", "green"), (first, "bold")),
            *(Text(f"    {line}", "bold") for line in rest),
        ]
        self.console.print(Text("\n").join(lines), soft_wrap=True)

    def command_output(self, finished: Finished) -> None:
        for line in shortened(finished.text).splitlines():
            self.console.print(Text.assemble(("    │ ", "dim"), _colored(line)), soft_wrap=True)

    def step_result(self, result: Result) -> None:
        if result.is_expected:
            self.console.print(Text.assemble(("  ✓ ", "bold green"), result.step.outcome), highlight=False)
        else:
            self.console.print(
                Text(f"  ✗ expected: {result.step.expected}\n    observed: {result.observed}", "bold red")
            )
        self.console.print()

    def summary(self, results: Sequence[Result]) -> None:
        """Print a table of all steps with expected and observed results."""
        table = Table(title="Results", title_justify="left", header_style="bold", box=box.SIMPLE_HEAD)
        table.add_column("step")
        table.add_column("expected", overflow="fold")
        table.add_column("observed")
        table.add_column("s", justify="right")
        for number, result in enumerate(results, 1):
            mark = (
                Text("✓ as expected", "green")
                if result.is_expected
                else Text(f"✗ {result.observed}", "bold red")
            )
            table.add_row(
                f"{number}. {result.step.title}", str(result.step.expected), mark, f"{result.seconds:.0f}"
            )
        self.console.print(table)
        failed = sum(not result.is_expected for result in results)
        verdict = (
            f"{failed} of {len(results)} steps did not go as expected"
            if failed
            else f"All {len(results)} steps went as expected"
        )
        total = sum(result.seconds for result in results)
        self.console.print(Text(f"{verdict}, in {total:.0f} s.", "bold red" if failed else "bold green"))


def shortened(text: str) -> str:
    """Return the relevant lines of a command's output: Headwater's texts and Pulumi's summary."""
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
    colored.highlight_regex(rf"^ *({ACTIONS})\b", "cyan")
    return colored
