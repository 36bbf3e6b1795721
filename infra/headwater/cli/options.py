"""Arguments and options shared by several commands."""

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headwater.kafka import command_line
from headwater.kafka.command_line import NamedPath
from headwater.model.versions import (
    OLDER,
    SUPPORTED_RELEASES,
    KafkaStreamsVersion,
    read_any_version,
    read_version,
)

if TYPE_CHECKING:
    from headwater.model.policies import Policy

files_argument = click.argument(
    "files", nargs=-1, required=True, type=NamedPath(path_type=Path), metavar="FILES..."
)

stack_files_argument = click.argument("files", nargs=-1, type=NamedPath(path_type=Path), metavar="[FILES]...")
"""FILES of a command that also reads a stack: without them, its documents are read."""

output_option = click.option(
    "-o",
    "--output",
    type=NamedPath(dir_okay=False, writable=True, allow_dash=True, path_type=Path),
    help="Write to this file instead of standard output. Folders that do not exist are created.",
)
cluster_options = command_line.cluster_options("The cluster to read. It is not changed.")

stack_cluster_options = command_line.cluster_options(
    "The cluster to read. It is not changed. Default: the cluster of --stack, otherwise of the environment."
)

project_option = click.option(
    "--project",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=".",
    help="The folder of Pulumi.yaml, for --stack. Default: the working folder.",
)

stack_state_option = click.option(
    "--stack-state",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path),
    help="Read the setup records from this file, the output of `headwater records` or `pulumi stack export`; "
    "- is standard input. With --stack, the settings are then read from its file, and Pulumi is not run.",
)

policies_option = click.option(
    "--policies",
    "policy_files",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Also check the policies of this file. May be repeated.",
)


def partitions_option(text: str) -> Callable[[command_line.F], command_line.F]:
    """Return the option for the partition counts of topics, with `text` as its help."""
    return click.option("--partitions", "given", multiple=True, type=Count(), callback=each_once, help=text)


def read_policies(files: Sequence[Path]) -> "tuple[Policy, ...]":
    """Return the policies of `--policies`; raises `ProblemsError` if a file has errors."""
    if not files:
        return ()
    from headwater.spec.policies import read_policies as load_all  # noqa: PLC0415 - only for policies

    return load_all(files)


class Principal(click.ParamType["str", object]):
    """`TYPE:NAME`: brokers ignore ACLs of other principals."""

    name = "TYPE:NAME"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not _PRINCIPAL.fullmatch(str(value)):
            self.fail(f"{value!r} is not of the form {self.name}, such as User:orders.", param, ctx)
        return str(value)


_PRINCIPAL = re.compile(r"[A-Za-z][A-Za-z0-9_-]*:[^\n|]+")
"""As in the schema of documents."""
_MOST_PARTITIONS = 2**31 - 1


class Count(click.ParamType["tuple[str, int]", object]):
    """`NAME=N`, N a positive number."""

    name = "NAME=N"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        name, _, number = str(value).rpartition("=")
        is_number = number.isascii() and number.isdigit() and len(number) <= len(str(_MOST_PARTITIONS))
        if not name or not is_number or not 0 < int(number) <= _MOST_PARTITIONS:
            self.fail(
                f"{value!r} is not of the form {self.name}: N is 1 or more, at most {_MOST_PARTITIONS}.",
                param,
                ctx,
            )
        return name, int(number)


def each_once(
    _: click.Context, __: click.Parameter, value: Sequence[tuple[str, int]]
) -> Sequence[tuple[str, int]]:
    """Return the counts of an option that may be repeated; raises `click.BadParameter` for a name twice."""
    found = Counter(name for name, _ in value)
    if twice := [name for name, times in found.items() if times > 1]:
        raise click.BadParameter(f"{', '.join(twice)} is given twice.")
    return value


class Setting(click.ParamType["tuple[str, str]", object]):
    """`KEY=VALUE`, or what the option names so (`metavar`)."""

    name = "KEY=VALUE"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        key, separator, text = str(value).partition("=")
        if not key or not separator:
            form = (param.metavar if param else None) or self.name
            self.fail(f"{value!r} is not of the form {form}.", param, ctx)
        return key, text


class Version(click.ParamType["KafkaStreamsVersion", object]):
    """A version of Kafka Streams: a supported one or, for running applications, any that is known."""

    name = "VERSION"

    def __init__(self, *, is_of_running: bool = False) -> None:
        self._read = read_any_version if is_of_running else read_version
        self._oldest = OLDER[0].release if is_of_running else None

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> KafkaStreamsVersion:
        version = value if isinstance(value, KafkaStreamsVersion) else self._read(str(value))
        if version is None:
            supported = f"{self._oldest} and later" if self._oldest else ", ".join(SUPPORTED_RELEASES)
            self.fail(
                f"Kafka Streams {value} is not supported. Supported: {supported}.",
                param,
                ctx,
            )
        return version


class StoreDetails(click.ParamType["tuple[str, Mapping[str, Any]]", object]):
    """`NAME=KIND,OPTION=VALUE,...`; the document schema defines kinds and options."""

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


class Seconds(click.FloatRange):
    """Seconds, without `nan` and `inf`, which Python reads as numbers."""

    def convert(self, value: float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        seconds = float(super().convert(value, param, ctx))
        if not math.isfinite(seconds):
            self.fail(f"{value!r} is not a number of seconds.", param, ctx)
        return seconds
