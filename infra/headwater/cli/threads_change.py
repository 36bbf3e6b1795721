"""`headwater threads add` and `remove`: change the number of stream threads while the application runs."""

import os
from collections.abc import Mapping
from typing import Any

import click

from headwater.cli.agent_status import endpoints
from headwater.cli.exit_codes import ExitCode
from headwater.control.access import control_token
from headwater.control.client import NotAnsweredError, ask

PATH = "/control/threads"
_HINT = "  Use the address of `headwater run --http HOST:PORT`."
_ANSWER_SECONDS = 30.0


@click.command()
@click.argument("url", required=False, metavar="[URL]")
@click.pass_context
def add(context: click.Context, url: str | None) -> None:
    """Add a stream thread.

    Prints its name. The next batch distributes its tasks over all idle threads. Only an application that is
    RUNNING or REBALANCING takes a new thread; otherwise the exit code is 1. The token of
    HEADWATER_CONTROL_TOKEN is sent.

    \b
    Examples:
      headwater threads add
      headwater threads add runtime-1:9878
    """
    context.exit(_change(context, url, {"action": "add"}, "added", _ANSWER_SECONDS))


@click.command()
@click.argument("url", required=False, metavar="[URL]")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, max=1e9),
    metavar="SECONDS",
    help="How long to wait for the thread's batch; default: until it has ended.",
)
@click.pass_context
def remove(context: click.Context, url: str | None, *, timeout: float | None) -> None:
    """Remove the oldest stream thread.

    Waits until the thread's batch has ended, and prints the thread's name. After the timeout the exit code is
    1, and the removal continues. The application keeps running without its last thread: its records wait. The
    token of HEADWATER_CONTROL_TOKEN is sent.

    \b
    Examples:
      headwater threads remove
      headwater threads remove runtime-1:9878 --timeout 30
    """
    body: dict[str, Any] = {"action": "remove"}
    if timeout is not None:
        body["timeoutMs"] = round(timeout * 1_000)
    wait = None if timeout is None else timeout + _ANSWER_SECONDS
    context.exit(_change(context, url, body, "removed", wait))


def report(address: str, error: NotAnsweredError) -> ExitCode:
    """Print that a client did not answer or refused the request; return the exit code."""
    click.echo(f"{address}: {error}\n{_HINT}", err=True)
    return ExitCode.PROBLEMS


def _change(
    context: click.Context, url: str | None, body: Mapping[str, Any], what: str, wait: float | None
) -> ExitCode:
    (address,) = endpoints(context, context.command.params[0], (url,) if url else ())
    try:
        answer = ask(
            address,
            PATH,
            body,
            token=control_token(os.environ),
            timeout_seconds=wait,
            fields=("thread", "threads"),
        )
    except NotAnsweredError as error:
        return report(address, error)
    click.echo(f"{answer['thread']} {what}; {len(answer['threads'])} stream threads.")
    return ExitCode.DONE
