"""What the walks of new users run is in the pages, and is taken from them as it is printed."""

import re
from pathlib import Path

import pytest

from tests.wheel.walk import Block, blocks, command

_WALKS = ("test_data_engineer.py", "test_operator_on_call.py", "test_platform_engineer.py")
_CALL = re.compile(r'\b(blocks|command)\(\s*"([\w-]+\.md)", f?"([^"{]+)["{]')


@pytest.mark.parametrize("walk", _WALKS)
def test_pages_have_the_sections_and_commands_of_a_walk(walk: str) -> None:
    calls = _CALL.findall(Path(__file__).with_name(walk).read_text(encoding="utf-8"))
    assert len(calls) > 2
    for function, page, text in calls:
        if function == "blocks":
            assert blocks(page, text), f"{page}: {text}"
        elif not text.endswith(" "):
            assert command(page, text), f"{page}: {text}"


def test_commands_have_no_prompts_no_output_and_no_comments() -> None:
    shown = Block("console", "$ seq 2 |\n      cat   # both\n1\n2\n$ head \\\n  file\nfirst\n")
    assert shown.commands == "seq 2 |\n      cat\nhead \\\n  file"
    assert Block("sh", "# first\ncat file  # all\n").commands == "# first\ncat file"


def test_a_section_or_command_that_a_page_does_not_have_is_an_error() -> None:
    with pytest.raises(ValueError, match="has no section Try that"):
        blocks("runtime.md", "Try that")
    with pytest.raises(ValueError, match="not enough values"):
        command("runtime.md", "headwater walk")
