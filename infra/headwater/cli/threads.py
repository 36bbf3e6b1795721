"""`headwater threads`: list, add and remove the stream threads of a running application."""

import os
from collections.abc import Mapping
from typing import Any

import click

from headwater.cli.agent import parse_endpoints
from headwater.cli.console import ExitCode, print_json, print_line
from headwater.cli.lazy import Lazy, LazyGroup
from headwater.cli.options import Seconds
from headwater.control.access import control_token
from headwater.control.client import NotAnsweredError, send_request

_HELP = """List, add and remove the stream threads of a running application.

A stream thread runs one Spark task of the application at a time (KIP-663). Changes last until the application
ends: num.stream.threads says how many threads it starts with.

\b
Examples:
  headwater threads list
  headwater threads add runtime-1:9878
  headwater threads remove --timeout 30
"""

threads = LazyGroup(
    "threads",
    lazy={
        "list": Lazy("headwater.cli.threads", "list_", "Show the stream threads of an application."),
        "add": Lazy("headwater.cli.threads", "add", "Add a stream thread."),
        "remove": Lazy("headwater.cli.threads", "remove", "Remove the oldest stream thread."),
    },
    help=_HELP,
)
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
    context.exit(_change_threads(context, url, {"action": "add"}, "added", _ANSWER_SECONDS))


@click.command()
@click.argument("url", required=False, metavar="[URL]")
@click.option(
    "--timeout",
    type=Seconds(min=0, max=1e9),
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
    context.exit(_change_threads(context, url, body, "removed", wait))


def report_error(address: str, error: NotAnsweredError) -> ExitCode:
    """Print that a client did not answer or refused the request; return the exit code."""
    print_line(f"{address}: {error}" + ("" if error.answer else f"\n{_HINT}"), err=True)
    return ExitCode.PROBLEMS


def _change_threads(
    context: click.Context, url: str | None, body: Mapping[str, Any], what: str, wait: float | None
) -> ExitCode:
    (address,) = parse_endpoints(context, context.command.params[0], (url,) if url else ())
    try:
        answer = send_request(
            address,
            PATH,
            body,
            token=control_token(os.environ),
            timeout_seconds=wait,
            fields=("thread", "threads"),
        )
    except NotAnsweredError as error:
        return report_error(address, error)
    print_line(f"{answer['thread']} {what}; {len(answer['threads'])} stream threads.")
    return ExitCode.DONE


@click.command("list")
@click.argument("url", required=False, metavar="[URL]")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.pass_context
def list_(context: click.Context, url: str | None, *, form: str) -> None:
    """Show the stream threads of an application.

    Each thread with its state, and the sub-topologies whose batches run on it. URL is the address of the
    application's endpoint (--http), as a URL, HOST or HOST:PORT; the default is the endpoint on this machine.

    \b
    Examples:
      headwater threads list
      headwater threads list runtime-1:9878 --format json
    """
    (address,) = parse_endpoints(context, context.command.params[0], (url,) if url else ())
    try:
        found = send_request(address, PATH, fields=("threads", "slots"))
    except NotAnsweredError as error:
        context.exit(report_error(address, error))
    if form == "json":
        print_json(found)
        context.exit(ExitCode.DONE)
    from headwater.report.runtime_table import slots_note, thread_line  # noqa: PLC0415 - only for the text

    for thread in found["threads"]:
        print_line(thread_line(thread))
    if not found["threads"]:
        print_line("no stream thread")
    if note := slots_note(found["threads"], found["slots"]):
        print_line(note)
    context.exit(ExitCode.DONE)
