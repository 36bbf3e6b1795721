"""Stream threads over HTTP, and the commands `headwater threads`."""

import threading
from collections.abc import Iterable, Iterator, Mapping

import attrs
import pytest
from click.testing import CliRunner, Result

from headwater.cli.console import ExitCode
from headwater.cli.main import main
from headwater.control import Access, ControlServer, Surface
from headwater_spark.driver.metrics import Instruments, StartingApplication
from headwater_spark.driver.states import ClientState
from headwater_spark.driver.threads.stream_threads import StreamThreads
from headwater_spark.stream_threads import ProcessorsStatus, ThreadMetadata
from tests.control.conftest import HttpClient

_TOKEN = "s3cret"
_PATH = "/control/threads"


@attrs.define
class _Application:
    """An application without Spark: its stream threads are real."""

    stream_threads: StreamThreads = attrs.field(factory=lambda: StreamThreads("shop", 2, lambda: 3))
    state: ClientState = ClientState.RUNNING
    id: str = "shop"
    problems: tuple[()] = ()
    starting: str = ""
    cluster_problem: str = ""

    @property
    def slots(self) -> int:
        return self.stream_threads.slots

    def stall_reason(self) -> str:
        return ""

    def subtopology_status(self) -> Iterable[Mapping[str, object]]:
        return ()

    def threads(self) -> tuple[ThreadMetadata, ...]:
        return self.stream_threads.metadata()

    def processors(self) -> ProcessorsStatus:
        return ProcessorsStatus(None)

    def expand_processors(self, processors: int) -> None:
        raise NotImplementedError(processors)

    def add_stream_thread(self) -> str | None:
        return self.stream_threads.add(lambda: self.state)

    def remove_stream_thread(self, timeout_seconds: float | None = None) -> str | None:
        return self.stream_threads.remove(lambda: self.state, timeout_seconds)


@pytest.fixture
def application() -> _Application:
    return _Application()


@pytest.fixture
def url(application: _Application) -> Iterator[str]:
    instruments = Instruments(application, "shop")
    surface = instruments.added_to(Surface.create("shop", host="here"))
    instruments.use(application, application.stream_threads)
    with ControlServer(surface, Access("127.0.0.1", 0, _TOKEN)) as server:
        yield server.url


@pytest.fixture
def client(url: str) -> HttpClient:
    return HttpClient(url)


def _post(client: HttpClient, body: Mapping[str, object]) -> tuple[int, Mapping[str, object]]:
    answer = client.post(_PATH, body, {"Authorization": f"Bearer {_TOKEN}"})
    return answer.status, answer.json


def _run(*arguments: str, token: str | None = _TOKEN) -> Result:
    environment = {"HEADWATER_CONTROL_TOKEN": token}
    return CliRunner().invoke(main, ["threads", *arguments], prog_name="headwater", env=environment)


def test_threads_are_listed_added_and_removed(client: HttpClient) -> None:
    listed = client.get(_PATH).json
    assert (listed["state"], listed["slots"]) == ("RUNNING", 3)
    assert listed["threads"] == [
        {"name": f"shop-StreamThread-{index}", "state": "CREATED", "runs": []} for index in (1, 2)
    ]
    status, added = _post(client, {"action": "add"})
    assert (status, added["thread"]) == (200, "shop-StreamThread-3")
    status, removed = _post(client, {"action": "remove"})
    assert (status, removed["thread"]) == (200, "shop-StreamThread-1")
    assert client.get("/status").json["runtime"]["threads"] == removed["threads"]


def test_control_of_threads_needs_the_token(client: HttpClient) -> None:
    assert client.post(_PATH, {"action": "add"}).status == 401
    assert len(client.get(_PATH).json["threads"]) == 2


@pytest.mark.parametrize("action", ["add", "remove"])
@pytest.mark.parametrize(
    "state", [each for each in ClientState if each not in (ClientState.RUNNING, ClientState.REBALANCING)]
)
def test_other_states_are_a_conflict(
    client: HttpClient, application: _Application, state: ClientState, action: str
) -> None:
    application.state = state
    status, answer = _post(client, {"action": action})
    assert (status, answer["state"]) == (409, state.value)
    assert f"the application is {state.value}" in str(answer["error"])
    assert len(application.threads()) == 2


def test_removal_without_a_thread_is_a_conflict(client: HttpClient, application: _Application) -> None:
    application.stream_threads.shut_down()
    status, answer = _post(client, {"action": "remove"})
    assert (status, answer["error"]) == (409, "No stream thread was removed: none is alive.")


def test_removal_that_takes_too_long_is_an_error_and_continues(
    client: HttpClient, application: _Application
) -> None:
    with application.stream_threads.take_threads("0", 2, threading.Event()):
        status, answer = _post(client, {"action": "remove", "timeoutMs": 50})
        assert (status, answer["thread"]) == (504, "shop-StreamThread-1")
        assert [thread.state for thread in application.threads()] == ["PENDING_SHUTDOWN", "RUNNING"]
        done = _run("remove", client.url, "--timeout", "0.05")
        assert done.exit_code == ExitCode.PROBLEMS
        assert "shop-StreamThread-2 still runs a batch after 0.05 s." in done.stderr
    assert application.threads() == ()


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"action": "stop"},
        {"action": "add", "timeoutMs": 1},
        {"action": "remove", "timeoutMs": -1},
        {"action": "remove", "timeoutMs": 0.5},
        {"action": "remove", "timeoutMs": True},
        {"action": "remove", "timeout": 1},
    ],
)
def test_wrong_requests_are_refused_and_change_nothing(
    client: HttpClient, application: _Application, body: Mapping[str, object]
) -> None:
    status, answer = _post(client, body)
    assert status == 400
    assert '"action": "remove", "timeoutMs": N' in str(answer["error"])
    assert len(application.threads()) == 2


def test_metrics_count_threads_that_are_alive_and_that_failed(
    client: HttpClient, application: _Application
) -> None:
    labels = '{client_id="shop"}'
    assert f"alive_stream_threads{labels} 2.0" in client.get("/metrics").text
    application.stream_threads.fail("shop-StreamThread-1", replace=False)
    metrics = client.get("/metrics").text
    assert f"alive_stream_threads{labels} 1.0" in metrics
    assert f"failed_stream_threads_total{labels} 1.0" in metrics


def test_commands_print_the_thread(url: str) -> None:
    assert _run("add", url).stdout == "shop-StreamThread-3 added; 3 stream threads.\n"
    assert _run("remove", url).stdout == "shop-StreamThread-1 removed; 2 stream threads.\n"
    listed = _run("list", url)
    assert listed.exit_code == ExitCode.DONE
    assert listed.stdout.splitlines()[0].split() == ["shop-StreamThread-2", "CREATED", "idle"]
    assert '"slots": 3' in _run("list", url, "--format", "json").stdout


def test_command_says_that_more_threads_than_slots_gain_nothing(url: str) -> None:
    for _ in range(2):
        assert _run("add", url).exit_code == ExitCode.DONE
    note = "4 stream threads, but Spark runs 3 tasks at once: more threads gain nothing."
    assert _run("list", url).stdout.splitlines()[-1] == note
    shown = CliRunner().invoke(main, ["status", url], prog_name="headwater").stdout
    assert note in shown


def test_command_says_that_without_threads_nothing_is_processed(url: str, application: _Application) -> None:
    application.stream_threads.shut_down()
    assert "no record is processed" in _run("list", url).stdout


def test_commands_report_a_refusal(url: str, application: _Application) -> None:
    application.state = ClientState.PENDING_ERROR
    for command in ("add", "remove"):
        done = _run(command, url)
        assert done.exit_code == ExitCode.PROBLEMS
        assert "the application is PENDING_ERROR" in done.stderr
    assert "Send the token" in _run("add", url, token=None).stderr


@pytest.mark.parametrize("timeout", ["-1", "soon"])
def test_wrong_timeouts_are_refused_before_anything_is_sent(timeout: str) -> None:
    done = _run("remove", "127.0.0.1:1", "--timeout", timeout)
    assert done.exit_code == ExitCode.USAGE
    assert "--timeout" in done.stderr


def test_application_that_starts_has_no_threads() -> None:
    starting = StartingApplication("shop")
    with ControlServer(
        Instruments(starting, "shop").added_to(Surface.create("shop", host="here")), Access("127.0.0.1", 0)
    ) as server:
        assert HttpClient(server.url).get(_PATH).json == {"state": "CREATED", "slots": 0, "threads": []}
        done = _run("add", server.url)
    assert "the application is CREATED" in done.stderr
