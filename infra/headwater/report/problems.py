"""Problems as text, in colors on a terminal, and as annotations of a review on GitHub and GitLab."""

import hashlib
import os
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from posixpath import normpath
from typing import TYPE_CHECKING, Any, Protocol

from rich.text import Text

from headwater.model.problems import Problem, Severity
from headwater.planner.phrases import counted
from headwater.report.markdown import code_block, printable, without_command

if TYPE_CHECKING:
    from rich.console import Console

WIDTH = 100
_LABEL_WIDTH = 10
SEVERITY_NOUNS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "hint"}
SIGNS = {Severity.ERROR: "🔴", Severity.WARNING: "🟠", Severity.INFO: "🔵"}
_COLORS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}


def problem_text(problem: Problem) -> str:
    """Return one problem as plain lines of at most 100 characters; longer words are not broken."""
    return _problem_rich(problem).plain


def problem_blocks(problems: Sequence[Problem], rows: int | None) -> Iterator[str]:
    """Yield a code block of Markdown for each of the first `rows` problems, and how many there are more."""
    yield from (code_block(problem_text(problem)) for problem in problems[:rows])
    if more := len(problems) - len(problems[:rows]):
        yield f"… and {more:,} more\n"


def _problem_rich(problem: Problem, width: int = WIDTH) -> Text:
    """Return the lines of `problem_text` with colors for a terminal."""
    return entry_rich(problem.severity, problem.code, problem.summary, _details_of(problem), width)


def entry_rich(
    severity: Severity, code: str, summary: str, details: Iterable[tuple[str, str]], width: int = WIDTH
) -> Text:
    """Return a headline and, below it, `details`: pairs of label and text."""
    label = f"{severity.value}[{code}]"
    first, *rest = _wrap_text(f"{label} {summary}", width, "  ")
    lines = [Text.assemble((label, f"bold {_COLORS[severity]}"), (first[len(label) :], "bold"))]
    lines += [Text(line, "bold") for line in rest]
    for name, value in details:
        indent = " " * (2 + _LABEL_WIDTH)
        head, *tail = _wrap_text(value, width - len(indent), "")
        lines.append(Text.assemble("  ", (name.ljust(_LABEL_WIDTH), "dim"), head))
        lines += [Text(indent + line) for line in tail]
    return Text("\n").join(lines)


def problems_text(problems: Iterable[Problem]) -> str:
    """Return all problems and their number: first those without an application, then by application."""
    return problems_rich(problems).plain


def problems_rich(problems: Iterable[Problem], width: int = WIDTH, most: int | None = None) -> Text:
    """Return the lines of `problems_text` with colors for a terminal; of more than `most`, errors first."""
    found = tuple(problems)
    shown = found if most is None or len(found) <= most else sorted(found, key=_rank_of)[:most]
    ordered = sorted(shown, key=lambda problem: problem.application or "")
    parts: list[Text] = []
    for application, group in groupby(ordered, key=lambda problem: problem.application or ""):
        if application:
            parts.append(Text(printable(application), "bold underline"))
        parts += [_problem_rich(problem, width) for problem in group]
    omitted = f"; {len(found) - len(ordered):,} of them are not shown" if len(ordered) < len(found) else ""
    return Text("\n\n").join([*parts, Text((severity_counts(found) or "no problems") + omitted)])


class _WithSeverity(Protocol):
    @property
    def severity(self) -> Severity: ...


def severity_counts(entries: Iterable[_WithSeverity]) -> str:
    """Return the number of entries of each severity: `1 error, 2 warnings`; empty without entries."""
    counts = Counter(entry.severity for entry in entries)
    return ", ".join(
        counted(counts[severity], noun) for severity, noun in SEVERITY_NOUNS.items() if counts[severity]
    )


def _rank_of(problem: Problem) -> int:
    return tuple(Severity).index(problem.severity)


def _details_of(problem: Problem) -> Iterator[tuple[str, str]]:
    """Yield label and text of each detail; a topic or node that the headline names is not repeated."""
    if problem.location is not None:
        pointer = f" ({problem.location.pointer})" if problem.location.pointer else ""
        yield "at", f"{problem.location}{pointer}"
    for label, value in (("topic", problem.topic), ("node", problem.node)):
        if value and value not in problem.summary:
            yield label, value
    for label, value in (
        ("expected", problem.expected),
        ("found", problem.found),
        ("why", problem.why),
        ("fix", problem.fix),
    ):
        if value:
            yield label, value


def _wrap_text(text: str, width: int, indent: str) -> list[str]:
    """Wrap without breaking names and commands, so that users can search for them and copy them."""
    lines = textwrap.wrap(
        printable(text),
        width,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [without_command(line) for line in lines] or [""]


def output_console(*, stderr: bool = False, width: int | None = None, soft_wrap: bool = True) -> "Console":
    """Return a console for results or problems; if its reader is gone, what it prints is discarded.

    Rich would end the process with exit code 1, whatever the command has found, and close standard output.
    """
    from rich.console import Console  # noqa: PLC0415 - slow, only for text

    class OutputConsole(Console):
        def on_broken_pipe(self) -> None:
            self.quiet = True
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.file.fileno())

    return OutputConsole(stderr=stderr, width=width, highlight=False, soft_wrap=soft_wrap)


_MOST_PRINTED = 500
"""Problems that are printed. More are of little use, and take a minute if a text has 20,000 of them."""
_NARROWEST = 40
"""Columns; a narrower terminal breaks the lines itself."""


def print_problems(problems: Iterable[Problem], *, after_result: bool = False) -> None:
    """Print all problems to standard error, in colors on a terminal; `after_result`: below an empty line."""
    found = tuple(problems)
    if found:
        console = output_console(stderr=True)
        width = max(console.width, _NARROWEST) if console.is_terminal else WIDTH
        if after_result:
            console.print()
        console.print(problems_rich(found, min(width, WIDTH), _MOST_PRINTED))


_GITHUB = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}
_MOST_ANNOTATIONS = 10
"""The number of errors, of warnings and of notices of a step that GitHub annotates."""
_GITLAB = {Severity.ERROR: "critical", Severity.WARNING: "minor", Severity.INFO: "info"}


def github_annotations(problems: Iterable[Problem]) -> str:
    """Return a line for each problem, which GitHub Actions shows at its location in the pull request.

    GitHub shows only the first ones of each kind, so a last line says that the log has more of them.
    Source: GitHub's documentation of workflow commands (`::error file=…,line=…::message`).
    """
    found = tuple(problems)
    text = "".join(f"{_github_annotation(problem)}\n" for problem in found)
    if max(Counter(problem.severity for problem in found).values(), default=0) <= _MOST_ANNOTATIONS:
        return text
    return (
        f"{text}{severity_counts(found)}. GitHub annotates at most {_MOST_ANNOTATIONS} of each kind: "
        "this log lists all.\n"
    )


def code_quality(problems: Iterable[Problem], default_path: str) -> list[dict[str, Any]]:
    """Return GitLab's Code Quality report. A problem without a location is at line 1 of `default_path`.

    GitLab requires a path, relative to the repository and without `./`, and shows one of several problems
    with the same fingerprint.
    Source: GitLab's documentation of the report format (a subset of CodeClimate's).
    """
    seen: Counter[str] = Counter()
    entries = []
    for problem in problems:
        text = _identity_of(problem)
        seen[text] += 1
        counter = f"\0{seen[text] - 1}" if seen[text] > 1 else ""
        entries.append(
            {
                "check_name": problem.code.value,
                "description": _annotation_text(problem),
                "severity": _GITLAB[problem.severity],
                "fingerprint": hashlib.sha256(f"{text}{counter}".encode()).hexdigest(),
                "location": {
                    "path": normpath(_path_of(problem) or default_path),
                    "lines": {"begin": _line_of(problem)},
                },
            }
        )
    return entries


def _github_annotation(problem: Problem) -> str:
    properties = {"title": problem.code.value}
    if problem.location is not None:
        properties["file"] = problem.location.file
        if problem.location.line:
            properties |= {"line": str(problem.location.line), "col": str(problem.location.column)}
    listed = ",".join(f"{name}={_escape_property(value)}" for name, value in properties.items())
    return f"::{_GITHUB[problem.severity]} {listed}::{_escape_data(_annotation_text(problem))}"


def _annotation_text(problem: Problem) -> str:
    parts = [problem.summary]
    if problem.expected or problem.found:
        parts.append(f"Expected: {problem.expected or '-'}. Found: {problem.found or '-'}.")
    text = " ".join((*parts, problem.why, problem.fix)).strip()
    return "\n".join(map(printable, text.split("\n")))


def _path_of(problem: Problem) -> str:
    return problem.location.file if problem.location is not None else ""


def _line_of(problem: Problem) -> int:
    return problem.location.line if problem.location is not None and problem.location.line else 1


def _identity_of(problem: Problem) -> str:
    """Return a text that stays the same when lines above the problem change."""
    pointer = problem.location.pointer if problem.location is not None else ""
    return "\0".join((problem.code, _path_of(problem), pointer, problem.application or "", problem.summary))


def _escape_data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_property(text: str) -> str:
    return _escape_data(text).replace(":", "%3A").replace(",", "%2C")
