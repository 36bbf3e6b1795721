"""`headwater demo`: run all steps on a real broker, and print what each step did."""

import re
import signal
import tempfile
import textwrap
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path

import attrs
import click
from rich import box
from rich.console import Console
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from headwater.cli.console import ExitCode
from headwater.cli.demo.environment import Environment, Jars, start_environment
from headwater.cli.demo.steps import ACTIONS, SOURCE_TOPICS, STEPS, Observation, Step
from headwater.kafka.command_line import NamedPath
from headwater.toolchain import (
    KafkaDistribution,
    PulumiToolchain,
    ensure_kafka,
    ensure_pulumi,
    ensure_spark_jars,
)
from headwater.toolchain.kafka import ensure_kafka_streams
from headwater.toolchain.pulumi_cli import Finished
from headwater.toolchain.streams_library import ensure_streams_library

_MOST_LINES = 26
_LOG_PREFIX = re.compile(r"^( +)(?:error|warning): (?=error\[|warning\[)")
_NOISE = re.compile(
    r"^(Previewing update|Updating|@ |Loading policy|Duration:|More information|"
    r" *(error: )?an unhandled error occurred|Diagnostics:| *pulumi:pulumi:Stack)"
)
_RESOURCE = re.compile(r"^ [ +~=-]{1,2} +\S+:\S+ ")

_WIDTH_OF_FILES = 120


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
        for line in shorten_output(finished.text).splitlines():
            self.console.print(Text.assemble(("    │ ", "dim"), _color_line(line)), soft_wrap=True)

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


def shorten_output(text: str) -> str:
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


def _color_line(line: str) -> Text:
    colored = Text(line)
    colored.highlight_regex(r"error\[\w+\]", "bold red")
    colored.highlight_regex(r"warning\[\w+\]", "bold yellow")
    colored.highlight_regex(rf"^ *({ACTIONS})\b", "cyan")
    return colored


@click.command()
@click.option(
    "--keep",
    type=NamedPath(file_okay=False, path_type=Path),
    help="Run in this new folder and keep it, for inspection.",
)
@click.pass_context
def demo(context: click.Context, keep: Path | None) -> None:
    """Demonstrate Headwater on a real Kafka broker.

    Starts its own broker, runs the real Pulumi engine on the three example documents, changes and deletes
    topics, runs one of the topologies on Spark, runs a Kafka Streams application with and without the
    library, shows the results, and stops everything. Takes one to three minutes; the first run on a machine
    also downloads or builds the tools.

    \b
    Examples:
      headwater demo
      headwater demo --keep /tmp/shop
    """
    console = Console(width=None if Console().is_terminal else _WIDTH_OF_FILES)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the folder is deleted, as after Ctrl-C
    try:
        kafka, pulumi = ensure_kafka(), ensure_pulumi()
        spark = tuple(map(str, ensure_spark_jars()))
        jars = Jars(spark, (ensure_streams_library(), ensure_kafka_streams() / "*"))
        if keep is not None:
            keep.mkdir(parents=True)
            is_expected = _run_demo(keep.absolute(), kafka, pulumi, jars, console)
        else:
            with tempfile.TemporaryDirectory(prefix="headwater-demo-") as folder:
                is_expected = _run_demo(Path(folder), kafka, pulumi, jars, console)
    except FileExistsError:
        raise click.UsageError(f"{keep} exists. Choose a folder that does not exist.") from None
    context.exit(ExitCode.DONE if is_expected else ExitCode.PROBLEMS)


def _run_demo(
    folder: Path,
    kafka: KafkaDistribution,
    pulumi: PulumiToolchain,
    jars: Jars,
    console: Console,
) -> bool:
    """Run all steps in `folder`; return whether all results are as expected. Always stops the broker."""
    output = Output(console)
    with ExitStack() as stack:
        environment = stack.enter_context(start_environment(folder, kafka, pulumi, jars, SOURCE_TOPICS))
        stack.enter_context(environment.member("loyalty", "purchases"))
        output.header(environment.broker.bootstrap_servers, sorted(environment.documents()))
        results = [_run_step(number, step, environment, output) for number, step in enumerate(STEPS, 1)]
    output.summary(results)
    return all(result.is_expected for result in results)


def _run_step(number: int, step: Step, environment: Environment, output: Output) -> Result:
    start = time.monotonic()
    output.step_header(number, step)
    for action in step.actions:
        output.command(action.command(environment))
        action.run(environment)
    before = environment.topics()
    output.command(step.command.command(environment))
    finished = step.command.run(environment)
    output.command_output(finished)
    observed = Observation.from_command(finished, before, environment.topics())
    if step.reads:
        observed = attrs.evolve(observed, results=environment.revenue(step.reads))
    result = Result(step, observed, time.monotonic() - start)
    output.step_result(result)
    return result
