"""Options that commands of several packages share, and the connection that the options of a cluster name."""

import os
import re
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar, cast

import attrs
import click

from headwater.kafka.connection import Connection
from headwater.kafka.input_files import LARGEST_SETTINGS, read_text
from headwater.model.expansions import AGENT_PREFIX

F = TypeVar("F", bound=Callable[..., Any])


class NamedPath(click.Path):
    """A path. An empty one, as of a variable that is not set, would mean the working folder."""

    def convert(
        self,
        value: Any,  # noqa: ANN401 - click's signature
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Any:  # noqa: ANN401 - click's signature
        if value == "":  # a default is a `Path`
            self.fail("the path is empty. Is a variable not set?", param, ctx)
        return super().convert(value, param, ctx)


_LONGEST_TOPIC = 249
_LONGEST_GROUP = _LONGEST_TOPIC - len(AGENT_PREFIX)
_GROUP = re.compile(rf"[\w.-]{{1,{_LONGEST_GROUP}}}", re.ASCII)


class AgentGroup(click.ParamType["str", object]):
    """The group of agents, which their coordination topic is named after."""

    name = "TEXT"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not _GROUP.fullmatch(str(value)):
            self.fail(
                f"{value!r} is no part of a topic name: use letters, digits, `.`, `_` and `-`, at most "
                f"{_LONGEST_GROUP} characters.",
                param,
                ctx,
            )
        return str(value)


@attrs.frozen
class NamedCluster:
    """The cluster that a command line names by `--bootstrap-server` and `--command-config`."""

    bootstrap_server: str | None = None
    command_config: Path | None = None

    @property
    def is_named(self) -> bool:
        return self != NamedCluster()

    def named_connection(self) -> Connection | None:
        """Return the connection to the cluster that the options name, None if they name none.

        Security settings are read from `command_config`, else from the environment (see
        `environment_fields`).

        Raises:
            ProblemsError: InvalidConfig for settings that are wrong or missing.
            click.BadParameter: `command_config` cannot be read.
        """
        server = self.bootstrap_server
        if self.command_config is not None:
            text = _read_settings(self.command_config)
            # Of two entries with the same key, the last one counts.
            return Connection.from_properties(f"{text}\nbootstrap.servers={server}\n" if server else text)
        if server is not None:
            return Connection.from_environment({**os.environ, "HEADWATER_BOOTSTRAP_SERVERS": server})
        return None

    def connection(self) -> Connection:
        """Return the connection to the cluster that the options or else the environment name.

        Raises as `named_connection` does.
        """
        return self.named_connection() or Connection.from_environment(os.environ)


def cluster_options(text: str) -> Callable[[F], F]:
    """Return a decorator that adds `--bootstrap-server` (with the help `text`) and `--command-config`.

    The command gets both as `cluster`, a `NamedCluster`.
    """

    def add(command: F) -> F:
        @wraps(command)
        def with_cluster(
            *arguments: Any,  # noqa: ANN401 - of any command
            bootstrap_server: str | None,
            command_config: Path | None,
            **options: Any,  # noqa: ANN401 - of any command
        ) -> object:
            cluster = NamedCluster(bootstrap_server, command_config)
            return command(*arguments, cluster=cluster, **options)

        added = click.option(
            "--command-config",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="A client.properties file with security settings, as Kafka's own tools read it.",
        )(with_cluster)
        return cast("F", click.option("--bootstrap-server", metavar="HOST:PORT,...", help=text)(added))

    return add


def _read_settings(path: Path) -> str:
    try:
        return read_text(path, LARGEST_SETTINGS)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not a text"
        raise click.BadParameter(f"{path} cannot be read: {reason}.", param_hint="--command-config") from None
