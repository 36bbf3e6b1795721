"""`headwater threads list`: the stream threads of a running application."""

import click

from headwater.cli.agent_status import endpoints
from headwater.cli.console import print_json
from headwater.cli.exit_codes import ExitCode
from headwater.cli.threads_change import PATH, report
from headwater.control.client import NotAnsweredError, ask


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
    (address,) = endpoints(context, context.command.params[0], (url,) if url else ())
    try:
        found = ask(address, PATH, fields=("threads", "slots"))
    except NotAnsweredError as error:
        context.exit(report(address, error))
    if form == "json":
        print_json(found)
        context.exit(ExitCode.DONE)
    from headwater.report.thread_lines import slots_note, thread_line  # noqa: PLC0415 - only for the text

    for thread in found["threads"]:
        click.echo(thread_line(thread))
    if not found["threads"]:
        click.echo("no stream thread")
    if note := slots_note(found["threads"], found["slots"]):
        click.echo(note)
    context.exit(ExitCode.DONE)
