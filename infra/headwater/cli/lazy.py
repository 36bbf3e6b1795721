"""A click group that imports the module of a command only when it is called, so that `--help` is fast."""

import importlib
from collections.abc import Mapping
from typing import Any

import attrs
import click


@attrs.frozen
class Lazy:
    """A command that is `attribute` of `module`; `help` is the first sentence of the command's help.

    A command that `is_brief` runs without garbage collection: with thousands of topics, the search for cycles
    would take a third of its time.
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
    """A group of `Lazy` commands; `lazy` is name → command, in the order of the help."""

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
        """Suggest a similar name if there is no such command."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from difflib import get_close_matches  # noqa: PLC0415 - only after a typo

            if near := get_close_matches(args[0], self.lazy, n=1):
                raise click.UsageError(
                    f"No such command {args[0]!r}. Did you mean {near[0]!r}?", ctx
                ) from error
            raise
