"""What the command lines of agent and runtime share: options, connection, log, problems, exit codes."""

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import attrs
import click

from infra.model.problems import ProblemsError
from infra.observe import Connection
from infra.observe.command_line import cluster_options
from spark_jobs.control import Access, access_of
from spark_jobs.control.logs import LEVELS, LogFormat, configure_log
from spark_jobs.control.redaction import redacted_texts

F = TypeVar("F", bound=Callable[..., Any])

_FAILED = 1
_INTERRUPTED = 130
_FORMATS: Sequence[LogFormat] = ("console", "json")


@attrs.frozen(kw_only=True)
class JobOptions:
    """What agent and runtime have in common. `http` is the address of the endpoint, None: there is none."""

    connection: Connection
    http: str | None = None
    log_format: LogFormat = "console"
    log_level: str = "info"

    def configure_log(self) -> None:
        """Set up the log of the process, with every secret of the job redacted."""
        secrets = redacted_texts(self.connection.secrets, os.environ)
        configure_log(self.log_format, self.log_level, secrets)

    def access(self) -> Access | None:
        """Return the address of the endpoint and its token; raises `ProblemsError` (InvalidConfig)."""
        return None if self.http is None else access_of(self.http, os.environ)


def job_options(*, cluster: str, http: str, log_format: LogFormat) -> Callable[[F], F]:
    """Return a decorator that adds the options of `JobOptions`.

    Args:
        cluster: the help of `--bootstrap-server`.
        http: the help of `--http`.
        log_format: the default of `--log-format`.
    """
    return all_of(
        cluster_options(cluster),
        click.option("--http", metavar="HOST:PORT", help=http),
        click.option(
            "--log-format",
            type=click.Choice(_FORMATS),
            default=log_format,
            show_default=True,
            help="Log lines for people or as JSON.",
        ),
        click.option(
            "--log-level",
            type=click.Choice(LEVELS),
            default="info",
            show_default=True,
            help="The lowest level that is logged.",
        ),
    )


def all_of(*decorators: Callable[[F], F]) -> Callable[[F], F]:
    """Return a decorator that adds options in the given order."""

    def add(command: F) -> F:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return add


def run_program(command: click.Command, arguments: Sequence[str] | None = None) -> int:
    """Run a job as a program of its own and return the exit code.

    Problems go to standard error. Exit code 0: stopped, or done; 1: problems; 2: wrong command line; 130:
    interrupted before the job installed its signal handlers.
    """
    name = Path(sys.argv[0]).name if arguments is None else command.name
    try:
        code = command.main(arguments, prog_name=name, standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        click.echo("Interrupted.", err=True)
        return _INTERRUPTED
    except ProblemsError as error:
        from infra.report.problem_output import print_problems  # noqa: PLC0415 - only when something is wrong

        print_problems(error.problems)
        return _FAILED
    return code if isinstance(code, int) else 0
