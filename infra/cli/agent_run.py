"""`headwater agent run`: watch source topics, expand internal topics."""

import os
from collections.abc import Sequence
from pathlib import Path

import click

from infra.cli import cluster
from infra.cli.console import ProblemsExit
from infra.cli.exit_codes import ExitCode
from infra.model.problems import ProblemsError
from infra.observe import Connection
from spark_jobs.agent.start import AgentOptions, default_client_id, start

_MILLISECONDS = click.IntRange(min=1)
_FORMATS = ("console", "json")
_LEVELS = ("debug", "info", "warning", "error")


@click.command()
@click.argument("files", nargs=-1, type=click.Path(path_type=Path), metavar="[FILES]...")
@click.option(
    "--manifest",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Work from this manifest instead of FILES (see `headwater agent manifest`).",
)
@click.option("--bootstrap-server", metavar="HOST:PORT,...", help="The cluster whose topics are expanded.")
@click.option(
    "--command-config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A client.properties file with security settings, as Kafka's own tools read it.",
)
@click.option("--client-id", metavar="ID", help="This agent's name in metrics and history; else by the host.")
@click.option(
    "--group", default="default", show_default=True, help="Agents of one group share their work: one leads."
)
@click.option(
    "--metadata-max-age-ms",
    type=_MILLISECONDS,
    help="How often to look at the cluster; else the least metadata.max.age.ms of the applications.",
)
@click.option(
    "--follow-up-ms",
    type=_MILLISECONDS,
    default=10_000,
    show_default=True,
    help="From the last success to the final look, and the callback.",
)
@click.option(
    "--request-timeout-ms", type=_MILLISECONDS, default=10_000, show_default=True, help="Of admin requests."
)
@click.option(
    "--session-timeout-ms",
    type=_MILLISECONDS,
    default=10_000,
    show_default=True,
    help="After how long another agent takes over from one that is gone.",
)
@click.option(
    "--callback",
    metavar="MODULE:CLASS",
    help="Whose on_partition_expansion(old, new) to call; else the applications' static.partitioner.class.",
)
@click.option("--http", metavar="HOST:PORT", help="Serve metrics, health, status and control here.")
@click.option("--log-format", type=click.Choice(_FORMATS), default="console", show_default=True)
@click.option("--log-level", type=click.Choice(_LEVELS), default="info", show_default=True)
@click.option("--once", is_flag=True, help="Bring everything up to date, then end.")
@click.pass_context
def run(
    context: click.Context,
    files: Sequence[Path],
    *,
    manifest: Path | None,
    bootstrap_server: str | None,
    command_config: Path | None,
    client_id: str | None,
    group: str,
    metadata_max_age_ms: int | None,
    follow_up_ms: int,
    request_timeout_ms: int,
    session_timeout_ms: int,
    callback: str | None,
    http: str | None,
    log_format: str,
    log_level: str,
    once: bool,
) -> None:
    """Expand internal topics when source topics grow, as KIP-878 promises, until stopped.

    FILES are topology documents; they are read again when they change. SIGHUP has the agent look at the
    cluster at once. Exit code 0: stopped, or with --once all topics have their partitions; 1: they have not,
    or something is wrong with documents or settings.

    \b
    Examples:
      headwater agent run topologies/ --bootstrap-server localhost:9092 --http 127.0.0.1:9878
      headwater agent run --manifest manifest.json --command-config client.properties --once
    """
    if bool(files) == (manifest is not None):
        raise click.UsageError("Name FILES, or one manifest by --manifest.")
    try:
        connection = cluster.connection(bootstrap_server, command_config) or Connection.from_environment(
            os.environ
        )
        is_well = start(
            AgentOptions(
                files=files,
                manifest=manifest,
                connection=connection,
                client_id=client_id or default_client_id(),
                group=group,
                metadata_max_age_ms=metadata_max_age_ms,
                settle_ms=follow_up_ms,
                request_timeout_ms=request_timeout_ms,
                session_timeout_ms=session_timeout_ms,
                callback=callback,
                http=http,
                log_format="json" if log_format == "json" else "console",
                log_level=log_level,
                once=once,
            )
        )
    except ProblemsError as error:
        raise ProblemsExit(error) from None
    context.exit(ExitCode.DONE if is_well else ExitCode.PROBLEMS)
