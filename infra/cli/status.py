"""`headwater status`: what a running application tells of itself."""

import sys
import time
from collections.abc import Mapping
from typing import Any

import click

from infra.cli.agent_status import endpoints
from infra.cli.console import print_json
from infra.cli.exit_codes import ExitCode
from spark_jobs.control.client import NotAnsweredError, ask

_WHERE = "  Name the address that `headwater run --http HOST:PORT` serves, once Spark has started there."


@click.command()
@click.argument("url", required=False, metavar="[URL]")
@click.option("--watch", is_flag=True, help="Go on showing what changes, until interrupted.")
@click.option(
    "--interval", type=click.FloatRange(min=0.1), default=1.0, show_default=True, help="Seconds, for --watch."
)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.pass_context
def status(context: click.Context, url: str | None, *, watch: bool, interval: float, form: str) -> None:
    """Show what a running application tells of itself.

    Throughput, lag, size of state and parallelism of each sub-topology.

    URL is where `headwater run` was told to serve (--http), or HOST:PORT; without one this machine is asked.
    Exit code 1: it does not answer, or is not ready.

    \b
    Examples:
      headwater status
      headwater status runtime-1:9878 --watch
    """
    if watch and form == "json":
        raise click.UsageError("--watch shows a table: leave --format json away.")
    (address,) = endpoints(context, context.command.params[0], (url,) if url else ())
    try:
        told = _asked(address)
        if watch:
            _watch(address, interval)
    except NotAnsweredError as error:
        click.echo(f"{address}: {error}\n{_WHERE}", err=True)
        context.exit(ExitCode.PROBLEMS)
    if form == "json":
        print_json(told)
    else:
        _print(told)
    context.exit(ExitCode.DONE if told["ready"]["ok"] else ExitCode.PROBLEMS)


def _asked(address: str) -> Mapping[str, Any]:
    told = ask(address, "/status")
    if "runtime" not in told:
        raise click.ClickException(f"{address} is no application that `headwater run` runs.")
    return told


def _print(told: Mapping[str, Any]) -> None:
    from rich.console import Console  # noqa: PLC0415 - only for the table

    from infra.report.runtime_table import runtime_rich  # noqa: PLC0415 - likewise

    width = None if sys.stdout.isatty() else 120
    Console(highlight=False, width=width).print(runtime_rich(told["runtime"]))


def _watch(address: str, interval: float) -> None:
    """Show again and again; ends by Ctrl-C."""
    from rich.console import Console  # noqa: PLC0415 - only for the table
    from rich.live import Live  # noqa: PLC0415 - likewise

    from infra.report.runtime_table import runtime_rich  # noqa: PLC0415 - likewise

    with Live(console=Console(highlight=False), auto_refresh=False, screen=sys.stdout.isatty()) as shown:
        while True:
            shown.update(runtime_rich(_asked(address)["runtime"]), refresh=True)
            time.sleep(interval)
