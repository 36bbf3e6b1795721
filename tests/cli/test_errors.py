"""Errors: a short text and an exit code, never a traceback."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import headwater as headwater_package
from headwater.cli.console import ExitCode
from headwater.cli.lazy import Lazy
from headwater.cli.main import main
from tests import preloaded
from tests.cli.conftest import EXAMPLES, Headwater

_DOCUMENT = EXAMPLES / "revenue-by-category.yaml"
_AGENT = f"{sys.executable} {Path(__file__).parents[2] / 'spark_jobs' / 'agent_main.py'}"
_LOG = """INFO Kafka Streams version: 3.9.1
Topologies:
   Sub-topology: 0
    Source: KSTREAM-SOURCE-0000000000 (topics: [orders])
      --> KSTREAM-SINK-0000000001
    Sink: KSTREAM-SINK-0000000001 (topic: copies)
      <-- KSTREAM-SOURCE-0000000000
"""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "Commands:"),
        (("vaildate",), "Did you mean 'validate'?"),
        (("validate",), "Missing argument 'FILES...'"),
        (("compile", "x.yaml", "--format", "pdf"), "'pdf' is not one of"),
        (("compile", "x.yaml", "--partitions", "orders"), "'orders' is not of the form NAME=N"),
        (("compile", "x.yaml", "--partitions", "orders=0"), "1 or more"),
        (("compile", "x.yaml", "--partitions", "orders=9999999999"), "at most 2147483647"),
        (("compile", "x.yaml", "--partitions", "a=1", "--partitions", "a=2"), "a is given twice"),
        (("dashboards", "-o", "x", "--docs", "docs/"), "'docs/' is not an address"),
        (("validate", ""), "the path is empty. Is a variable not set?"),
        (("acls", ""), "the path is empty"),
        (("new", ""), "the path is empty"),
        (("change", "", "x.yaml"), "the path is empty"),
        (("agent", "run", "", "--bootstrap-server", "127.0.0.1:1"), "the path is empty"),
        (("agent", "run", "x.yaml", "--group", "a b"), "'a b' is no part of a topic name"),
        (("agent", "history", "--group", "a/b"), "'a/b' is no part of a topic name"),
        (("agent", "history", "--group", "a" * 249), "at most 233 characters"),
        (("compile", "x.yaml", "--output", ""), "the path is empty"),
        (("demo", "--keep", ""), "the path is empty"),
        (("run", str(_DOCUMENT), "--state-dir", ""), "the path is empty"),
        (("run", str(_DOCUMENT), "--checkpoint", ""), "the path is empty"),
        (("processors", "move", str(_DOCUMENT), "--offline", "--checkpoint", ""), "the path is empty"),
        (("acls", "x.yaml", "--principal", "orders"), "'orders' is not of the form TYPE:NAME"),
        (("acls", "x.yaml", "--for", "plan"), "--for needs --self"),
        (("threads", "remove", "--timeout", "nan"), "'nan' is not a number of seconds"),
        (("agent", "status", "--watch", "--interval", "inf"), "'inf' is not a number of seconds"),
        (("compile", "x.yaml", "--command-config", "nowhere.properties"), "does not exist"),
        (("import", "--describe", "nowhere.txt", "--application-id", "a"), "nowhere.txt"),
        (("import", "--describe", str(_DOCUMENT), "--application-id", "a", "--store", "counts"), "NAME=KIND"),
        (("import", "app.txt"), "(app.txt). Name the text of Topology#describe() by --describe, or"),
        (("import", "app.txt", "--application-id", "a"), "(app.txt). Name the text of"),
        (("import", "--descripe", "app.txt"), "No such option '--descripe'"),
        (("run", str(_DOCUMENT), "--conf", "spark.ui.port"), "KEY=VALUE"),
        (("state", "copy", str(_DOCUMENT), "--store", "counts"), "not of the form OLD=NEW"),
        (("run", str(_DOCUMENT), "--jars", "nowhere.jar"), "There is no file 'nowhere.jar'."),
    ],
)
def test_invalid_command_line(headwater: Headwater, arguments: tuple[str, ...], message: str) -> None:
    done = headwater(*arguments)
    assert done.returncode == ExitCode.USAGE
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["validate", "compile", "describe", "plan"])
def test_missing_file(headwater: Headwater, command: str) -> None:
    done = headwater(command, "nowhere.yaml")
    assert done.returncode == ExitCode.PROBLEMS
    assert "nowhere.yaml" in done.stderr
    assert "\n  fix  " in done.stderr


@pytest.mark.parametrize("command", ["compile", "plan"])
def test_unreachable_cluster(headwater: Headwater, command: str) -> None:
    done = headwater(command, _DOCUMENT, "--bootstrap-server", "127.0.0.1:1")
    assert done.returncode == ExitCode.PROBLEMS
    assert "error[ClusterUnreachable]" in done.stderr
    assert "Traceback" not in done.stderr


def test_invalid_security_settings(headwater: Headwater, tmp_path: Path) -> None:
    config = tmp_path / "client.properties"
    config.write_text("security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\n", encoding="utf-8")
    done = headwater("plan", _DOCUMENT, "--command-config", config, "--bootstrap-server", "127.0.0.1:1")
    assert done.returncode == ExitCode.PROBLEMS
    assert "error[InvalidConfig]" in done.stderr


def test_unwritable_output_file(headwater: Headwater, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for output in ("file/below.txt", "/proc/no/such/folder.txt"):
        done = headwater("compile", _DOCUMENT, "--partitions", "payments=4", "-o", output)
        assert done.returncode == ExitCode.PROBLEMS
        assert "cannot be written" in done.stderr


def test_the_folder_of_an_output_file_is_created(headwater: Headwater, tmp_path: Path) -> None:
    done = headwater("compile", _DOCUMENT, "--partitions", "payments=4", "-o", "reports/today/plan.txt")
    assert done.returncode == ExitCode.DONE
    assert "payments" in (tmp_path / "reports" / "today" / "plan.txt").read_text()


@pytest.mark.slow
def test_closed_output_pipe_is_not_an_error() -> None:
    features = EXAMPLES / "features"
    command = f"{sys.executable} -m headwater.cli compile {features} 2>/dev/null | head -c 1 > /dev/null"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", f"{{ {command}; }} 2>&1; echo ${{PIPESTATUS[0]}}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stdout
    assert "BrokenPipe" not in done.stdout


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the import of the command `validate` raise an unexpected error."""

    def fail(self: Lazy) -> None:
        raise RuntimeError(f"cannot load {self.module}")

    monkeypatch.setattr(Lazy, "load", fail)


@pytest.mark.usefixtures("broken")
def test_internal_error_is_short_and_says_how_to_report_it() -> None:
    done = CliRunner().invoke(main, ["validate", "x.yaml"])
    assert done.exit_code == ExitCode.BUG
    assert "RuntimeError: cannot load headwater.cli.validate" in done.stderr
    assert "headwater --debug" in done.stderr
    assert "Traceback" not in done.output


@pytest.mark.usefixtures("broken")
def test_debug_shows_the_traceback() -> None:
    done = CliRunner().invoke(main, ["--debug", "validate", "x.yaml"])
    assert done.exit_code == ExitCode.BUG
    assert "Traceback" in done.output


def test_a_folder_that_cannot_be_written_is_not_an_error_of_headwater(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def write(self: Lazy) -> None:
        (tmp_path / "missing" / self.module).mkdir()

    monkeypatch.setattr(Lazy, "load", write)
    done = CliRunner().invoke(main, ["validate", "x.yaml"])
    assert done.exit_code == ExitCode.PROBLEMS
    assert done.stderr == (
        f"Error: {tmp_path}/missing/headwater.cli.validate cannot be used: No such file or directory.\n"
        "  Check that it exists and that this user may read and write it, or name another one.\n"
    )


@pytest.mark.parametrize("missing", [Path(headwater_package.__file__).parent / "templates.txt", "helper"])
def test_a_missing_file_of_headwater_or_a_missing_program_is_an_error_of_headwater(
    monkeypatch: pytest.MonkeyPatch, missing: str | Path
) -> None:
    def fail(self: Lazy) -> None:
        raise FileNotFoundError(errno.ENOENT, f"not found by {self.module}", str(missing))

    monkeypatch.setattr(Lazy, "load", fail)
    done = CliRunner().invoke(main, ["validate", "x.yaml"])
    assert done.exit_code == ExitCode.BUG
    assert "Error in Headwater itself: FileNotFoundError" in done.stderr


def test_interruption_has_its_own_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(self: Lazy) -> None:
        raise KeyboardInterrupt(self.module)

    monkeypatch.setattr(Lazy, "load", interrupt)
    assert CliRunner().invoke(main, ["validate", "x.yaml"]).exit_code == ExitCode.INTERRUPTED


def test_shell_completion() -> None:
    words = {"_HEADWATER_COMPLETE": "bash_complete", "COMP_WORDS": "headwater val", "COMP_CWORD": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "headwater.cli"],
        env={**os.environ, **words},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "validate" in done.stdout


def test_the_installed_command_runs() -> None:
    script = Path(sys.prefix) / "bin" / "headwater"
    done = subprocess.run([script, "validate", _DOCUMENT], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (ExitCode.DONE, "")


@pytest.mark.parametrize(("columns", "widest"), [(60, 60), (200, 100)])
def test_problems_fit_the_terminal(
    headwater: Headwater, monkeypatch: pytest.MonkeyPatch, columns: int, widest: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    done = headwater("validate", "nowhere.yaml")
    lines = [len(click.unstyle(line)) for line in done.stderr.splitlines()]
    assert widest - 20 < max(lines) <= widest


def _shell(
    command: str, *, is_preloaded: bool = False, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a command line in which `headwater` is the command, and return it with the code of `headwater`.

    `is_preloaded`: without a start of Python. The command needs all three standard streams then.
    """
    headwater = preloaded.headwater() if is_preloaded else f"{sys.executable} -m headwater.cli"
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", f'headwater() {{ {headwater} "$@"; }}; {command}'],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_help_whose_reader_is_gone_succeeds() -> None:
    done = _shell("headwater --help | true")  # with a start of Python
    assert (done.returncode, done.stderr) == (ExitCode.DONE, "")


def test_exit_code_of_a_result_whose_reader_is_gone() -> None:
    upgrade = f"upgrade {EXAMPLES / 'order-enrichment.yaml'} --to 3.7 --format json"
    done = _shell(f"headwater {upgrade} | true", is_preloaded=True)
    assert done.returncode == ExitCode.REFUSED


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("headwater validate nowhere.yaml", ExitCode.PROBLEMS),
        ("headwater explain NoSuchCode", ExitCode.USAGE),
        # Each starts a process: `make test` has one of each kind of error and of each program.
        pytest.param("headwater agent status 127.0.0.1:1", ExitCode.PROBLEMS, marks=pytest.mark.slow),
        pytest.param(f"{_AGENT} --no-such-option", ExitCode.USAGE, marks=pytest.mark.slow),
        *(
            pytest.param(command, code, marks=pytest.mark.soak)
            for command, code in (
                ("headwater compile nowhere.yaml --format json", ExitCode.PROBLEMS),
                ("headwater compile --no-such-option", ExitCode.USAGE),
                ("headwater agent autoscaling off 127.0.0.1:1 127.0.0.1:2", ExitCode.PROBLEMS),
                ("headwater status 127.0.0.1:1", ExitCode.PROBLEMS),
                ("headwater threads list 127.0.0.1:1", ExitCode.PROBLEMS),
                (f"headwater compile {_DOCUMENT} --partitions payment=4", ExitCode.PROBLEMS),
            )
        ),
    ],
)
def test_exit_code_of_an_error_whose_reader_is_gone(command: str, code: ExitCode) -> None:
    done = _shell(f"{command} 2>&1 | true", is_preloaded=True)
    assert (done.returncode, done.stderr) == (code, "")


def test_problems_without_a_reader_do_not_close_the_result(tmp_path: Path) -> None:
    report = tmp_path / "compiled.json"
    command = f"headwater compile {_DOCUMENT} --format json 2>&1 > {report} | true"
    done = _shell(command, is_preloaded=True)
    assert done.returncode == ExitCode.PROBLEMS
    assert json.loads(report.read_text())["applications"]


@pytest.mark.slow
def test_a_note_without_a_reader_does_not_prevent_the_result(tmp_path: Path) -> None:
    text = tmp_path / "app.log"
    text.write_text(_LOG, encoding="utf-8")
    options = f"--application-id app --kafka-streams 4.0 --assume-defaults -o {tmp_path}/app.yaml"
    done = _shell(f"headwater import --describe {text} {options} 2>&1 | true", is_preloaded=True)
    assert done.returncode == ExitCode.DONE
    assert "kafkaStreams: '4.0'" in (tmp_path / "app.yaml").read_text()


def test_progress_without_a_reader_does_not_end_the_process() -> None:
    program = (
        "from headwater.toolchain.commands import Progress; notes = Progress(); "
        "notes.write_line('download'); notes.write_line('build'); raise SystemExit(3)"
    )
    assert _shell(f'{sys.executable} -c "{program}" 2>&1 | true').returncode == ExitCode.REFUSED


@pytest.mark.parametrize(
    ("err", "redirection"), [(False, "2>"), pytest.param(True, "2>&1 >", marks=pytest.mark.slow)]
)
def test_a_command_whose_lines_have_no_reader_continues(
    *, tmp_path: Path, err: bool, redirection: str
) -> None:
    other = tmp_path / "other"
    program = (
        "from headwater.cli.console import print_line; "
        f"[print_line('moved', err={err}) for _ in range(3)]; print_line('done', err={not err}); exit(3)"
    )
    done = _shell(f'{sys.executable} -c "{program}" {redirection} {other} | true')
    assert (done.returncode, other.read_text()) == (ExitCode.REFUSED, "done\n")


@pytest.mark.slow
def test_a_console_without_a_reader_does_not_end_the_process() -> None:
    program = (
        "from headwater.report.problems import output_console as o; o().print('plan'); raise SystemExit(3)"
    )
    assert _shell(f'{sys.executable} -c "{program}" | true').returncode == ExitCode.REFUSED


@pytest.mark.parametrize(
    "arguments",
    [
        "--version",
        pytest.param(f"validate {_DOCUMENT}", marks=pytest.mark.slow),
        pytest.param(f"acls {_DOCUMENT}", marks=pytest.mark.slow),
    ],
)
def test_full_disk_is_not_an_error_of_headwater(arguments: str) -> None:
    done = _shell(f"headwater {arguments} > /dev/full", is_preloaded=arguments != "--version")
    assert done.returncode == ExitCode.PROBLEMS
    assert done.stderr.startswith("Error: The output cannot be written: No space left on device.\n")
    assert "Exception" not in done.stderr


@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        (f"headwater validate {_DOCUMENT} >&-", ExitCode.DONE, ""),
        pytest.param(f"headwater acls {_DOCUMENT} >&-", ExitCode.DONE, "", marks=pytest.mark.slow),
        (
            "headwater plan-comment <&-",
            ExitCode.PROBLEMS,
            "is not the output of `headwater plan --format json`",
        ),
        pytest.param(
            "headwater import --describe - --application-id a <&-",
            ExitCode.PROBLEMS,
            "at        standard input",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_closed_standard_streams(command: str, code: ExitCode, message: str) -> None:
    done = _shell(command)
    assert done.returncode == code
    assert message in done.stderr


def test_json_is_utf_8_whatever_the_locale_is(tmp_path: Path) -> None:
    path = tmp_path / "orders.yaml"
    path.write_text("application: {id: 'ordérs \N{RIGHT-TO-LEFT OVERRIDE}'}", encoding="utf-8")
    done = _shell(f"headwater validate {path} --format json", PYTHONIOENCODING="latin-1")
    assert done.returncode == ExitCode.PROBLEMS
    assert json.loads(done.stdout)["problems"][0]["application"] == "ordérs \N{RIGHT-TO-LEFT OVERRIDE}"


def test_file_name_that_is_not_utf_8(headwater: Headwater) -> None:
    done = headwater("compile", "orders\udcff.yaml", "--format", "json")
    assert done.returncode == ExitCode.PROBLEMS
    assert json.loads(done.stdout)["problems"][0]["location"]["file"] == "orders\udcff.yaml"


def test_stack_state_that_is_not_text(headwater: Headwater, tmp_path: Path) -> None:
    (tmp_path / "deep.json").write_text("[" * 100_000, encoding="utf-8")
    options = ("drift", _DOCUMENT, "--bootstrap-server", "127.0.0.1:1", "--stack-state")
    done = headwater(*options, "-", input=b"\xff\xfe")
    assert done.returncode == ExitCode.USAGE
    assert "- cannot be read: it is not UTF-8 text." in done.stderr
    done = headwater(*options, "deep.json")
    assert done.returncode == ExitCode.PROBLEMS
    assert "deep.json is not an exported stack state." in done.stderr


@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        (
            ("import", "--describe", "/dev/zero", "--application-id", "orders"),
            ExitCode.PROBLEMS,
            "/dev/zero cannot be read: it is larger than 32 MiB. Remove the text around the description.",
        ),
        (
            ("change", "old.txt", _DOCUMENT, "--application-id", "orders"),
            ExitCode.PROBLEMS,
            "old.txt cannot be read: it is larger than 32 MiB.",
        ),
        (
            ("plan", _DOCUMENT, "--command-config", "/dev/zero"),
            ExitCode.USAGE,
            "/dev/zero cannot be read: it is larger than 5 MiB.",
        ),
        (("plan-comment", "/dev/zero"), ExitCode.PROBLEMS, "cannot be read: it is larger than 64 MiB."),
        (
            ("agent", "run", "--manifest", "/dev/zero", "--bootstrap-server", "127.0.0.1:1", "--once"),
            ExitCode.PROBLEMS,
            "it is larger than 64 MiB",
        ),
    ],
    ids=lambda each: " ".join(map(str, each[:2])) if isinstance(each, tuple) else "",
)
def test_files_that_are_too_large_are_not_read_to_their_end(
    headwater: Headwater, tmp_path: Path, command: tuple[str, ...], code: ExitCode, message: str
) -> None:
    with (tmp_path / "old.txt").open("wb") as file:
        file.truncate(33 << 20)
    done = headwater(*command)
    assert done.returncode == code
    assert message in " ".join(done.stderr.split())


def test_state_that_is_not_text_is_refused_by_a_comparison(headwater: Headwater, tmp_path: Path) -> None:
    (tmp_path / "state.json").write_bytes(b"\xff\xfe")
    done = headwater("change", _DOCUMENT, "--stack-state", "state.json")
    assert done.returncode == ExitCode.USAGE
    assert "state.json cannot be read: it is not UTF-8 text." in done.stderr


def test_published_file_that_is_not_text(headwater: Headwater, tmp_path: Path) -> None:
    (tmp_path / "comment.md").write_bytes(b"\xff\xfe")
    done = headwater("publish", "comment.md", "--pull-request", 1)
    assert done.returncode == ExitCode.PROBLEMS
    assert "comment.md cannot be read: it is not UTF-8 text." in done.stderr


def test_acls_of_a_missing_file_print_nothing(headwater: Headwater) -> None:
    done = headwater("acls", "nowhere.yaml")
    assert (done.returncode, done.stdout) == (ExitCode.PROBLEMS, "")
