"""`headwater agent status`: the status of running agents in one table."""

import io
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import click
from rich.console import Console
from rich.live import Live

from headwater.cli.console import print_json
from headwater.cli.exit_codes import ExitCode
from headwater.cli.repetition import repeat
from headwater.control.access import DEFAULT_ADDRESS
from headwater.control.client import NotAnsweredError, ask, full_url
from headwater.report.agents import Client, agents_json, agents_rich

_WIDTH = 120
_PARALLEL = 16


def endpoints(_: click.Context, __: click.Parameter, values: Sequence[str]) -> tuple[str, ...]:
    """Return the URLs of an argument; the default is the endpoint on this machine."""
    try:
        return tuple(full_url(value) for value in values or (DEFAULT_ADDRESS,))
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


@click.command()
@click.argument("urls", nargs=-1, metavar="[URL]...", callback=endpoints)
@click.option("--watch", is_flag=True, help="Update the table until interrupted.")
@click.option(
    "--interval", type=click.FloatRange(min=0.1), default=2.0, show_default=True, help="Seconds, for --watch."
)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.pass_context
def status(context: click.Context, urls: Sequence[str], *, watch: bool, interval: float, form: str) -> None:
    """Show the status of agents and their applications.

    URL is the address of an agent's endpoint (--http), as a URL, HOST or HOST:PORT; the default is the agent
    on this machine. The parallelism is the maximum over the agents. Exit code 1: an agent does not answer, or
    is not ready.

    \b
    Examples:
      headwater agent status
      headwater agent status http://agent-1:9878 http://agent-2:9878 --watch
      headwater agent status agent-1 agent-2 --format json
    """
    if watch:
        _watch(urls, interval, form)
    clients = _statuses(urls)
    if form == "json":
        print_json(agents_json(clients))
    elif sys.stdout.isatty():
        Console(highlight=False).print(agents_rich(clients))
    else:
        click.echo(_text(clients), nl=False)
    context.exit(ExitCode.PROBLEMS if any(client.not_ready_reason for client in clients) else ExitCode.DONE)


def _watch(urls: Sequence[str], interval: float, form: str) -> None:
    """Update the table until Ctrl-C."""
    if form == "json":
        raise click.UsageError("--watch cannot be combined with --format json.")
    with Live(console=Console(highlight=False), auto_refresh=False, screen=sys.stdout.isatty()) as live:
        for _ in repeat(interval):
            live.update(agents_rich(_statuses(urls)), refresh=True)


def _statuses(urls: Sequence[str]) -> tuple[Client, ...]:
    """Request the status of all agents in parallel."""
    with ThreadPoolExecutor(min(len(urls), _PARALLEL)) as threads:
        return tuple(threads.map(_status_of, urls))


def _status_of(url: str) -> Client:
    try:
        answer = ask(url, "/status", fields=("clientId", "ready"))
        if "agent" not in answer and "runtime" in answer:
            return Client(url, error="an application that `headwater run` runs: use `headwater status`")
        return Client(url, answer)
    except NotAnsweredError as error:
        return Client(url, error=str(error))


def _text(clients: Sequence[Client]) -> str:
    text = io.StringIO()
    Console(file=text, width=_WIDTH, color_system=None, highlight=False, soft_wrap=True).print(
        agents_rich(clients)
    )
    return "".join(f"{line.rstrip()}\n" for line in text.getvalue().splitlines())
