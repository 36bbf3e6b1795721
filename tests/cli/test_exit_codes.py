"""Exit codes of all commands: unusable files and command lines, and what the table of the README says."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest

from headwater.cli.console import ExitCode
from headwater.cli.main import main
from headwater.command_line import run_program
from tests.cli.conftest import Headwater


def _leaves(group: click.Group, *words: str) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        child = group.get_command(context, name)
        assert child is not None
        if isinstance(child, click.Group):
            yield from _leaves(child, *words, name)
        else:
            yield " ".join((*words, name)), child


_COMMANDS = dict(_leaves(main))
_SERVER = "--bootstrap-server 127.0.0.1:1"
_WITH_FILES = {
    "validate": "validate FILE",
    "compile": "compile FILE",
    "plan": f"plan FILE {_SERVER}",
    "drift": f"drift FILE {_SERVER}",
    "upgrade": "upgrade FILE --to 4.4",
    "change": "change FILE FILE",
    "acls": "acls FILE",
    "describe": "describe FILE",
    "import": "import --describe FILE --application-id shop",
    "plan-comment": "plan-comment FILE",
    "publish": "publish FILE --issue Drift",
    "run": f"run FILE {_SERVER}",
    "reshard": f"reshard FILE --partitions orders=2 {_SERVER}",
    "state copy": f"state copy FILE --store a=b {_SERVER}",
    "processors status": f"processors status FILE {_SERVER}",
    "processors move": f"processors move FILE --offline {_SERVER}",
    "agent run": f"agent run FILE --once {_SERVER}",
    "agent manifest": f"agent manifest FILE -o manifest.json {_SERVER}",
}
"""Command → a command line that reads the file `FILE`."""
_FILES: dict[str, Callable[[Path], object]] = {
    "missing": lambda _: None,
    "a folder": Path.mkdir,
    "empty": Path.touch,
    "binary": lambda path: path.write_bytes(b"\x7fELF\x02\x01\x00\xff\xfe"),
    "text": lambda path: path.write_text("hello\n"),
}


def test_each_command_with_files_is_known() -> None:
    arguments = {name for name, command in _COMMANDS.items() if any(map(_is_file, command.params))}
    assert arguments <= _WITH_FILES.keys() < _COMMANDS.keys()


def _is_file(parameter: click.Parameter) -> bool:
    return isinstance(parameter, click.Argument) and parameter.human_readable_name.strip("[].").startswith(
        "FILE"
    )


@pytest.mark.parametrize("name", _COMMANDS)
def test_an_unknown_option_is_an_invalid_command_line(headwater: Headwater, name: str) -> None:
    done = headwater(*name.split(), "--no-such-option")
    assert (done.returncode, done.stdout) == (ExitCode.USAGE, "")
    assert done.stderr.startswith("Usage: headwater ")


@pytest.mark.parametrize("kind", _FILES)
@pytest.mark.parametrize("name", _WITH_FILES)
def test_an_unusable_file_is_an_error_that_names_it(
    headwater: Headwater, tmp_path: Path, name: str, kind: str
) -> None:
    file = tmp_path / "unusable.yaml"
    _FILES[kind](file)
    done = headwater(*_WITH_FILES[name].replace("FILE", file.name).split())
    if name == "publish" and kind == "text":
        assert "GITHUB_REPOSITORY" in done.stderr
    else:
        assert "unusable.yaml" in done.stderr
    assert done.returncode in (ExitCode.PROBLEMS, ExitCode.USAGE)
    assert "Traceback" not in done.stderr
    assert "Error in Headwater itself" not in done.stderr


def test_programs_for_spark_submit_have_the_same_exit_code() -> None:
    assert run_program(_COMMANDS["agent run"], ["--no-such-option"]) == ExitCode.USAGE


def test_an_unknown_home_folder_is_no_error_of_headwater(
    headwater: Headwater, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(user: int) -> None:
        raise KeyError(user)

    monkeypatch.setattr("pwd.getpwuid", unknown)
    for name in ("HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    done = headwater("local", "status")
    assert done.returncode == ExitCode.PROBLEMS
    assert done.stderr == "Error: The home folder of this user is not known.\n  Set HOME to a folder.\n"


@pytest.mark.parametrize("code", [ExitCode.DRIFT, ExitCode.REFUSED, ExitCode.RESTART])
def test_the_table_names_the_commands_whose_help_has_the_code(code: ExitCode) -> None:
    in_table = {each for each in re.findall(r"`([a-z -]+)`", code.meaning) if each in _COMMANDS}
    assert in_table == {name for name, command in _COMMANDS.items() if code.value in _codes_in_help(command)}


def _codes_in_help(command: click.Command) -> set[int]:
    text = " ".join((command.help or "").split())
    sentences = re.findall(r"Exit code (.*?)\.(?: |$)", text)
    return {int(code) for each in sentences for code in re.findall(r"(?:^|[;,] )(\d+)(?=:| also)", each)}
