"""Output of commands: results on standard output, everything else on standard error."""

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, Any

import click

from infra.cli.exit_codes import ExitCode
from infra.model.problems import Problem, ProblemsError, errors


def print_problems(problems: Iterable[Problem], *, after_result: bool = False) -> None:
    """Print all problems to standard error, in colors on a terminal; `after_result`: below an empty line."""
    if found := tuple(problems):
        from infra.report import problem_output  # noqa: PLC0415 - slow, and only needed for problems

        if after_result:
            click.echo(err=True)
        problem_output.print_problems(found)


def exit_for(problems: Iterable[Problem], code: ExitCode = ExitCode.PROBLEMS) -> int:
    """Return `code` if one of the problems is an error, otherwise 0."""
    return code if errors(problems) else ExitCode.DONE


def print_json(document: Mapping[str, Any]) -> None:
    click.echo(json_text(document), nl=False)


def json_text(document: Mapping[str, Any]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def write(text: str, output: Path | None) -> None:
    """Write exactly `text` to standard output or to a file.

    Raises:
        click.ClickException: The file cannot be written.
    """
    if output is None or str(output) == "-":
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode())
        return
    try:
        output.write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        raise click.ClickException(
            f"{output} cannot be written: {error.strerror}.\n  Choose another file by --output."
        ) from None


class ProblemsExit(click.ClickException):
    """Ends a command and prints problems."""

    exit_code = ExitCode.PROBLEMS

    def __init__(self, error: ProblemsError) -> None:
        super().__init__(str(error))
        self.problems = error.problems

    def show(self, file: IO[str] | None = None) -> None:
        del file
        print_problems(self.problems)
