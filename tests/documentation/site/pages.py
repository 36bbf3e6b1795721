"""The pages of the site: the pages of `docs`, others of the repository, and the page of all commands."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from tests.documentation.site.links import rewritten
from tests.documentation.site.schemas import schema_page

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


_OUTSIDE = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security-policy.md",
    "tests/oracle/cases/README.md": "recorded-cases.md",
}
"""Files of the repository that become pages, in addition to those of `docs`."""
_CONTENTS = "docs/README.md"  # the site has a navigation of its own
_DECISIONS = "docs/adr"


def write_pages(root: Path, target: Path) -> None:
    """Write the pages of the repository `root`, and the files that they link to, to a new folder."""
    sources = _sources(root)
    schemas = {f"topology_schemas/{path.name}": path for path in root.glob("topology_schemas/*.schema.json")}
    pages = {**sources, **{name: _schema_page(path) for name, path in schemas.items()}}
    pages |= {_CONTENTS: "index.md", _DECISIONS: "decisions.md"}
    linked: set[str] = set()
    for source, page in sources.items():
        text = (root / source).read_text(encoding="utf-8")
        _write(target / page, rewritten(text, source, page, pages, linked))
    for name, path in schemas.items():
        _write(target / pages[name], schema_page(json.loads(path.read_text(encoding="utf-8")), name))
    _write(target / "reference/commands.md", commands_page())
    _write(target / pages[_DECISIONS], "\n".join(_decisions(root, sources)))
    for name in linked:
        _write_bytes(target / "repository" / name, (root / name).read_bytes())
    for path in (root / "docs").rglob("*"):
        if path.is_file() and path.suffix != ".md":
            _write_bytes(target / path.relative_to(root / "docs"), path.read_bytes())


def _sources(root: Path) -> Mapping[str, str]:
    """Return file of the repository → page of the site."""
    found = {
        f"docs/{path.relative_to(root / 'docs')}": path for path in sorted((root / "docs").rglob("*.md"))
    }
    return {**_OUTSIDE, **{name: name.removeprefix("docs/") for name in found if name != _CONTENTS}}


def _schema_page(path: Path) -> str:
    return f"reference/{path.name.removesuffix('.schema.json')}.md"


def _decisions(root: Path, sources: Mapping[str, str]) -> Iterator[str]:
    yield "# Decisions\n\nThe reasons for the design, one page per decision.\n"
    for name, page in sources.items():
        if name.startswith(f"{_DECISIONS}/"):
            title = (root / name).read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
            yield f"- [{title}]({page})"


def _write(path: Path, text: str) -> None:
    _write_bytes(path, text.encode())


def _write_bytes(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
