"""The commands of the page about changed topologies print what the page shows."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from headwater.cli.console import ExitCode
from headwater.cli.main import main

_PAGE = Path(__file__).parents[2] / "docs/changing-topologies.md"
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def _blocks(language: str) -> list[str]:
    return [text for kind, text in _BLOCK.findall(_PAGE.read_text(encoding="utf-8")) if kind == language]


def _headwater(line: str) -> tuple[int, str]:
    done = CliRunner().invoke(main, line.split()[1:], prog_name="headwater")
    return done.exit_code, done.stdout


def test_the_edit_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for document in _blocks("yaml")[:2]:
        Path(document.splitlines()[0].removeprefix("# ")).write_text(document, encoding="utf-8")
    command = _blocks("sh")[0].strip()

    code, printed = _headwater(command)

    assert code == ExitCode.DRIFT
    for shown in _blocks("text")[:2]:
        assert shown in f"{printed}\n"
    (line,) = re.findall(r"`(- count: \{.*?\})`", _PAGE.read_text(encoding="utf-8"))
    after = Path("after.yaml").read_text(encoding="utf-8").replace("- count:", line)
    Path("after.yaml").write_text(after, encoding="utf-8")
    code, printed = _headwater(command)
    assert code == ExitCode.DONE
    assert "Rolling restart: safe." in printed


def test_each_command_of_the_page_has_its_options(tmp_path: Path) -> None:
    del tmp_path
    lines = [line for block in _blocks("sh") for line in block.splitlines() if line.startswith("headwater ")]
    lines += re.findall(r"^\| `(headwater [^`]+)` \|", _PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(lines) > 5
    for line in lines:
        _, command, *arguments = line.split()
        known = CliRunner().invoke(main, (command, "--help"), prog_name="headwater").stdout
        for option in (each for each in arguments if each.startswith("--")):
            assert re.search(rf"{option}\b", known), f"{option} of {line}"
