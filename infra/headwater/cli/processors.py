"""`headwater processors`: the processors of applications with state; `expand` adds some."""

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import attrs
import click

from headwater.cli.agent import parse_endpoints
from headwater.cli.console import ExitCode, print_line, repeat_every
from headwater.cli.lazy import Lazy, LazyGroup
from headwater.cli.threads import report_error
from headwater.control.access import control_token
from headwater.control.client import NotAnsweredError, send_request
from headwater.model.problems import Severity
from headwater.planner.phrases import count_phrase, counted, seconds_phrase
from headwater.report.markdown import printable
from headwater.report.runtime_table import problem_line

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


_HELP = """Show the processors of applications with state, add and remove some.

A processor owns the state of some keys (`application.processors`).

\b
Examples:
  headwater processors status topologies/ --bootstrap-server localhost:9092
  headwater processors expand runtime-1:9878 --to 8
  headwater processors move --offline orders.yaml --bootstrap-server localhost:9092
"""

processors = LazyGroup(
    "processors",
    lazy={
        "status": Lazy(
            "headwater_spark.commands.processors", "status", "Show how many processors the state has."
        ),
        "expand": Lazy("headwater.cli.processors", "expand", "Add processors to a running application."),
        "move": Lazy(
            "headwater_spark.commands.processors",
            "move",
            "Move state to the declared number of processors.",
        ),
    },
    help=_HELP,
)
_LINE_SECONDS = 5.0


@contextmanager
def expansion_progress(application: str) -> Iterator["_Bar | _Lines"]:
    """Show the progress inside the block."""
    from rich.console import Console  # noqa: PLC0415 - only to wait

    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        yield _Lines(printable(application))
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415 - only to wait

    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[remaining]}"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    ) as shown:
        yield _Bar(printable(application), shown)


@attrs.define
class _Phase:
    """The present phase: what it has read, of the most records that remained in it."""

    name: str = ""
    remaining: int = 0
    total: int = 0
    _began: float = 0.0

    def update(self, status: Mapping[str, Any]) -> bool:
        """Take over a status; return whether a new phase has begun."""
        is_new = bool(status["phase"] != self.name)
        if is_new:
            self.name, self.total, self._began = status["phase"], 0, time.monotonic()
        self.remaining = status["remaining"]
        self.total = max(self.total, self.remaining)
        return is_new

    @property
    def done(self) -> int:
        return self.total - self.remaining

    def seconds_left(self) -> float | None:
        """Return about how long the rest takes; None if it is not known yet."""
        if not self.done or not self.remaining:
            return None
        return (time.monotonic() - self._began) / self.done * self.remaining


@attrs.define
class _Bar:
    """A bar for each phase."""

    _application: str
    _progress: "Progress"
    _task: "TaskID | None" = None
    _phase: _Phase = attrs.field(factory=_Phase)

    def show(self, status: Mapping[str, Any]) -> None:
        phase = self._phase
        if phase.update(status) or self._task is None:
            if self._task is not None:
                self._progress.remove_task(self._task)
            what = f"{self._application}: {printable(phase.name)}"
            self._task = self._progress.add_task(what, remaining="")
        self._progress.update(
            self._task,
            completed=phase.done,
            total=phase.total or None,
            remaining=_remaining_text(phase),
            refresh=True,
        )

    def write_line(self, line: str) -> None:
        self._progress.console.print(line, soft_wrap=True, markup=False)


@attrs.define
class _Lines:
    """A line for each new phase, then one every few seconds."""

    _application: str
    _phase: _Phase = attrs.field(factory=_Phase)
    _printed: float = 0.0

    def show(self, status: Mapping[str, Any]) -> None:
        phase, now = self._phase, time.monotonic()
        if phase.update(status) or now - self._printed >= _LINE_SECONDS:
            self._printed = now
            left = phase.seconds_left()
            duration = "" if left is None else f", about {seconds_phrase(left)}"
            print_line(
                f"{self._application}: {printable(phase.name)}: {_remaining_text(phase)}{duration}", err=True
            )

    def write_line(self, line: str) -> None:
        print_line(line, err=True)


def _remaining_text(phase: _Phase) -> str:
    return f"{count_phrase(phase.remaining)} records remaining"


_PATH = "/control/processors"
_FIELDS = ("application", "state", "processors", "target", "problems")
_AGAIN_HINT = (
    "  Start the application again, or wait for its restart, then run this command again. An expansion that "
    "has begun to copy continues by itself."
)
_REQUEST_SECONDS = 30.0
_POLL_SECONDS = 1.0
_UNANSWERED_SECONDS = 120.0
_ENDED = ("PENDING_SHUTDOWN", "NOT_RUNNING", "PENDING_ERROR", "ERROR")
_STARTED = ("RUNNING", "REBALANCING")


@click.command()
@click.argument("url", required=False, metavar="[URL]")
@click.option(
    "--to",
    "target",
    type=click.IntRange(min=1),
    required=True,
    metavar="N",
    help="The number of processors: more than at present, at most the partitions of each input.",
)
@click.option("--no-wait", is_flag=True, help="Return when the application has accepted the request.")
@click.pass_context
def expand(context: click.Context, url: str | None, *, target: int, no_wait: bool) -> None:
    """Add processors to a running application.

    The application copies the state of the keys that move while it runs; then its sub-topologies with state
    process no batch for a short time. Shows the progress on standard error, and waits until the application
    has the processors; Ctrl-C ends the command only. Afterwards declare the number, and run `pulumi up`. Exit
    code 1: the request is refused, or the application has ended. The token of HEADWATER_CONTROL_TOKEN is
    sent.

    URL is the address of the application's endpoint (--http), as a URL, HOST or HOST:PORT; the default is the
    endpoint on this machine.

    \b
    Examples:
      headwater processors expand --to 8
      headwater processors expand runtime-1:9878 --to 8 --no-wait
    """
    (address,) = parse_endpoints(context, context.command.params[0], (url,) if url else ())
    token = control_token(os.environ)
    try:
        found = send_request(
            address,
            _PATH,
            {"processors": target},
            token=token,
            timeout_seconds=_REQUEST_SECONDS,
            fields=_FIELDS,
        )
    except NotAnsweredError as error:
        context.exit(_report_refusal(address, error))
    if no_wait and not _is_reached(found, target):
        print_line(
            f"{found['application']} is being expanded from {found['processors']} to {target} processors. "
            "`headwater status` shows the progress."
        )
        context.exit(ExitCode.DONE)
    waiting = _Waiting(address, found["application"], target)
    try:
        outcome = waiting.outcome(found)
    except KeyboardInterrupt:
        outcome = _Outcome(
            ExitCode.INTERRUPTED, f"Interrupted. The expansion of {found['application']} continues."
        )
    print_line(outcome.text, err=outcome.code is not ExitCode.DONE)
    _print_problems(outcome.problems)
    context.exit(outcome.code)


@attrs.frozen
class _Outcome:
    """How the command ends."""

    code: ExitCode
    text: str
    problems: tuple[Mapping[str, Any], ...] = ()


@attrs.define
class _Waiting:
    """Waits until an application has `target` processors."""

    _address: str
    _application: str
    _target: int
    _answered_at: float = attrs.field(factory=time.monotonic, init=False)
    _noted: frozenset[str] = attrs.field(default=frozenset(), init=False)

    def outcome(self, found: Mapping[str, Any]) -> _Outcome:
        """Read the status until the expansion has ended; `found` is the first one."""
        with expansion_progress(self._application) as progress:
            for _ in repeat_every(_POLL_SECONDS):
                if (outcome := self._outcome_of(found)) is not None:
                    return outcome
                self._show(found, progress)
                try:
                    found = send_request(self._address, _PATH, fields=_FIELDS)
                except NotAnsweredError as error:
                    if time.monotonic() - self._answered_at >= _UNANSWERED_SECONDS:
                        return self._failed_outcome(f"{self._address}: {error}\n{_AGAIN_HINT}")
                    self._print_new_lines(
                        [f"{self._address}: {str(error).rstrip('.')}. Waiting until it answers."], progress
                    )
                else:
                    self._answered_at = time.monotonic()
        raise AssertionError("`repeat_every` ends with an exception only")

    def _show(self, found: Mapping[str, Any], progress: _Bar | _Lines) -> None:
        if found["target"] is not None:
            progress.show(found)
        lines = [f"{problem_line(found, problem)} {problem['fix']}" for problem in found["problems"]]
        self._print_new_lines([printable(f"{self._application}: {line}") for line in lines], progress)

    def _print_new_lines(self, lines: Iterable[str], progress: _Bar | _Lines) -> None:
        """Print the lines that were not current at the poll before."""
        current = frozenset(lines)
        for line in sorted(current - self._noted):
            progress.write_line(line)
        self._noted = current

    def _outcome_of(self, found: Mapping[str, Any]) -> _Outcome | None:
        """Return how the command ends with this status; None: the expansion continues."""
        state, target = found["state"], found["target"]
        if _is_reached(found, self._target):
            return _Outcome(ExitCode.DONE, _reached_text(self._application, self._target))
        if state in _ENDED:
            return self._failed_outcome(f"{self._application} has ended: it is {state}.\n{_AGAIN_HINT}")
        if state not in _STARTED or target == self._target:
            return None
        if target is not None:
            return self._failed_outcome(f"{self._application} is being expanded to {target} processors.")
        if found["problems"]:
            refused = f"{self._application} was not expanded. Nothing has changed."
            return _Outcome(ExitCode.PROBLEMS, refused, tuple(found["problems"]))
        return self._failed_outcome(
            f"{self._application} has {counted(found['processors'], 'processor')}, and no expansion runs.\n  "
            "If it was restarted before anything changed, run this command again."
        )

    def _failed_outcome(self, text: str) -> _Outcome:
        return _Outcome(ExitCode.PROBLEMS, text)


def _is_reached(found: Mapping[str, Any], target: int) -> bool:
    return (found["state"] in _STARTED, found["processors"], found["target"]) == (True, target, None)


def _reached_text(application: str, processors: int) -> str:
    return (
        f"{application} has {counted(processors, 'processor')}. Declare `processors: {processors}` in its "
        "document, and run `pulumi up`."
    )


def _report_refusal(address: str, error: NotAnsweredError) -> ExitCode:
    """Print that a client did not answer or refused the request; return the exit code."""
    problems = error.answer.get("problems")
    if not problems:
        return report_error(address, error)
    _print_problems(problems)
    return ExitCode.PROBLEMS


def _print_problems(problems: Iterable[Mapping[str, Any]]) -> None:
    """Print problems of an answer like problems of other commands."""
    from headwater.report.problems import entry_rich, output_console  # noqa: PLC0415 - only for problems

    console = output_console(stderr=True)
    labels = ("topic", "node", "expected", "found", "why", "fix")
    for problem in problems:
        details = [(label, problem[label]) for label in labels if problem.get(label)]
        console.print(entry_rich(Severity(problem["severity"]), problem["code"], problem["summary"], details))
