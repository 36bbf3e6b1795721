"""Arguments and options that several commands share."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

files_argument = click.argument(
    "files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILES..."
)

output_option = click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, writable=True, allow_dash=True, path_type=Path),
    help="Write to this file instead of standard output.",
)


def _bootstrap_option(text: str) -> Callable[[F], F]:
    return click.option("--bootstrap-server", metavar="HOST:PORT,...", help=text)


_config_option = click.option(
    "--command-config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A client.properties file with security settings, as Kafka's own tools read it.",
)


def cluster_options(command: F) -> F:
    """Add `--bootstrap-server` and `--command-config`."""
    return _bootstrap_option("The cluster to read; nothing is changed on it.")(_config_option(command))


def application_cluster_options(command: F) -> F:
    """Add the same to a command that runs an application."""
    return _bootstrap_option("The cluster that the application works on.")(_config_option(command))


project_option = click.option(
    "--project",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=".",
    help="The folder of Pulumi.yaml, for --stack.",
)

policies_option = click.option(
    "--policies",
    "policy_files",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Judge by the policies of this file, too; may be repeated.",
)


class Count(click.ParamType["tuple[str, int]", object]):
    """`NAME=N`, N a positive number."""

    name = "NAME=N"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        name, _, number = str(value).rpartition("=")
        if not name or not (number.isascii() and number.isdigit()) or int(number) < 1:
            self.fail(f"{value!r} is not of the form {self.name}, N being 1 or more.", param, ctx)
        return name, int(number)


class Setting(click.ParamType["tuple[str, str]", object]):
    """`KEY=VALUE`."""

    name = "KEY=VALUE"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        key, separator, text = str(value).partition("=")
        if not key or not separator:
            self.fail(f"{value!r} is not of the form {self.name}.", param, ctx)
        return key, text


class StoreDetails(click.ParamType["tuple[str, Mapping[str, Any]]", object]):
    """`NAME=KIND,OPTION=VALUE,...`; what is allowed is for the schema of documents to say."""

    name = "NAME=KIND,..."

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, Mapping[str, Any]]:
        name, _, details = str(value).partition("=")
        if not name or not details:
            self.fail(f"{value!r} is not of the form {self.name}.", param, ctx)
        options: dict[str, Any] = {}
        for word in details.split(","):
            key, separator, text = word.partition("=")
            if not separator:
                options["kind"] = key
            elif key.startswith("overrides."):
                options.setdefault("overrides", {})[key.removeprefix("overrides.")] = text
            else:
                options[key] = {"true": True, "false": False}.get(text, text)
        return name, options
