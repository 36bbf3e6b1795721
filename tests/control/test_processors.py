"""Processors over HTTP, and the command `headwater processors expand`."""

import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest
from click.testing import CliRunner, Result

from infra.cli.exit_codes import ExitCode
from infra.cli.main import main
from infra.model.problems import Problem, ProblemCode, ProblemsError
from spark_jobs.control import Access, ControlServer, Surface
from spark_jobs.processor_expansion import ExpansionPhase, ProcessorsStatus
from spark_jobs.runtime.driver.metrics import Instruments
from spark_jobs.runtime.driver.processor_move import problems
from spark_jobs.runtime.driver.starting import StartingApplication
from spark_jobs.runtime.driver.states import ClientState
from spark_jobs.stream_threads import ThreadMetadata
from tests.cli.screen import lines_on_screen, output_on_terminal
from tests.control.conftest import HttpClient

Golden = Callable[[Path, str], None]
_GOLDEN = Path(__file__).parent / "golden"
_TOKEN = "s3cret"
_PATH = "/control/processors"
_FOUR = ProcessorsStatus(4)
_DELAYED = Problem(
    code=ProblemCode.STATE_NOT_MOVABLE,
    application="shop",
    topic="orders",
    summary="Partition 0 of orders has a record at offset 7 that was written with another partition count.",
    expected="records of keys whose partition this is",
    found="a record of another partition",
    why="The state of its key would be with another processor.",
    fix="Wait until all producers know the added partitions.",
)


@attrs.define
class _Application:
    """An application without Spark. Each reading of its processors executes the next step of `steps`."""

    status: ProcessorsStatus = _FOUR
    state: ClientState = ClientState.RUNNING
    id: str = "shop"
    problems: tuple[()] = ()
    starting: str = ""
    slots: int = 2
    steps: list[Callable[[], object]] = attrs.field(factory=list)
    requested: list[int] = attrs.field(factory=list)

    def stall_reason(self) -> str:
        return ""

    def subtopology_status(self) -> Iterable[Mapping[str, object]]:
        return ()

    def threads(self) -> tuple[ThreadMetadata, ...]:
        return ()

    def processors(self) -> ProcessorsStatus:
        if self.steps:
            self.steps.pop(0)()
        return self.status

    def expand_processors(self, processors: int) -> None:
        self.requested.append(processors)
        present, target = self.status.processors, self.status.target
        if processors == (target or present):
            return
        if self.state is not ClientState.RUNNING:
            raise ProblemsError([problems.not_running(self.id, self.state.value)])
        if present is None:
            raise ProblemsError([problems.without_processors(self.id, None)])
        if target is not None:
            raise ProblemsError([problems.other_expansion(self.id, target, processors)])
        if processors < present or processors % present:
            found = problems.not_doubled(self.id, present, processors, None, is_live=True)
            raise ProblemsError([found])
        self.status = ProcessorsStatus(present, processors, ExpansionPhase.CHECK)

    def becomes(self, *statuses: ProcessorsStatus) -> None:
        """Show these statuses, one for each further reading."""
        for status in statuses:
            self.steps.append(lambda status=status: setattr(self, "status", status))  # type: ignore[misc]


@pytest.fixture
def application() -> _Application:
    return _Application()


@pytest.fixture
def server(application: Any) -> Iterator[ControlServer]:  # noqa: ANN401 - replaces one on Spark
    surface = Instruments(application, "shop").added_to(Surface.of("shop", host="here"))
    with ControlServer(surface, Access("127.0.0.1", 0, _TOKEN)) as server:
        yield server


@pytest.fixture
def url(server: ControlServer) -> str:
    return server.url


@pytest.fixture
def client(url: str) -> HttpClient:
    return HttpClient(url)


@pytest.fixture(autouse=True)
def _polls_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("infra.cli.processors_expand._POLL_SECONDS", 0.01)


def _post(client: HttpClient, body: object) -> tuple[int, Mapping[str, Any]]:
    answer = client.post(_PATH, body, {"Authorization": f"Bearer {_TOKEN}"})
    return answer.status, answer.json


def _run(*arguments: str, token: str | None = _TOKEN) -> Result:
    environment = {"HEADWATER_CONTROL_TOKEN": token}
    command = ["processors", "expand", *arguments]
    return CliRunner().invoke(main, command, prog_name="headwater", env=environment)


def test_processors_are_shown_and_expanded(client: HttpClient, application: _Application) -> None:
    shown = client.get(_PATH).json
    assert shown == {
        "application": "shop",
        "state": "RUNNING",
        "processors": 4,
        "target": None,
        "phase": "idle",
        "copied": 0,
        "remaining": 0,
        "problems": [],
    }
    expanding = {**shown, "target": 8, "phase": "check"}
    assert _post(client, {"processors": 8}) == (200, expanding)
    assert _post(client, {"processors": 8}) == (200, expanding)
    in_status = client.get("/status").json["runtime"]["processors"]
    assert in_status == {
        key: value for key, value in expanding.items() if key not in ("application", "state")
    }
    assert application.requested == [8, 8]


def test_expansion_needs_the_token(client: HttpClient, application: _Application) -> None:
    assert client.post(_PATH, {"processors": 8}).status == 401
    assert application.requested == []


@pytest.mark.parametrize(
    ("given", "processors", "summary"),
    [
        (_Application(state=ClientState.PENDING_ERROR), 8, "shop does not run."),
        (_Application(ProcessorsStatus(None)), 8, "shop has no fixed number of processors."),
        (_Application(), 6, "shop cannot have 6 instead of 4 processors."),
        (_Application(), 2, "shop cannot have 2 instead of 4 processors."),
        (_Application(ProcessorsStatus(4, 8)), 16, "shop is being expanded to 8 processors."),
    ],
)
def test_refused_expansion_is_a_conflict(
    client: HttpClient, application: _Application, given: _Application, processors: int, summary: str
) -> None:
    application.status, application.state = given.status, given.state
    code, answer = _post(client, {"processors": processors})
    assert (code, answer["state"], answer["target"]) == (409, given.state.value, given.status.target)
    (problem,) = answer["problems"]
    assert (problem["code"], problem["summary"]) == ("StateNotMovable", summary)
    assert problem["fix"]
    assert answer["error"] == f"{summary} {problem['fix']}"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"processors": 0},
        {"processors": -8},
        {"processors": 2**31},
        {"processors": True},
        {"processors": 8.0},
        {"processors": "8"},
        {"processors": None},
        {"processors": 8, "wait": True},
        {"to": 8},
    ],
)
def test_wrong_requests_are_refused(client: HttpClient, application: _Application, body: object) -> None:
    status, answer = _post(client, body)
    assert status == 400
    assert answer["error"] == 'Send {"processors": N}, with N a whole number from 1 to 2147483647.'
    assert application.requested == []


def test_application_that_starts_has_no_processors() -> None:
    surface = Instruments(StartingApplication("shop"), "shop").added_to(Surface.of("shop", host="here"))
    with ControlServer(surface, Access("127.0.0.1", 0)) as server:
        shown = HttpClient(server.url).get(_PATH).json
        assert (shown["state"], shown["processors"]) == ("CREATED", None)
        done = _run(server.url, "--to", "8", token=None)
    assert done.exit_code == ExitCode.PROBLEMS
    assert "shop does not run." in done.stderr


def test_metrics_show_processors_and_what_remains(client: HttpClient, application: _Application) -> None:
    def samples() -> list[str]:
        prefixes = ("headwater_runtime_processors", "headwater_runtime_expansion")
        return [line for line in client.get("/metrics").text.splitlines() if line.startswith(prefixes)]

    label = 'application_id="shop"'
    assert samples() == [
        f"headwater_runtime_processors{{{label}}} 4.0",
        f"headwater_runtime_processors_target{{{label}}} 4.0",
    ]
    application.status = ProcessorsStatus(4, 8, ExpansionPhase.CATCH_UP, 3, 1_000)
    assert samples() == [
        f"headwater_runtime_processors{{{label}}} 4.0",
        f"headwater_runtime_processors_target{{{label}}} 8.0",
        f'headwater_runtime_expansion_remaining_records{{{label},phase="catch-up"}} 1000.0',
    ]
    application.status = ProcessorsStatus(None)
    assert samples() == []


def test_command_waits_until_the_processors_are_added(
    url: str, application: _Application, golden: Golden
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
    url: str, application: _Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("infra.cli.expansion_progress._LINE_SECONDS", 0.0)
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
    url: str, application: _Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADWATER_CONTROL_TOKEN", _TOKEN)
    delayed = ProcessorsStatus(4, 8, ExpansionPhase.CATCH_UP, 600, 400, (_DELAYED,))
    application.becomes(
        ProcessorsStatus(4, 8, ExpansionPhase.CHECK, 0, 1_000),
        ProcessorsStatus(4, 8, ExpansionPhase.CATCH_UP, 0, 1_000),
        delayed,
        delayed,
        ProcessorsStatus(8),
    )
    command = [sys.executable, "-m", "infra.cli", "processors", "expand", url, "--to", "8"]
    output = output_on_terminal(command)
    assert "shop: check" in output
    assert "1,000 records remaining" in output
    assert "shop: catch-up" in output
    assert "━━━" in output
    assert "400 records remaining" in output
    *delay, end = [line for line in lines_on_screen(output) if line]
    assert " ".join(delay).startswith("shop: expansion delayed: Partition 0 of orders")
    assert end.startswith("shop has 8 processors."), "the bar is gone"


def test_reached_number_needs_no_expansion(url: str, application: _Application) -> None:
    application.status = ProcessorsStatus(8)
    for arguments in (["--to", "8"], ["--to", "8", "--no-wait"]):
        done = _run(url, *arguments)
        assert (done.exit_code, done.stderr) == (ExitCode.DONE, "")
        assert done.stdout == (
            "shop has 8 processors. Declare `processors: 8` in its document, and run `pulumi up`.\n"
        )


def test_command_need_not_wait(url: str, application: _Application) -> None:
    done = _run(url, "--to", "8", "--no-wait")
    assert done.exit_code == ExitCode.DONE
    assert done.stdout == (
        "shop is being expanded from 4 to 8 processors. `headwater status` shows the progress.\n"
    )
    assert application.status.target == 8


def test_command_reports_a_request_that_is_refused(
    url: str, application: _Application, golden: Golden
) -> None:
    done = _run(url, "--to", "6")
    assert (done.exit_code, done.stdout) == (ExitCode.PROBLEMS, "")
    golden(_GOLDEN / "expand_refused.txt", done.stderr)
    assert application.status.target is None
    assert "Send the token" in _run(url, "--to", "8", token=None).stderr


def test_command_reports_an_expansion_that_is_refused_later(
    url: str, application: _Application, golden: Golden
) -> None:
    application.becomes(
        ProcessorsStatus(4, 8, ExpansionPhase.CHECK, 0, 1_000), ProcessorsStatus(4, problems=(_DELAYED,))
    )
    done = _run(url, "--to", "8")
    assert (done.exit_code, done.stdout) == (ExitCode.PROBLEMS, "")
    golden(_GOLDEN / "expand_refused_later.txt", done.stderr)


def test_command_reports_a_delay_once_and_waits(url: str, application: _Application, golden: Golden) -> None:
    delayed = ProcessorsStatus(4, 8, ExpansionPhase.CATCH_UP, 10, 5, (_DELAYED,))
    application.becomes(delayed, delayed, delayed, ProcessorsStatus(8))
    done = _run(url, "--to", "8")
    assert done.exit_code == ExitCode.DONE
    golden(_GOLDEN / "expand_delayed.txt", done.stderr)


@pytest.mark.parametrize("state", [ClientState.PENDING_SHUTDOWN, ClientState.ERROR])
def test_command_reports_that_the_application_has_ended(
    url: str, application: _Application, state: ClientState
) -> None:
    application.steps = [lambda: None, lambda: None, lambda: setattr(application, "state", state)]
    done = _run(url, "--to", "8")
    assert (done.exit_code, done.stdout) == (ExitCode.PROBLEMS, "")
    assert f"shop has ended: it is {state.value}.\n  Start the application again" in done.stderr


def test_command_waits_for_an_application_that_is_restarted(url: str, application: _Application) -> None:
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
    server: ControlServer, application: _Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("infra.cli.processors_expand._UNANSWERED_SECONDS", 0.0)

    def fail() -> None:
        raise RuntimeError("the endpoint does not answer")

    application.steps = [lambda: None, fail]
    done = _run(server.url, "--to", "8")
    assert done.exit_code == ExitCode.PROBLEMS
    assert "An expansion that has begun to copy continues by itself." in done.stderr


def test_command_reports_that_a_restart_has_ended_the_expansion(url: str, application: _Application) -> None:
    application.becomes(ProcessorsStatus(4, 8, ExpansionPhase.CHECK), ProcessorsStatus(4))
    done = _run(url, "--to", "8")
    assert done.exit_code == ExitCode.PROBLEMS
    assert "shop has 4 processors, and no expansion runs." in done.stderr
    assert "run this command again" in done.stderr


def test_command_reports_another_expansion(url: str, application: _Application) -> None:
    application.becomes(ProcessorsStatus(4, 8, ExpansionPhase.CHECK), ProcessorsStatus(8, 16))
    done = _run(url, "--to", "8")
    assert done.exit_code == ExitCode.PROBLEMS
    assert "shop is being expanded to 16 processors." in done.stderr


def test_interrupt_ends_the_command_but_not_the_expansion(url: str, application: _Application) -> None:
    application.steps = [lambda: None, lambda: None, lambda: os.kill(os.getpid(), signal.SIGINT)]
    done = _run(url, "--to", "8")
    assert done.exit_code == ExitCode.INTERRUPTED
    assert done.stderr.endswith("Interrupted. The expansion of shop continues.\n")
    assert application.status.target == 8


def test_unreachable_application_is_reported_with_a_fix() -> None:
    done = _run("127.0.0.1:1", "--to", "8")
    assert done.exit_code == ExitCode.PROBLEMS
    assert "headwater run --http" in done.stderr


@pytest.mark.parametrize("arguments", [[], ["--to", "0"], ["--to", "many"]])
def test_wrong_options_are_refused_before_anything_is_sent(arguments: list[str]) -> None:
    done = _run("127.0.0.1:1", *arguments)
    assert done.exit_code == ExitCode.USAGE
    assert "--to" in done.stderr
