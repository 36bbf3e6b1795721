"""`headwater schema`: the JSON Schemas of this version, for editors."""

from pathlib import Path

import click

from headwater.cli.console import json_text, write
from headwater.cli.options import output_option
from headwater.spec.schema import published_schema

_SCHEMAS = {"topology": "topology.v1", "policies": "policies.v1"}


@click.command()
@click.argument("kind", type=click.Choice(list(_SCHEMAS)), default="topology")
@output_option
def schema(kind: str, output: Path | None) -> None:
    """Print the JSON Schema of documents or policy files, for editors.

    Editors complete and check a document whose first line names the schema: `# yaml-language-server:
    $schema=FILE`, relative to the document. A file in the repository needs no network. Write it again after
    an upgrade of Headwater.

    \b
    Examples:
      headwater schema -o topologies/.schema.json
      headwater schema policies -o .policies.schema.json
    """
    write(json_text(published_schema(_SCHEMAS[kind])), output)
