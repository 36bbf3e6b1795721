"""The documentation site: complete, without broken links, and without a request to the network."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import pytest

from headwater.cli.main import main
from tests.documentation.site.pages import write_pages

_ROOT = Path(__file__).parents[2]
_LOADED = re.compile(r"""<(?:script|img|link|iframe)\b[^>]*\b(?:src|href)=["']?(https?:[^"' >]+)""")
_SCHEMAS = sorted(_ROOT.glob("topology_schemas/*.schema.json"))


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "build" / "docs"
    write_pages(_ROOT, folder)
    return folder


def test_every_page_is_in_the_navigation(pages: Path) -> None:
    project = tomllib.loads((_ROOT / "zensical.toml").read_text())["project"]
    written = {path.relative_to(pages).as_posix() for path in pages.rglob("*.md")}
    navigation = list(_leaves(project["nav"]))
    assert len(navigation) == len(set(navigation))
    assert set(navigation) == {page for page in written if not page.startswith(("adr/", "repository/"))}


@pytest.mark.slow
def test_the_site_is_built_without_broken_links_and_loads_nothing(pages: Path) -> None:
    root = pages.parents[1]
    shutil.copy(_ROOT / "zensical.toml", root)
    done = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    html = {path: path.read_text() for path in (root / "build" / "site").rglob("*.html")}
    assert len(html) >= len(list(pages.rglob("*.md")))
    assert {path.name: found for path, text in html.items() if (found := _LOADED.findall(text))} == {}


@pytest.mark.parametrize("path", _SCHEMAS, ids=lambda path: path.name)
def test_every_key_of_a_schema_is_on_its_page(pages: Path, path: Path) -> None:
    text = (pages / "reference" / f"{path.name.removesuffix('.schema.json')}.md").read_text()
    schema = json.loads(path.read_text())
    sections = [schema, *schema["$defs"].values()]
    keys = {key for section in sections for key in section.get("properties", {})}
    assert keys
    assert [key for key in sorted(keys) if f"| `{key}`" not in text] == []


def test_every_command_is_on_the_page_of_commands(pages: Path) -> None:
    text = (pages / "reference/commands.md").read_text()
    commands = list(_commands(main, click.Context(main, info_name="headwater")))
    assert "headwater agent run" in commands
    assert [name for name in commands if f"\n## {name}\n" not in text] == []


def _leaves(entries: list[Mapping[str, Any]]) -> Iterator[str]:
    for entry in entries:
        for target in entry.values():
            if isinstance(target, str):
                yield target
            else:
                yield from _leaves(target)


def _commands(command: click.Command, context: click.Context) -> Iterator[str]:
    yield context.command_path
    for name in command.list_commands(context) if isinstance(command, click.Group) else ():
        child = command.get_command(context, name) if isinstance(command, click.Group) else None
        assert child is not None
        if not child.hidden:
            yield from _commands(child, click.Context(child, parent=context, info_name=name))
