"""The command `headwater processors expand`."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from headwater.cli.console import ExitCode
from headwater.cli.main import main
from headwater.control import Access, ControlServer, Surface
from headwater_spark.driver.metrics import Instruments, StartingApplication
from headwater_spark.driver.states import ClientState
from headwater_spark.stream_threads import ExpansionPhase, ProcessorsStatus
from tests.cli.screen import lines_on_screen, output_on_terminal
from tests.control.expanding_application import DELAYED, TOKEN, ExpandingApplication

Golden = Callable[[Path, str], None]
_GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture
def application() -> ExpandingApplication:
    return ExpandingApplication()


@pytest.fixture
def server(application: ExpandingApplication) -> Iterator[ControlServer]:
    with application.serve() as server:
        yield server


@pytest.fixture
def url(server: ControlServer) -> str:
    return server.url


@pytest.fixture(autouse=True)
def _polls_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headwater.cli.processors._POLL_SECONDS", 0.01)


def _run(*arguments: str, token: str | None = TOKEN) -> Result:
    environment = {"HEADWATER_CONTROL_TOKEN": token}
    command = ["processors", "expand", *arguments]
    return CliRunner().invoke(main, command, prog_name="headwater", env=environment)


def test_command_waits_until_the_processors_are_added(
    url: str, application: ExpandingApplication, golden: Golden
) -> None:
    application.becomes(
        ProcessorsStatus(4, 8, ExpansionPhase.CHECK, 0, 2_500_000),
        ProcessorsStatus(4, 8, ExpansionPhase.CATCH_UP, 0, 1_234_567),
        ProcessorsStatus(4, 8, ExpansionPhase.CATCH_UP, 1_000_000, 234_567),
        ProcessorsStatus(4, 8, ExpansionPhase.CUT, 1_234_500, 67),
        ProcessorsStatus(8, copied=1_234_567),
    )
    done = _run(url, "--to", "8")
    assert done.exit_code == ExitCode.DONE
    golden(_GOLDEN / "expand.txt", done.output)
    assert done.stdout == done.output.splitlines(keepends=True)[-1]
    assert application.requested == [8]


def test_command_prints_the_remaining_time(
    url: str, application: ExpandingApplication, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headwater.cli.processors._LINE_SECONDS", 0.0)
    catch_up = ExpansionPhase.CATCH_UP
    application.becomes(
        ProcessorsStatus(4, 8, catch_up, 0, 1_000),
        ProcessorsStatus(4, 8, catch_up, 600, 600),
        ProcessorsStatus(8),
    )
    lines = _run(url, "--to", "8").stderr.splitlines()
    assert lines[0] == "shop: catch-up: 1,000 records remaining"
    assert lines[1].startswith("shop: catch-up: 600 records remaining, about ")
    assert lines[1].endswith((" second", " seconds", " minutes"))


def test_progress_is_a_bar_on_a_terminal(
    url: str, application: ExpandingApplication, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADWATER_CONTROL_TOKEN", TOKEN)
    delayed = ProcessorsStatus(4, 8, ExpansionPhase.CATCH_UP, 600, 400, (DELAYED,))
    application.becomes(
        ProcessorsStatus(4, 8, ExpansionPhase.CHECK, 0, 1_000),
        ProcessorsStatus(4, 8, ExpansionPhase.CATCH_UP, 0, 1_000),
        delayed,
        delayed,
        ProcessorsStatus(8),
    )
    command = [sys.executable, "-m", "headwater.cli", "processors", "expand", url, "--to", "8"]
    output = output_on_terminal(command)
    assert "shop: check" in output
    assert "1,000 records remaining" in output
    assert "shop: catch-up" in output
    assert "━━━" in output
    assert "400 records remaining" in output
    *delay, end = [line for line in lines_on_screen(output) if line]
    assert " ".join(delay).startswith("shop: expansion delayed: Partition 0 of orders")
    assert end.startswith("shop has 8 processors."), "the bar is gone"


def test_reached_number_needs_no_expansion(url: str, application: ExpandingApplication) -> None:
    application.status = ProcessorsStatus(8)
    for arguments in (["--to", "8"], ["--to", "8", "--no-wait"]):
        done = _run(url, *arguments)
        assert (done.exit_code, done.stderr) == (ExitCode.DONE, "")
        assert done.stdout == (
            "shop has 8 processors. Declare `processors: 8` in its document, and run `pulumi up`.\n"
        )


def test_command_need_not_wait(url: str, application: ExpandingApplication) -> None:
    done = _run(url, "--to", "8", "--no-wait")
    assert done.exit_code == ExitCode.DONE
    assert done.stdout == (
        "shop is being expanded from 4 to 8 processors. `headwater status` shows the progress.\n"
    )
    assert application.status.target == 8


def test_command_reports_a_request_that_is_refused(
    url: str, application: ExpandingApplication, golden: Golden
) -> None:
    done = _run(url, "--to", "3")
    assert (done.exit_code, done.stdout) == (ExitCode.PROBLEMS, "")
    golden(_GOLDEN / "expand_refused.txt", done.stderr)
    assert application.status.target is None
    assert "Send the token" in _run(url, "--to", "8", token=None).stderr


def test_command_reports_an_expansion_that_is_refused_later(
    url: str, application: ExpandingApplication, golden: Golden
) -> None:
    application.becomes(
        ProcessorsStatus(4, 8, ExpansionPhase.CHECK, 0, 1_000), ProcessorsStatus(4, problems=(DELAYED,))
    )
    done = _run(url, "--to", "8")
    assert (done.exit_code, done.stdout) == (ExitCode.PROBLEMS, "")
    golden(_GOLDEN / "expand_refused_later.txt", done.stderr)


def test_command_reports_a_delay_once_and_waits(
    url: str, application: ExpandingApplication, golden: Golden
) -> None:
    delayed = ProcessorsStatus(4, 8, ExpansionPhase.CATCH_UP, 10, 5, (DELAYED,))
    application.becomes(delayed, delayed, delayed, ProcessorsStatus(8))
    done = _run(url, "--to", "8")
    assert done.exit_code == ExitCode.DONE
    golden(_GOLDEN / "expand_delayed.txt", done.stderr)


@pytest.mark.parametrize("state", [ClientState.PENDING_SHUTDOWN, ClientState.ERROR])
def test_command_reports_that_the_application_has_ended(
    url: str, application: ExpandingApplication, state: ClientState
) -> None:
    application.steps = [lambda: None, lambda: None, lambda: setattr(application, "state", state)]
    done = _run(url, "--to", "8")
    assert (done.exit_code, done.stdout) == (ExitCode.PROBLEMS, "")
    assert f"shop has ended: it is {state.value}.\n  Start the application again" in done.stderr


def test_command_waits_for_an_application_that_is_restarted(
    url: str, application: ExpandingApplication
) -> None:
    def fail() -> None:
        application.state = ClientState.CREATED
        application.status = ProcessorsStatus(None)
        raise RuntimeError("the endpoint does not answer")

    def start() -> None:
        application.state = ClientState.REBALANCING
        application.status = ProcessorsStatus(4, 8, ExpansionPhase.CATCH_UP, 0, 7)

    application.steps = [lambda: None, fail, lambda: None, start]
    application.becomes(ProcessorsStatus(8))
    done = _run(url, "--to", "8")
    assert done.exit_code == ExitCode.DONE
    assert "See its log for the error. Waiting until it answers.\n" in done.stderr
    assert "catch-up: 7 records remaining" in done.stderr


def test_command_ends_if_the_endpoint_does_not_answer_again(
    server: ControlServer, application: ExpandingApplication, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headwater.cli.processors._UNANSWERED_SECONDS", 0.0)

    def fail() -> None:
        raise RuntimeError("the endpoint does not answer")

    application.steps = [lambda: None, fail]
    done = _run(server.url, "--to", "8")
    assert done.exit_code == ExitCode.PROBLEMS
    assert "An expansion that has begun to copy continues by itself." in done.stderr


def test_command_reports_that_a_restart_has_ended_the_expansion(
    url: str, application: ExpandingApplication
) -> None:
    application.becomes(ProcessorsStatus(4, 8, ExpansionPhase.CHECK), ProcessorsStatus(4))
    done = _run(url, "--to", "8")
    assert done.exit_code == ExitCode.PROBLEMS
    assert "shop has 4 processors, and no expansion runs." in done.stderr
    assert "run this command again" in done.stderr


def test_command_reports_another_expansion(url: str, application: ExpandingApplication) -> None:
    application.becomes(ProcessorsStatus(4, 8, ExpansionPhase.CHECK), ProcessorsStatus(8, 16))
    done = _run(url, "--to", "8")
    assert done.exit_code == ExitCode.PROBLEMS
    assert "shop is being expanded to 16 processors." in done.stderr


def test_interrupt_ends_the_command_but_not_the_expansion(
    url: str, application: ExpandingApplication
) -> None:
    application.steps = [lambda: None, lambda: None, lambda: os.kill(os.getpid(), signal.SIGINT)]
    done = _run(url, "--to", "8")
    assert done.exit_code == ExitCode.INTERRUPTED
    assert done.stderr.endswith("Interrupted. The expansion of shop continues.\n")
    assert application.status.target == 8


def test_command_reports_an_application_that_starts() -> None:
    surface = Instruments(StartingApplication("shop"), "shop").added_to(Surface.create("shop", host="here"))
    with ControlServer(surface, Access("127.0.0.1", 0)) as server:
        done = _run(server.url, "--to", "8", token=None)
    assert done.exit_code == ExitCode.PROBLEMS
    assert "shop does not run." in done.stderr


def test_unreachable_application_is_reported_with_a_fix() -> None:
    done = _run("127.0.0.1:1", "--to", "8")
    assert done.exit_code == ExitCode.PROBLEMS
    assert "headwater run --http" in done.stderr


@pytest.mark.parametrize("arguments", [[], ["--to", "0"], ["--to", "many"]])
def test_wrong_options_are_refused_before_anything_is_sent(arguments: list[str]) -> None:
    done = _run("127.0.0.1:1", *arguments)
    assert done.exit_code == ExitCode.USAGE
    assert "--to" in done.stderr
