"""The command `headwater status` on the endpoint of an application."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import attrs
import pytest
from click.testing import CliRunner, Result

from headwater.cli.console import ExitCode
from headwater.cli.main import main
from headwater.control import Access, ControlServer, Surface
from headwater.model.problems import Problem, ProblemCode
from headwater_spark.driver.metrics import Instruments
from headwater_spark.driver.queries.progress import NO_PROGRESS
from headwater_spark.driver.states import ClientState
from headwater_spark.stream_threads import ExpansionPhase, ProcessorsStatus, ThreadMetadata
from tests.control.conftest import HttpClient

_PART = {
    **NO_PROGRESS,
    "id": "0",
    "restarts": 0,
    "lag": 7,
    "parallelism": 3,
    "sources": ["orders"],
    "waitsFor": "records",
    "secondsWithoutProgress": 0.0,
    "batchSeconds": 1.5,
    "taskSeconds": 42.0,
    "slowTasks": [],
    "stalled": False,
    "failure": "",
}


@attrs.define
class _Application:
    state: ClientState = ClientState.RUNNING
    id: str = "shop"
    problems: tuple[()] = ()
    stall: str = ""
    cluster_problem: str = ""
    starting: str = ""
    slots: int = 2
    expansion: ProcessorsStatus = attrs.field(factory=lambda: ProcessorsStatus(None))

    def processors(self) -> ProcessorsStatus:
        return self.expansion

    def threads(self) -> tuple[ThreadMetadata, ...]:
        return (ThreadMetadata(name="shop-StreamThread-1", state="RUNNING", runs=("0",)),)

    def stall_reason(self) -> str:
        return self.stall

    def subtopology_status(self) -> Iterable[Mapping[str, object]]:
        return ({**_PART, "state": "RUNNING"},)


@pytest.fixture
def application() -> _Application:
    return _Application()


@pytest.fixture
def url(application: Any) -> Iterator[str]:  # noqa: ANN401 - replaces one on Spark
    surface = Instruments(application).added_to(Surface.create("shop-1", host="here"))
    with ControlServer(surface, Access("127.0.0.1", 0)) as server:
        yield server.url


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["status", *arguments], prog_name="headwater")


def test_a_running_application_is_shown_as_a_table(url: str) -> None:
    done = _run(url.removeprefix("http://"))
    assert done.exit_code == ExitCode.DONE
    assert done.stdout.splitlines()[0].split() == ["shop", "RUNNING"]
    assert done.stdout.splitlines()[2].split() == [
        *["0", "RUNNING", "3", "0", "0", "0", "7", "0", "B"],
        "orders",
    ]
    assert done.stdout.splitlines()[3].split() == ["shop-StreamThread-1", "RUNNING", "sub-topology", "0"]


@pytest.mark.parametrize(
    ("expansion", "line"),
    [
        (ProcessorsStatus(4), "processors: 4"),
        (
            ProcessorsStatus(4, 8, ExpansionPhase.CATCH_UP, 300_000, 1_234_567),
            "processors: 4 (expanding to 8: catch-up, 1.2 million records remaining)",
        ),
        (
            ProcessorsStatus(4, 16, ExpansionPhase.CUT, 300_000, 1_234),
            "processors: 4 (expanding to 16: cut, 1,234 records remaining)",
        ),
    ],
)
def test_processors_and_their_expansion_are_shown(
    url: str, application: _Application, expansion: ProcessorsStatus, line: str
) -> None:
    application.expansion = expansion
    assert _run(url).stdout.splitlines()[3] == line


def test_expansion_that_was_refused_or_is_delayed_is_shown(url: str, application: _Application) -> None:
    problem = Problem(code=ProblemCode.UNPROCESSED_RECORDS, summary="A record waits.", fix="Wait.")
    application.expansion = ProcessorsStatus(4, problems=(problem,))
    assert "expansion refused: A record waits." in _run(url).stdout
    application.expansion = ProcessorsStatus(4, 8, ExpansionPhase.CATCH_UP, problems=(problem,))
    assert "expansion delayed: A record waits." in _run(url).stdout


def test_application_without_a_number_of_processors_shows_none(url: str) -> None:
    assert "processors" not in _run(url).stdout


def test_json_and_exit_code_are_for_programs(url: str, application: _Application) -> None:
    application.state = ClientState.REBALANCING
    done = _run(url, "--format", "json")
    assert done.exit_code == ExitCode.PROBLEMS
    assert json.loads(done.stdout)["runtime"]["state"] == "REBALANCING"


def test_stalled_application_is_neither_ready_nor_live(url: str, application: _Application) -> None:
    assert {_health(url, path) for path in ("live", "ready")} == {(200, "")}
    application.stall = "Sub-topology 0 has made no progress for 300 s."
    assert {_health(url, path) for path in ("live", "ready")} == {(503, application.stall)}
    assert _run(url).exit_code == ExitCode.PROBLEMS


@pytest.mark.parametrize("state", [ClientState.RUNNING, ClientState.REBALANCING])
def test_application_whose_brokers_do_not_answer_is_alive_but_not_ready(
    url: str, application: _Application, state: ClientState
) -> None:
    """A query that fails meanwhile is restarted, so the client is not RUNNING."""
    application.state = state
    assert 'headwater_runtime_cluster_readable{application_id="shop"} 1.0' in _metrics(url)
    application.cluster_problem = "No Kafka broker can be reached."
    assert _health(url, "ready") == (503, "The cluster cannot be read: No Kafka broker can be reached.")
    assert _health(url, "live") == (200, "")
    assert 'headwater_runtime_cluster_readable{application_id="shop"} 0.0' in _metrics(url)
    status = HttpClient(url).get("/status").json["runtime"]
    assert (status["clusterReadable"], status["clusterProblem"]) == (False, application.cluster_problem)
    done = _run(url)
    assert done.exit_code == ExitCode.PROBLEMS
    assert "cluster not readable: No Kafka broker can be reached." in done.stdout


def test_metrics_show_a_stall(url: str) -> None:
    metrics = _metrics(url)
    labels = '{application_id="shop",subtopology_id="0"}'
    assert f"headwater_runtime_stalled{labels} 0.0" in metrics
    assert f"headwater_runtime_seconds_without_progress{labels} 0.0" in metrics
    assert f"headwater_runtime_batch_seconds{labels} 1.5" in metrics
    assert f"headwater_runtime_task_seconds{labels} 42.0" in metrics


def _metrics(url: str) -> str:
    return HttpClient(url).get("/metrics").text


def _health(url: str, path: str) -> tuple[int, str]:
    answer = HttpClient(url).get(f"/health/{path}")
    return answer.status, answer.json["reason"]


def test_unreachable_application_is_reported_with_a_fix() -> None:
    done = _run("127.0.0.1:1")
    assert done.exit_code == ExitCode.PROBLEMS
    assert "headwater run --http" in done.stderr
    assert done.stdout == ""


def test_endpoint_of_an_agent_is_rejected() -> None:
    with ControlServer(Surface.create("agent-1", host="here"), Access("127.0.0.1", 0)) as server:
        done = _run(server.url)
    assert done.exit_code == ExitCode.PROBLEMS
    assert "is not the endpoint of an application that `headwater run` runs" in done.stderr
