"""The two `headwater` commands and the two programs that start a job take and reject the same options."""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import click
import pytest
import structlog

import agent_main
import run_main
from headwater.cli.agent_run import run as headwater_agent_run
from headwater.cli.console import ExitCode
from headwater.cli.main import main as headwater
from headwater_spark.commands.run import run as headwater_run

_DOCUMENT = "application: {id: orders}\ntopology:\n- stream: {topic: orders}\n- to: {topic: copies}\n"
_USAGE_OF_PROGRAM = 64


def _exit_code_of(*command: str) -> Callable[[Sequence[str]], int]:
    def start(arguments: Sequence[str]) -> int:
        with pytest.raises(SystemExit) as ended:
            headwater([*command, *arguments])
        code = ended.value.code
        assert isinstance(code, int)
        return code

    return start


@attrs.frozen
class Start:
    run: Callable[[Sequence[str]], int]
    usage: int
    missing_file: int


_STARTS = {
    "headwater agent run": Start(_exit_code_of("agent", "run"), ExitCode.USAGE, ExitCode.PROBLEMS),
    "headwater run": Start(_exit_code_of("run"), ExitCode.USAGE, ExitCode.USAGE),
    "agent_main.py": Start(agent_main.main, _USAGE_OF_PROGRAM, ExitCode.PROBLEMS),
    "run_main.py": Start(run_main.main, _USAGE_OF_PROGRAM, _USAGE_OF_PROGRAM),
}


@pytest.fixture(params=_STARTS)
def start(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Start:
    for name in ("HEADWATER_BOOTSTRAP_SERVERS", "KAFKA_BOOTSTRAP_SERVERS"):
        monkeypatch.delenv(name, raising=False)
    return _STARTS[request.param]


@pytest.fixture
def document(tmp_path: Path) -> str:
    file = tmp_path / "document.yaml"
    file.write_text(_DOCUMENT)
    return str(file)


def _options(command: click.Command) -> Mapping[str, Mapping[str, Any]]:
    return {str(each.name): each.to_info_dict() for each in command.params}


@pytest.mark.parametrize(
    ("command", "program", "own", "other_defaults"),
    [
        (headwater_agent_run, agent_main.command, set(), {"log_format"}),
        (headwater_run, run_main.command, {"jars", "conf", "live", "web_ui"}, {"log_format", "master"}),
    ],
    ids=["agent", "runtime"],
)
def test_command_and_program_have_the_same_options(
    command: click.Command, program: click.Command, own: set[str], other_defaults: set[str]
) -> None:
    ours, theirs = _options(command), _options(program)
    assert ours.keys() - theirs.keys() == own
    assert {name for name in theirs if ours[name] != theirs[name]} == other_defaults
    assert all(ours[name]["type"] == theirs[name]["type"] for name in theirs)


@pytest.mark.parametrize("program", [agent_main.command, run_main.command], ids=["agent", "runtime"])
def test_program_takes_security_settings_and_log_level(program: click.Command) -> None:
    assert {"command_config", "log_level", "log_format", "http", "bootstrap_server"} <= _options(
        program
    ).keys()


def test_missing_file_is_named(start: Start, capsys: pytest.CaptureFixture[str]) -> None:
    code = start.run(["nowhere.yaml", "--bootstrap-server", "127.0.0.1:1"])
    shown = capsys.readouterr()
    assert (code, shown.out) == (start.missing_file, "")
    assert "nowhere.yaml" in shown.err
    assert "Traceback" not in shown.err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--no-such-option"], "No such option"),
        (["--log-level", "loud"], "'loud' is not one of 'debug', 'info', 'warning', 'error'"),
        (["--log-format", "xml"], "'xml' is not one of 'console', 'json'"),
        (["--command-config", "nowhere.properties"], "'nowhere.properties' does not exist"),
    ],
)
def test_wrong_command_line_is_refused(
    start: Start, document: str, arguments: Sequence[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = start.run([document, *arguments])
    shown = capsys.readouterr()
    assert (code, shown.out) == (start.usage, "")
    assert "Usage: " in shown.err
    assert expected in shown.err
    assert "Traceback" not in shown.err


def test_unreadable_properties_are_refused(
    start: Start, document: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "client.properties").write_bytes(b"\xff\xfe")
    code = start.run([document, "--command-config", str(tmp_path / "client.properties")])
    assert code == start.usage
    assert "cannot be read" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--bootstrap-server", "no-port"], "'no-port' is not the address of a broker."),
        ([], "No Kafka broker is named."),
        (["--bootstrap-server", "127.0.0.1:1", "--http", "nowhere"], "The address of the HTTP endpoint"),
    ],
)
def test_problems_name_the_fix(
    start: Start, document: str, arguments: Sequence[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = start.run([document, *arguments])
    structlog.reset_defaults()
    shown = capsys.readouterr()
    assert (code, shown.out) == (ExitCode.PROBLEMS, "")
    assert expected in shown.err
    assert "error[InvalidConfig]" in shown.err
    assert "\n  fix " in shown.err
    assert "Traceback" not in shown.err


def test_security_settings_of_a_file_are_read(
    start: Start, document: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "client.properties"
    config.write_text("bootstrap.servers=127.0.0.1:1\nsecurity.protocol=SASL_SSL\nsasl.mechanism=PLAIN\n")
    assert start.run([document, "--command-config", str(config)]) == ExitCode.PROBLEMS
    assert "SASL mechanism PLAIN needs the password." in capsys.readouterr().err


def test_program_names_itself_in_its_usage(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["/opt/spark_jobs/agent_main.py", "--help"])
    assert agent_main.main() == 0
    assert "Usage: agent_main.py [OPTIONS] [FILES]..." in capsys.readouterr().out
