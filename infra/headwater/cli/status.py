"""`headwater status`: the status of a running application."""

import sys
from collections.abc import Mapping
from typing import Any

import click

from headwater.cli.agent import parse_endpoints
from headwater.cli.console import ExitCode, print_json, print_line, repeat_every
from headwater.cli.options import Seconds, cluster_options
from headwater.control.client import NotAnsweredError, send_request
from headwater.kafka.command_line import NamedCluster

_HINT = "  Use the address of `headwater run --http HOST:PORT`. It answers before Spark has started, too."


@click.command()
@click.argument("url", required=False, metavar="[URL]")
@click.option("--watch", is_flag=True, help="Update the table until interrupted.")
@click.option(
    "--interval", type=Seconds(min=0.1), default=1.0, show_default=True, help="Seconds, for --watch."
)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option(
    "--group",
    metavar="ID",
    help="Show a streams group of the cluster (KIP-1071) instead: the application id of any Kafka Streams "
    "application.",
)
@cluster_options
@click.pass_context
def status(
    context: click.Context,
    url: str | None,
    *,
    watch: bool,
    interval: float,
    form: str,
    group: str | None,
    cluster: NamedCluster,
) -> None:
    """Show the status of a running application.

    The table has throughput, lag, size of state and parallelism of each sub-topology.

    URL is the address of the application's endpoint (--http), as a URL, HOST or HOST:PORT; the default is the
    endpoint on this machine. Exit code 1: the application does not answer, or is not ready.

    With --group, the cluster shows an application that Kafka Streams runs with the streams protocol: state,
    epochs, sub-topologies with their topics, members with their tasks, and whether the brokers have the nodes
    of its topology. Exit code 1: there is no such group, or it cannot be read.

    \b
    Examples:
      headwater status
      headwater status runtime-1:9878 --watch
      headwater status --group orders --bootstrap-server kafka:9092
    """
    if watch and form == "json":
        raise click.UsageError("--watch cannot be combined with --format json.")
    if group is not None:
        if url is not None or watch:
            raise click.UsageError(f"--group cannot be combined with {'URL' if url else '--watch'}.")
        from headwater.cli.streams_group import print_group  # noqa: PLC0415 - imports the Kafka client

        print_group(group, cluster, as_json=form == "json")
        return
    if cluster.is_named:
        raise click.UsageError("A cluster needs --group: the status of `headwater run` is read over HTTP.")
    (address,) = parse_endpoints(context, context.command.params[0], (url,) if url else ())
    try:
        found = _request_status(address)
        if watch:
            _watch_status(address, interval)
    except NotAnsweredError as error:
        print_line(f"{address}: {error}\n{_HINT}", err=True)
        context.exit(ExitCode.PROBLEMS)
    if form == "json":
        print_json(found)
    else:
        _print_status(found)
    context.exit(ExitCode.DONE if found["ready"]["ok"] else ExitCode.PROBLEMS)


def _request_status(address: str) -> Mapping[str, Any]:
    found = send_request(address, "/status")
    if not isinstance(found.get("runtime"), dict) or "ready" not in found:
        raise click.ClickException(
            f"{address} is not the endpoint of an application that `headwater run` runs."
        )
    return found


def _print_status(found: Mapping[str, Any]) -> None:
    from headwater.report.problems import output_console  # noqa: PLC0415 - only for the table
    from headwater.report.runtime_table import runtime_rich  # noqa: PLC0415 - only for the table

    width = None if sys.stdout.isatty() else 120
    output_console(width=width, soft_wrap=False).print(runtime_rich(found["runtime"]))


def _watch_status(address: str, interval: float) -> None:
    """Update the table until Ctrl-C."""
    from rich.console import Console  # noqa: PLC0415 - only for the table
    from rich.live import Live  # noqa: PLC0415 - only for the table

    from headwater.report.runtime_table import runtime_rich  # noqa: PLC0415 - only for the table

    with Live(console=Console(highlight=False), auto_refresh=False, screen=sys.stdout.isatty()) as shown:
        for _ in repeat_every(interval):
            shown.update(runtime_rich(_request_status(address)["runtime"]), refresh=True)
