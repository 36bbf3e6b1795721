"""`headwater agent`: expand internal topics while their applications run; `status` and `autoscaling`."""

import io
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import click
from rich.console import Console
from rich.live import Live

from headwater.cli.console import ExitCode, print_json, print_line, repeat_every, write_text
from headwater.cli.lazy import Lazy, LazyGroup
from headwater.cli.options import Seconds
from headwater.control.access import DEFAULT_ADDRESS, control_token
from headwater.control.client import NotAnsweredError, full_url, send_request
from headwater.report.agents import Client, agents_json, agents_rich

_HELP = """Expand internal topics while applications run.

When source topics are expanded, the agent expands the internal topics that depend on them (KIP-878).

\b
Examples:
  headwater agent run topologies/ --bootstrap-server localhost:9092 --http 127.0.0.1:9878
  headwater agent status
"""

agent = LazyGroup(
    "agent",
    lazy={
        "run": Lazy(
            "headwater.cli.agent_run",
            "run",
            "Expand internal topics when source topics are expanded, until stopped (KIP-878).",
        ),
        "manifest": Lazy(
            "headwater.cli.agent_run",
            "manifest_",
            "Write documents and their partition counts to one JSON file.",
        ),
        "status": Lazy("headwater.cli.agent", "status", "Show the status of agents and their applications."),
        "history": Lazy(
            "headwater.cli.agent_history", "history", "Show past expansions: topics, agent, time and reason."
        ),
        "autoscaling": Lazy(
            "headwater.cli.agent",
            "autoscaling",
            "Switch partition.autoscaling.enabled while agents run.",
        ),
    },
    help=_HELP,
)
_WIDTH = 120
_PARALLEL = 16
_HINT = "  Use the address of `headwater agent run --http HOST:PORT`."


def parse_endpoints(_: click.Context, __: click.Parameter, values: Sequence[str]) -> tuple[str, ...]:
    """Return the URLs of an argument; the default is the endpoint on this machine."""
    try:
        return tuple(full_url(value) for value in values or (DEFAULT_ADDRESS,))
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


@click.command()
@click.argument("urls", nargs=-1, metavar="[URL]...", callback=parse_endpoints)
@click.option("--watch", is_flag=True, help="Update the table until interrupted.")
@click.option(
    "--interval", type=Seconds(min=0.1), default=2.0, show_default=True, help="Seconds, for --watch."
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
        _watch_agents(urls, interval, form)
    clients = _request_statuses(urls)
    if form == "json":
        print_json(agents_json(clients))
    elif sys.stdout.isatty():
        Console(highlight=False).print(agents_rich(clients))
    else:
        write_text(_agents_text(clients), None)
    if any(client.error for client in clients):
        print_line(_HINT, err=True)
    context.exit(ExitCode.PROBLEMS if any(client.not_ready_reason for client in clients) else ExitCode.DONE)


def _watch_agents(urls: Sequence[str], interval: float, form: str) -> None:
    """Update the table until Ctrl-C."""
    if form == "json":
        raise click.UsageError("--watch cannot be combined with --format json.")
    with Live(console=Console(highlight=False), auto_refresh=False, screen=sys.stdout.isatty()) as live:
        for _ in repeat_every(interval):
            live.update(agents_rich(_request_statuses(urls)), refresh=True)


def _request_statuses(urls: Sequence[str]) -> tuple[Client, ...]:
    """Request the status of all agents in parallel."""
    with ThreadPoolExecutor(min(len(urls), _PARALLEL)) as threads:
        return tuple(threads.map(_status_of, urls))


def _status_of(url: str) -> Client:
    try:
        answer = send_request(url, "/status", fields=("clientId", "ready"))
        if "agent" not in answer and "runtime" in answer:
            return Client(url, error="an application that `headwater run` runs: use `headwater status`")
        return Client(url, answer)
    except NotAnsweredError as error:
        return Client(url, error=str(error))


def _agents_text(clients: Sequence[Client]) -> str:
    text = io.StringIO()
    Console(file=text, width=_WIDTH, color_system=None, highlight=False, soft_wrap=True).print(
        agents_rich(clients)
    )
    return "".join(f"{line.rstrip()}\n" for line in text.getvalue().splitlines())


@click.command()
@click.argument("switch", type=click.Choice(["on", "off"]))
@click.argument("urls", nargs=-1, metavar="[URL]...", callback=parse_endpoints)
@click.option(
    "--application", metavar="ID", help="Only this application; default: all applications of the agents."
)
@click.pass_context
def autoscaling(context: click.Context, switch: str, urls: Sequence[str], *, application: str | None) -> None:
    """Switch partition.autoscaling.enabled while agents run.

    Name every agent of the group: only the leader expands topics. The switch holds until the setting in the
    document changes, or the agent ends. The token of HEADWATER_CONTROL_TOKEN is sent to the agents.

    \b
    Examples:
      headwater agent autoscaling off --application orders-app
      headwater agent autoscaling on http://agent-1:9878 http://agent-2:9878
    """
    body = {"enabled": switch == "on"} | ({"application": application} if application else {})
    failed = False
    for url in urls:
        try:
            answer = send_request(
                url, "/control/autoscaling", body, token=control_token(os.environ), fields=("applications",)
            )
        except NotAnsweredError as error:
            failed = True
            print_line(f"{url}: {error}" + ("" if error.answer else f"\n{_HINT}"), err=True)
        else:
            names = ", ".join(answer["applications"]) or "no application"
            print_line(f"{url}: autoscaling is {switch} for {names}.")
    context.exit(ExitCode.PROBLEMS if failed else ExitCode.DONE)
