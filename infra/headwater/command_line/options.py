"""The options that agent and runtime share."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import attrs
import click

from headwater.control import Access, access_of
from headwater.control.logs import LEVELS, LogFormat, configure_log, redacted_texts
from headwater.kafka import Connection
from headwater.kafka.command_line import cluster_options

F = TypeVar("F", bound=Callable[..., Any])

STOP_TIMEOUT_MS = 25_000
"""Less than Kubernetes' default `terminationGracePeriodSeconds` of 30 s: time is left for an error text."""
_FORMATS: Sequence[LogFormat] = ("console", "json")


@attrs.frozen(kw_only=True)
class JobOptions:
    """What agent and runtime have in common. `http` is the address of the endpoint, None: there is none."""

    connection: Connection
    http: str | None = None
    log_format: LogFormat = "console"
    log_level: str = "info"
    stop_timeout_ms: int = STOP_TIMEOUT_MS
    policy_files: tuple[Path, ...] = ()

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
        click.option(
            "--policies",
            "policy_files",
            multiple=True,
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="Add no partitions, and create no topics, that the policies of this file forbid. May be "
            "repeated.",
        ),
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
        click.option(
            "--stop-timeout-ms",
            type=click.IntRange(min=1),
            default=STOP_TIMEOUT_MS,
            show_default=True,
            help="The process ends this long after SIGTERM or Ctrl-C, also when it hangs.",
        ),
    )


def all_of(*decorators: Callable[[F], F]) -> Callable[[F], F]:
    """Return a decorator that adds options in the given order."""

    def add(command: F) -> F:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return add
