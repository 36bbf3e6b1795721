"""The `headwater new` command."""

import hashlib
import shlex
from importlib.metadata import distribution
from pathlib import Path
from typing import NoReturn

import click

from headwater.cli.console import ProblemsExit, json_text
from headwater.cli.new.folder import check_name, read_template, write_project
from headwater.cli.new.project import EXAMPLES, Forge, Project, is_pinned_wheel, project_files, wheel_of
from headwater.model.problems import Problem, ProblemCode, ProblemsError
from headwater.spec.schema import published_schema

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
    help="The wheel for requirements and workflows: a file, or a URL with its hash. Default: where Headwater "
    "was installed from.",
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
      headwater new kafka-topics --wheel https://example.com/headwater-0.1.0-py3-none-any.whl#sha256=HASH
    """
    installed = distribution("headwater")
    url = _wheel(wheel) if wheel else wheel_of(installed.read_text(_DIRECT_URL) or "")
    try:
        project = Project(
            name=folder.absolute().resolve().name if name is None else name,
            wheel=url or _no_wheel(),
            forge=Forge(forge),
            example=EXAMPLES[example],
        )
        check_name(project.name)
        schema = {"topologies/.schema.json": json_text(published_schema("topology.v1"))}
        contents = {**project_files(project, read_template), **schema}
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
    """Return the URL of a wheel with its hash; `text` is such a URL, or a path."""
    if is_pinned_wheel(text):
        return text
    path = Path(text)
    if path.suffix != ".whl" or not path.is_file():
        raise click.BadParameter(
            f"{text} is neither an existing file *.whl nor the URL of a wheel with its hash: "
            "https://HOST/NAME.whl#sha256=HASH.",
            param_hint="--wheel",
        )
    return f"{path.absolute().as_uri()}#sha256={hashlib.sha256(path.read_bytes()).hexdigest()}"


def _no_wheel() -> NoReturn:
    raise ProblemsError(
        [
            Problem(
                code=ProblemCode.PROJECT_NOT_CREATED,
                summary="The wheel of this Headwater is not known.",
                expected="Headwater installed from a wheel, or --wheel",
                found="an installation without the URL and the hash of a wheel",
                why="The workflows have production credentials, so they install exactly one wheel. A name is "
                "not enough: `headwater` is not registered in the public package index.",
                fix="Name the wheel: --wheel FILE, or --wheel https://HOST/NAME.whl#sha256=HASH.",
            )
        ]
    )
