"""Commands that write files of the package: JSON Schemas for editors, dashboards and alerts."""

import re
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import click

from headwater.cli.console import json_text, print_line, write_text
from headwater.cli.options import output_option
from headwater.kafka.command_line import NamedPath
from headwater.spec.schema import published_schema

_SCHEMAS = {"topology": "topology.v1", "policies": "policies.v1"}
_FOLDERS = ("grafana", "prometheus")
_RUNBOOK = re.compile(r"^( +)runbook: docs/([\w-]+)\.md(\S*)$", re.MULTILINE)


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
    write_text(json_text(published_schema(_SCHEMAS[kind])), output)


@click.command()
@click.option(
    "-o",
    "--output",
    type=NamedPath(file_okay=False, path_type=Path),
    required=True,
    help="The folder; it is created if it does not exist.",
)
@click.option(
    "--docs",
    metavar="URL",
    help="The address of the site that `make docs` builds: alerts get `runbook_url`, the address of their "
    "section.",
)
def dashboards(output: Path, docs: str | None) -> None:
    """Copy the dashboards for Grafana and the alerts for Prometheus into a folder.

    The dashboards are JSON files for Grafana's import or its provisioning, with a variable for the cluster.
    The alerts are a rule file for Prometheus. Existing files are replaced.

    \b
    Examples:
      headwater dashboards -o monitoring/
      headwater dashboards -o monitoring/ --docs https://docs.example.com/headwater
    """
    if docs is not None and not docs.startswith(("https://", "http://")):
        raise click.BadParameter(
            f"{docs!r} is not an address, such as https://docs.example.com/headwater.", param_hint="--docs"
        )
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise click.ClickException(
            f"{output} cannot be created: {error.strerror}.\n  Choose another folder by --output."
        ) from None
    for source in _dashboard_sources():
        text = source.read_text(encoding="utf-8")
        file = output / source.name
        write_text(_with_addresses(text, docs) if docs else text, file)
        print_line(str(file))


def _dashboard_sources() -> list[Traversable]:
    installed = files("headwater").joinpath("deploy")
    folder = installed if installed.is_dir() else Path(__file__).parents[3] / "deploy"
    found = [file for name in _FOLDERS for file in folder.joinpath(name).iterdir()]
    return sorted(found, key=lambda file: file.name)


def _with_addresses(text: str, docs: str) -> str:
    """Return rules whose annotations have the address of the runbook, as other rules for Prometheus do."""
    base = docs.rstrip("/")
    return _RUNBOOK.sub(
        lambda found: f"{found[0]}\n{found[1]}runbook_url: {base}/{found[2]}.html{found[3]}", text
    )
