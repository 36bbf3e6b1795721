"""`headwater agent status`: what running agents tell, as one table."""

import io
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import click
from rich.console import Console
from rich.live import Live

from infra.cli.console import print_json
from infra.cli.exit_codes import ExitCode
from infra.report.agents import Client, agents_json, agents_rich
from spark_jobs.control.access import DEFAULT_ADDRESS
from spark_jobs.control.client import NotAnsweredError, ask, full_url

_WIDTH = 120
_AT_ONCE = 16


def endpoints(_: click.Context, __: click.Parameter, values: Sequence[str]) -> tuple[str, ...]:
    """Check the addresses of an argument; without any it is the agent of this machine."""
    try:
        return tuple(full_url(value) for value in values or (DEFAULT_ADDRESS,))
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


@click.command()
@click.argument("urls", nargs=-1, metavar="[URL]...", callback=endpoints)
@click.option("--watch", is_flag=True, help="Go on showing what changes, until interrupted.")
@click.option(
    "--interval", type=click.FloatRange(min=0.1), default=2.0, show_default=True, help="Seconds, for --watch."
)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.pass_context
def status(context: click.Context, urls: Sequence[str], *, watch: bool, interval: float, form: str) -> None:
    """Show agents and applications as their endpoints tell.

    URL is where an agent was told to serve (--http), or HOST, or HOST:PORT; without one the agent on this
    machine is asked. The parallelism is the maximum over the agents. Exit code 1: one of them does not
    answer, or is not ready.

    \b
    Examples:
      headwater agent status
      headwater agent status http://agent-1:9878 http://agent-2:9878 --watch
      headwater agent status agent-1 agent-2 --format json
    """
    if watch:
        _watch(urls, interval, form)
    clients = _asked(urls)
    if form == "json":
        print_json(agents_json(clients))
    elif sys.stdout.isatty():
        Console(highlight=False).print(agents_rich(clients))
    else:
        click.echo(_text(clients), nl=False)
    context.exit(ExitCode.PROBLEMS if any(client.not_ready_reason for client in clients) else ExitCode.DONE)


def _watch(urls: Sequence[str], interval: float, form: str) -> None:
    """Show again and again; ends by Ctrl-C."""
    if form == "json":
        raise click.UsageError("--watch shows a table: leave --format json away.")
    with Live(
        agents_rich(_asked(urls)),
        console=Console(highlight=False),
        auto_refresh=False,
        screen=sys.stdout.isatty(),
    ) as live:
        while True:
            time.sleep(interval)
            live.update(agents_rich(_asked(urls)), refresh=True)


def _asked(urls: Sequence[str]) -> tuple[Client, ...]:
    """Ask all at once: one that does not answer keeps nobody waiting twice."""
    with ThreadPoolExecutor(min(len(urls), _AT_ONCE)) as threads:
        return tuple(threads.map(_one, urls))


def _one(url: str) -> Client:
    try:
        return Client(url, ask(url, "/status"))
    except NotAnsweredError as error:
        return Client(url, error=str(error))


def _text(clients: Sequence[Client]) -> str:
    text = io.StringIO()
    Console(file=text, width=_WIDTH, color_system=None, highlight=False, soft_wrap=True).print(
        agents_rich(clients)
    )
    return "".join(f"{line.rstrip()}\n" for line in text.getvalue().splitlines())
