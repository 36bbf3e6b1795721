"""`headwater agent autoscaling on|off`: switch autoscaling (KIP-878) while agents run."""

import os
from collections.abc import Sequence

import click

from headwater.cli.agent_status import endpoints
from headwater.cli.exit_codes import ExitCode
from headwater.control.access import control_token
from headwater.control.client import NotAnsweredError, ask


@click.command()
@click.argument("switch", type=click.Choice(["on", "off"]))
@click.argument("urls", nargs=-1, metavar="[URL]...", callback=endpoints)
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
            answer = ask(
                url, "/control/autoscaling", body, token=control_token(os.environ), fields=("applications",)
            )
        except NotAnsweredError as error:
            failed = True
            click.echo(f"{url}: {error}", err=True)
        else:
            names = ", ".join(answer["applications"]) or "no application"
            click.echo(f"{url}: autoscaling is {switch} for {names}.")
    context.exit(ExitCode.PROBLEMS if failed else ExitCode.DONE)
