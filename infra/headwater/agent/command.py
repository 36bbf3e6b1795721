"""The command line of the agent: for `headwater agent run` and for `spark-submit` alike."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from headwater.agent.start import AgentOptions, default_client_id, start
from headwater.command_line import all_of, job_options
from headwater.control.logs import LogFormat
from headwater.kafka.command_line import connection

F = TypeVar("F", bound=Callable[..., Any])

_MILLISECONDS = click.IntRange(min=1)


def agent_options(log_format: LogFormat) -> Callable[[F], F]:
    """Return a decorator that adds the arguments and options that `run_agent` takes."""
    return all_of(
        click.argument("files", nargs=-1, type=click.Path(path_type=Path), metavar="[FILES]..."),
        click.option(
            "--manifest",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="Read this manifest instead of FILES (see `headwater agent manifest`).",
        ),
        click.option(
            "--client-id", metavar="ID", help="Name of this agent in metrics and history; default: by host."
        ),
        click.option(
            "--group",
            default="default",
            show_default=True,
            help="Agents of one group share their work: one of them leads.",
        ),
        click.option(
            "--metadata-max-age-ms",
            type=_MILLISECONDS,
            help="Interval between two reads of the cluster; default: the least metadata.max.age.ms of the "
            "applications.",
        ),
        click.option(
            "--follow-up-ms",
            type=_MILLISECONDS,
            default=10_000,
            show_default=True,
            help="Time from the last success to the final read of the cluster, and the callback.",
        ),
        click.option(
            "--request-timeout-ms",
            type=_MILLISECONDS,
            default=10_000,
            show_default=True,
            help="Timeout of admin requests.",
        ),
        click.option(
            "--session-timeout-ms",
            type=_MILLISECONDS,
            default=10_000,
            show_default=True,
            help="Time without heartbeats after which another agent leads.",
        ),
        click.option(
            "--callback",
            metavar="MODULE:CLASS",
            help="Class whose on_partition_expansion(old, new) is called; default: the "
            "static.partitioner.class of each application.",
        ),
        click.option("--once", is_flag=True, help="Expand what is necessary, then stop."),
        job_options(
            cluster="The cluster whose topics are expanded.",
            http="Serve metrics, health, status and control at this address.",
            log_format=log_format,
        ),
    )


def run_agent(options: Mapping[str, Any]) -> int:
    """Run an agent until it is stopped and return the exit code: 0, or 1 if topics are not expanded.

    `options` are the values of `agent_options` by name. Raises `ProblemsError` and `click.UsageError`.
    """
    if bool(options["files"]) == (options["manifest"] is not None):
        raise click.UsageError("Name FILES, or one manifest by --manifest.")
    succeeded = start(
        AgentOptions(
            files=options["files"],
            manifest=options["manifest"],
            connection=connection(options["bootstrap_server"], options["command_config"]),
            client_id=options["client_id"] or default_client_id(),
            group=options["group"],
            metadata_max_age_ms=options["metadata_max_age_ms"],
            settle_ms=options["follow_up_ms"],
            request_timeout_ms=options["request_timeout_ms"],
            session_timeout_ms=options["session_timeout_ms"],
            callback=options["callback"],
            http=options["http"],
            log_format=options["log_format"],
            log_level=options["log_level"],
            stop_timeout_ms=options["stop_timeout_ms"],
            once=options["once"],
            policy_files=options["policy_files"],
        )
    )
    return 0 if succeeded else 1
