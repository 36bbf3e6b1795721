"""A group that imports a command's module only when the command is called: `--help` answers at once."""

import importlib
from collections.abc import Mapping
from typing import Any

import attrs
import click


@attrs.frozen
class Lazy:
    """A command that is found as `attribute` of `module`; `help` is the first sentence of its own help.

    One that `is_brief` ends before garbage matters: of thousands of topics, a third of the time would go into
    looking for cycles.
    """

    module: str
    attribute: str
    help: str
    is_brief: bool = False

    def load(self) -> click.Command:
        command = getattr(importlib.import_module(self.module), self.attribute)
        if not isinstance(command, click.Command):
            raise TypeError(f"{self.module}.{self.attribute} is not a command")
        return command


class LazyGroup(click.Group):
    """A group whose `commands` are `Lazy` ones, by name in the order in which they are listed."""

    def __init__(self, name: str | None = None, *, lazy: Mapping[str, Lazy], **options: Any) -> None:  # noqa: ANN401
        super().__init__(name, **options)
        self.lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(self.lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        return self.lazy[cmd_name].load() if cmd_name in self.lazy else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.help) for name, command in self.lazy.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Name the nearest command when there is none of that name."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from difflib import get_close_matches  # noqa: PLC0415 - only after a typing error

            if near := get_close_matches(args[0], self.lazy, n=1):
                raise click.UsageError(
                    f"No such command {args[0]!r}. Did you mean {near[0]!r}?", ctx
                ) from error
            raise
