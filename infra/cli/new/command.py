"""The `headwater new` command."""

import re
import shlex
from importlib.metadata import distribution
from pathlib import Path

import click

from infra.cli.console import ProblemsExit
from infra.cli.new.folder import check_name, read_template, write_project
from infra.cli.new.project import EXAMPLES, Forge, Project, project_files, released, wheel_at, wheel_of
from infra.model.problems import ProblemsError

_DIRECT_URL = "direct_url.json"
_LOCAL_WHEEL = (
    "Headwater is installed from a file, which other machines do not have: {url}\n"
    "  Put the wheel where they can download it, and replace this URL in requirements*.txt and the workflows."
)


@click.command()
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@click.option("--example", type=click.Choice(list(EXAMPLES)), default="orders", show_default=True)
@click.option(
    "--ci",
    "forge",
    type=click.Choice([forge.value for forge in Forge]),
    default=Forge.GITHUB.value,
    show_default=True,
    help="The workflows to create.",
)
@click.option("--name", help="The name of the Pulumi project. Default: the name of DIR.")
@click.option(
    "--wheel",
    metavar="URL",
    help="The wheel for the requirements, a URL or a file. Default: where Headwater was installed from.",
)
def new(folder: Path, *, example: str, forge: str, name: str | None, wheel: str | None) -> None:
    """Create a repository for topology documents.

    DIR gets an example document in topologies/, a Pulumi project with the stacks `local` and `production`,
    policies, pinned requirements, workflows for pull requests, and a README.md with the next steps. DIR must
    be empty, except for .git and .venv.

    \b
    Examples:
      headwater new kafka-topics
      headwater new . --ci gitlab
      headwater new kafka-topics --wheel https://example.com/headwater-0.1.0-py3-none-any.whl
    """
    installed = distribution("headwater")
    url = _wheel(wheel) if wheel else wheel_of(installed.read_text(_DIRECT_URL) or "")
    try:
        project = Project(
            name=folder.absolute().resolve().name if name is None else name,
            requirement=wheel_at(url) if url else released(installed.version),
            forge=Forge(forge),
            example=EXAMPLES[example],
        )
        check_name(project.name)
        contents = project_files(project, read_template)
        write_project(folder, contents)
    except ProblemsError as error:
        raise ProblemsExit(error) from None
    click.echo(f"Created {len(contents)} files in {folder}:")
    for path in contents:
        click.echo(f"  {path}")
    if url.startswith("file:"):
        click.echo(f"{_LOCAL_WHEEL.format(url=url)}", err=True)
    click.echo(f"Continue with {shlex.quote(str(folder / 'README.md'))}.")


def _wheel(text: str) -> str:
    """Return the URL of a wheel that is named by a URL or a path."""
    if re.fullmatch(r"(https?|file)://\S+\.whl(#\S*)?", text):
        return text
    path = Path(text)
    if path.suffix != ".whl" or not path.is_file():
        raise click.BadParameter(
            f"{text} is neither the URL of a wheel nor an existing file *.whl.", param_hint="--wheel"
        )
    return path.absolute().as_uri()
