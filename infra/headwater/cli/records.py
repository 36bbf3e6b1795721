"""`headwater records`: write the setup records of a stack to a file, without its secrets."""

from pathlib import Path

import click

from headwater.cli.console import json_text, write
from headwater.cli.options import output_option, project_option
from headwater.cli.stack import exported_state, setup_records


@click.command()
@click.option("--stack", metavar="STACK", required=True, help="The Pulumi stack.")
@project_option
@output_option
def records(*, stack: str, project: Path, output: Path | None) -> None:
    """Write the setup records of a stack to a file, without its secrets.

    `headwater plan`, `drift` and `change` read them with --stack-state. A pipeline for pull requests then
    needs neither the backend of the stack nor its passphrase. Reads the state with `pulumi stack export`,
    which decrypts nothing. Connects to no cluster.

    \b
    Examples:
      headwater records --stack production --output records.json
      headwater records --stack production | headwater plan topologies/ --stack production --stack-state -
    """
    write(json_text(setup_records(exported_state(stack, project), f"stack {stack}")), output)
