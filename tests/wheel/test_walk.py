"""What the walks of new users run is in the pages, and is taken from them as it is printed."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from headwater.toolchain.broker.readiness import until
from tests.wheel.walk import Block, Walk, blocks, command

_WALKS = ("test_data_engineer.py", "test_operator_on_call.py", "test_platform_engineer.py")
_CALL = re.compile(r'\b(blocks|command)\(\s*"([\w-]+\.md)", f?"([^"{]+)["{]')

_NEW_REPOSITORY = Path(__file__).parents[2] / "infra" / "headwater" / "cli" / "new" / "files"


@pytest.mark.parametrize("walk", _WALKS)
def test_pages_have_the_sections_and_commands_of_a_walk(walk: str) -> None:
    calls = _CALL.findall(Path(__file__).with_name(walk).read_text(encoding="utf-8"))
    assert len(calls) > 2
    for function, page, text in calls:
        if function == "blocks":
            assert blocks(page, text), f"{page}: {text}"
        elif not text.endswith(" "):
            assert command(page, text), f"{page}: {text}"


@pytest.mark.parametrize("walk", _WALKS)
def test_pages_have_as_many_blocks_and_lines_as_a_walk_uses(walk: str) -> None:
    unpacked = list(_unpacked(Path(__file__).with_name(walk).read_text(encoding="utf-8")))
    assert unpacked
    folder = SimpleNamespace(folder=_NEW_REPOSITORY)
    for source, number, has_more in unpacked:
        found = list(eval(source, {"blocks": blocks, "walk": folder}))  # noqa: S307 - a part of a walk
        assert len(found) == number or (has_more and len(found) > number), f"{source}: {found}"


def _unpacked(program: str) -> Iterator[tuple[str, int, bool]]:
    """Yield expressions with blocks, how many values a walk takes of each, and whether there may be more."""
    for node in ast.walk(ast.parse(program)):
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=targets) | ast.List(elts=targets)], value=value):
                number = len([each for each in targets if not isinstance(each, ast.Starred)])
                has_more = number < len(targets)
            case ast.For(iter=value):
                number, has_more = 0, True
            case _:
                continue
        names = [each for each in ast.walk(value) if isinstance(each, ast.Name)]
        used = {each.id for each in names} - {each.id for each in names if isinstance(each.ctx, ast.Store)}
        if "blocks" in used and used <= {"blocks", "walk"}:
            yield ast.unparse(value), number, has_more


def test_commands_have_no_prompts_no_output_and_no_comments() -> None:
    shown = Block("console", "$ seq 2 |\n      cat   # both\n1\n2\n$ head \\\n  file\nfirst\n")
    assert shown.commands == "seq 2 |\n      cat\nhead \\\n  file"
    assert Block("sh", "# first\ncat file  # all\n").commands == "# first\ncat file"


def test_a_section_or_command_that_a_page_does_not_have_is_an_error() -> None:
    with pytest.raises(ValueError, match="has no section Try that"):
        blocks("runtime.md", "Try that")
    with pytest.raises(ValueError, match="not enough values"):
        command("runtime.md", "headwater walk")


def test_a_command_that_does_not_stop_is_killed_and_its_log_shown(tmp_path: Path) -> None:
    walk = Walk(tmp_path / "user", {"PATH": "/usr/bin:/bin"}, {}, stop_seconds=0.1)
    walk.folder.mkdir()
    log = tmp_path / "running.log"
    stubborn = "sh -c 'trap \"\" TERM; echo still running; while :; do sleep 0.1; done'"
    with pytest.raises(AssertionError, match="still running"), walk.running(stubborn) as process:
        assert until(lambda: "still running" in log.read_text(), 60)
    assert process.returncode != 0
