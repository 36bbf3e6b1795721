"""Processors over HTTP: `GET` and `POST /control/processors`, status and metrics."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from headwater.control import Access, ControlServer, Surface
from headwater_spark.driver.metrics import Instruments, StartingApplication
from headwater_spark.driver.states import ClientState
from headwater_spark.stream_threads import ExpansionPhase, ProcessorsStatus
from tests.control.conftest import HttpClient
from tests.control.expanding_application import TOKEN, ExpandingApplication

_PATH = "/control/processors"


@pytest.fixture
def application() -> ExpandingApplication:
    return ExpandingApplication()


@pytest.fixture
def client(application: ExpandingApplication) -> Iterator[HttpClient]:
    with application.serve() as server:
        yield HttpClient(server.url)


def _post(client: HttpClient, body: object) -> tuple[int, Mapping[str, Any]]:
    answer = client.post(_PATH, body, {"Authorization": f"Bearer {TOKEN}"})
    return answer.status, answer.json


def test_processors_are_shown_and_expanded(client: HttpClient, application: ExpandingApplication) -> None:
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


def test_a_number_between_two_doublings_is_accepted(client: HttpClient) -> None:
    code, answer = _post(client, {"processors": 6})
    assert (code, answer["processors"], answer["target"]) == (200, 4, 6)


def test_expansion_needs_the_token(client: HttpClient, application: ExpandingApplication) -> None:
    assert client.post(_PATH, {"processors": 8}).status == 401
    assert application.requested == []


@pytest.mark.parametrize(
    ("given", "processors", "code", "summary"),
    [
        (ExpandingApplication(state=ClientState.PENDING_ERROR), 8, "ExpansionWaits", "shop does not run."),
        (
            ExpandingApplication(ProcessorsStatus(None)),
            8,
            "ProcessorCount",
            "shop has no fixed number of processors.",
        ),
        (
            ExpandingApplication(),
            2,
            "ProcessorCount",
            "shop cannot have 2 instead of 4 processors while it runs.",
        ),
        (
            ExpandingApplication(ProcessorsStatus(4, 8, ExpansionPhase.CATCH_UP)),
            16,
            "ExpansionWaits",
            "shop is being expanded to 8 processors.",
        ),
        (
            ExpandingApplication(ProcessorsStatus(4, 8, ExpansionPhase.CHECK)),
            16,
            "ExpansionWaits",
            "The expansion of shop to 8 processors is being checked, or tried again.",
        ),
    ],
)
def test_refused_expansion_is_a_conflict(
    client: HttpClient,
    application: ExpandingApplication,
    given: ExpandingApplication,
    processors: int,
    *,
    code: str,
    summary: str,
) -> None:
    application.status, application.state = given.status, given.state
    status, answer = _post(client, {"processors": processors})
    assert (status, answer["state"], answer["target"]) == (409, given.state.value, given.status.target)
    (problem,) = answer["problems"]
    assert (problem["code"], problem["summary"]) == (code, summary)
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
def test_wrong_requests_are_refused(
    client: HttpClient, application: ExpandingApplication, body: object
) -> None:
    status, answer = _post(client, body)
    assert status == 400
    assert answer["error"] == 'Send {"processors": N}, with N a whole number from 1 to 2147483647.'
    assert application.requested == []


def test_application_that_starts_has_no_processors() -> None:
    surface = Instruments(StartingApplication("shop"), "shop").added_to(Surface.create("shop", host="here"))
    with ControlServer(surface, Access("127.0.0.1", 0)) as server:
        shown = HttpClient(server.url).get(_PATH).json
        assert (shown["state"], shown["processors"]) == ("CREATED", None)


def test_metrics_show_processors_and_what_remains(
    client: HttpClient, application: ExpandingApplication
) -> None:
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
