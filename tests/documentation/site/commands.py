"""The page of all commands, from their `--help`."""

from collections.abc import Iterator

import click

_WIDTH = 100
_HEAD = """\
# Commands

This page is generated from `headwater COMMAND --help`. Results go to standard output, everything else to
standard error.
"""


def commands_page() -> str:
    """Return the Markdown page of `headwater` and its subcommands."""
    from headwater.cli.main import main  # noqa: PLC0415 - imports the commands

    return "\n".join([_HEAD, *_sections(main, click.Context(main, info_name="headwater"))])


def _sections(command: click.Command, context: click.Context) -> Iterator[str]:
    context.terminal_width = context.max_content_width = _WIDTH
    yield f"## {context.command_path}\n"
    yield f"```text\n{command.get_help(context)}\n```\n"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            if (child := command.get_command(context, name)) is not None and not child.hidden:
                yield from _sections(child, click.Context(child, parent=context, info_name=name))
