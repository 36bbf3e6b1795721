"""The `headwater new` command."""

import hashlib
import shlex
from importlib.metadata import distribution
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click
from click.core import ParameterSource

from headwater.cli.console import json_text, print_line
from headwater.cli.new.project import (
    EXAMPLES,
    Forge,
    Project,
    check_name,
    is_pinned_wheel,
    project_files,
    read_template,
    streams_project_files,
    wheel_of,
    write_project,
)
from headwater.kafka.command_line import NamedPath
from headwater.model.problems import Problem, ProblemCode, ProblemsError
from headwater.spec.schema import published_schema
from headwater.toolchain.streams_library import ensure_streams_library

if TYPE_CHECKING:
    from collections.abc import Mapping

_DIRECT_URL = "direct_url.json"
_LOCAL_WHEEL = (
    "Headwater is installed from a file, which other machines do not have: {url}\n"
    "  Put the wheel where they can download it, and replace this URL in requirements*.txt and the workflows."
)


@click.command()
@click.argument("folder", type=NamedPath(path_type=Path), metavar="DIR")
@click.option("--example", type=click.Choice(list(EXAMPLES)), default="orders", show_default=True)
@click.option(
    "--ci",
    "forge",
    type=click.Choice([forge.value for forge in Forge]),
    default=Forge.GITHUB.value,
    show_default=True,
    help="The workflows to create.",
)
@click.option("--name", help="The name of the project. Default: the name of DIR.")
@click.option(
    "--wheel",
    metavar="URL",
    help="The wheel for requirements and workflows: a file, or a URL with its hash. Default: where Headwater "
    "was installed from.",
)
@click.option(
    "--streams",
    is_flag=True,
    help="Create a Kafka Streams application in Java instead, which exports its document in a unit test.",
)
def new(
    folder: Path, *, example: str, forge: str, name: str | None, wheel: str | None, streams: bool
) -> None:
    """Create a repository for topology documents, or for an application (--streams).

    DIR gets an example document in topologies/, a Pulumi project with the stacks `local` and `production`,
    policies, pinned requirements, workflows for pull requests, and a README.md with the next steps. DIR must
    be empty, except for .git and .venv.

    With --streams, DIR gets an application in Java with the library for Kafka Streams: a build with Maven,
    properties, a unit test that verifies the topology document, and a workflow that runs it.

    \b
    Examples:
      headwater new kafka-topics
      headwater new . --ci gitlab
      headwater new orders-app --streams
      headwater new kafka-topics --wheel https://example.com/headwater-0.1.0-py3-none-any.whl#sha256=HASH
    """
    chosen = folder.absolute().resolve().name if name is None else name
    url = ""
    check_name(chosen)
    contents: Mapping[str, str | bytes]
    if streams:
        _refuse_with_streams(click.get_current_context())
        contents = streams_project_files(
            chosen, Forge(forge), read_template, ensure_streams_library().read_bytes()
        )
    else:
        installed = distribution("headwater").read_text(_DIRECT_URL) or ""
        url = _wheel_url(wheel) if wheel else wheel_of(installed)
        project = Project(
            name=chosen, wheel=url or _no_wheel(), forge=Forge(forge), example=EXAMPLES[example]
        )
        schema = {"topologies/.schema.json": json_text(published_schema("topology.v1"))}
        contents = {**project_files(project, read_template), **schema}
    write_project(folder, contents)
    print_line(f"Created {len(contents)} files in {folder}:")
    for path in contents:
        print_line(f"  {path}")
    if url.startswith("file:"):
        print_line(f"{_LOCAL_WHEEL.format(url=url)}", err=True)
    print_line(f"Continue with {shlex.quote(str(folder / 'README.md'))}.")


def _refuse_with_streams(context: click.Context) -> None:
    """Refuse options that an application does not use."""
    for option in ("example", "wheel"):
        if context.get_parameter_source(option) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--{option} cannot be combined with --streams.")


def _wheel_url(text: str) -> str:
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
