"""Answers to requests without a socket: every status, text and header that the endpoint decides."""

import json
from collections.abc import Mapping
from http import HTTPStatus

import pytest

from headwater.control import Access, Health, Refused, Route, Section, Surface, access_of
from headwater.control.answers import LARGEST_BODY, Answer, Request, answer_request
from headwater.model.problems import Problem, ProblemCode, ProblemsError

TOKEN = "a-secret-control-token"
LOCAL = Access("127.0.0.1", 9878)
JSON = {"content-type": "application/json", "host": "localhost:9878"}
PATHS = "/metrics, /health/live, /health/ready, /status, /control/both, /control/echo"


def echo(body: Mapping[str, object]) -> Mapping[str, object]:
    return {"echo": body}


def surface(**health: Health) -> Surface:
    section = Section(
        name="runtime",
        status=lambda: {"threads": 2},
        ready=lambda: health.get("ready", Health()),
        live=lambda: health.get("live", Health()),
    )
    both = Route("/control/both", echo, lambda: {"state": "CREATED"})
    return (
        Surface.create("client-1")
        .with_section(section)
        .with_route(both)
        .with_route(Route("/control/echo", echo))
    )


class Client:
    """Sends requests, and remembers in which order their parts were used."""

    def __init__(self, access: Access = LOCAL) -> None:
        self.access = access
        self.used: list[str] = []
        self.surface = surface()

    def get(self, path: str, method: str = "GET") -> Answer:
        return self.send(method, path, {}, b"")

    def post(self, path: str, body: bytes, headers: Mapping[str, str] | None = None) -> Answer:
        length = {"content-length": str(len(body))}
        return self.send("POST", path, {**length, **(JSON if headers is None else headers)}, body)

    def send(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Answer:
        def read(size: int) -> bytes:
            self.used.append(f"read {size}")
            return body[:size]

        request = Request(method, path, headers, read, "::1", lambda: self.used.append("answer"))
        return answer_request(request, self.surface, self.access)


@pytest.mark.parametrize("accept", ["application/openmetrics-text; version=new", "text/plain; version=x.y"])
def test_metrics_are_answered_whatever_version_is_accepted(accept: str) -> None:
    found = Client().send("GET", "/metrics", {"accept": accept}, b"")
    assert found.status is HTTPStatus.OK
    assert b"failed_stream_threads" in found.content


def refused(found: Answer) -> tuple[int, str]:
    """Return the status and the text of a refusal."""
    content = json.loads(found.content)
    assert content.keys() == {"error"}
    return found.status, content["error"]


@pytest.mark.parametrize(
    ("method", "path", "status", "text"),
    [
        ("GET", "/nothing", 404, f"Path not found. Paths: {PATHS}."),
        ("POST", "/nothing", 404, f"Path not found. Paths: {PATHS}."),
        ("GET", "/control/echo", 405, "Method not allowed. Use POST /control/echo."),
        ("HEAD", "/control/echo", 405, "Method not allowed. Use POST /control/echo."),
        ("POST", "/status", 405, "Method not allowed. Use GET /status."),
        ("PUT", "/control/both/", 405, "Method not allowed. Use GET /control/both or POST /control/both."),
    ],
)
def test_other_paths_and_methods_are_refused(method: str, path: str, status: int, text: str) -> None:
    client = Client()
    assert refused(client.get(path, method)) == (status, text)
    assert not client.used, "a refusal of a method or path needs no body"


@pytest.mark.parametrize("path", ["/status", "/status/", "/status?verbose=1", "/control/both"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_reading_begins_the_answer(path: str, method: str) -> None:
    client = Client(Access("0.0.0.0", 1, TOKEN))  # noqa: S104 - reading needs no credentials
    found = client.get(path, method)
    assert (found.status, found.kind) == (HTTPStatus.OK, "application/json")
    assert client.used == ["answer"]


@pytest.mark.parametrize("path", ["/health/live", "/health/ready"])
def test_health_is_answered_even_when_no_answer_may_begin(path: str) -> None:
    client = Client()
    found = client.get(path)
    assert (found.status, json.loads(found.content)) == (HTTPStatus.OK, {"ok": True, "reason": ""})
    assert not client.used
    client.surface = surface(**{path.removeprefix("/health/"): Health(ok=False, reason="No cluster.")})
    found = client.get(path)
    assert found.status == HTTPStatus.SERVICE_UNAVAILABLE
    assert json.loads(found.content) == {"ok": False, "reason": "No cluster."}


def test_the_reasons_of_all_unhealthy_parts_are_given() -> None:
    both = surface(ready=Health(ok=False, reason="No cluster."))
    more = both.with_section(
        Section(name="agent", status=dict, ready=lambda: Health(ok=False, reason="No leader."))
    )
    assert more.ready() == Health(ok=False, reason="No cluster. No leader.")
    assert more.live() == Health()


def test_the_status_has_a_version_and_the_parts() -> None:
    assert json.loads(Client().get("/status").content) == {
        "version": 1,
        "clientId": "client-1",
        "live": {"ok": True, "reason": ""},
        "ready": {"ok": True, "reason": ""},
        "runtime": {"threads": 2},
    }


def test_a_control_request_is_read_before_its_answer_begins() -> None:
    client = Client()
    found = client.post("/control/echo/", '{"a": "ü"}'.encode())
    assert found == Answer(
        HTTPStatus.OK, '{\n  "echo": {\n    "a": "ü"\n  }\n}\n'.encode(), "application/json"
    )
    assert client.used == ["read 11", "answer"]


def test_the_refusal_of_a_route_has_its_status_and_keys() -> None:
    def refuse(_: object) -> Mapping[str, object]:
        raise Refused("Not now.", more={"state": "CREATED"})

    client = Client()
    client.surface = client.surface.with_route(Route("/control/no", refuse))
    found = client.post("/control/no", b"{}")
    assert found.status == HTTPStatus.BAD_REQUEST
    assert json.loads(found.content) == {"error": "Not now.", "state": "CREATED"}


def test_an_error_of_a_route_shows_nothing_of_it() -> None:
    def fail(_: object) -> Mapping[str, object]:
        raise ValueError(TOKEN)

    client = Client()
    client.surface = client.surface.with_route(Route("/control/no", fail))
    text = "The client failed to answer. See its log for the error."
    assert refused(client.post("/control/no", b"{}")) == (500, text)


@pytest.mark.parametrize(
    ("headers", "status", "text"),
    [
        ({}, 411, "Content-Length header required."),
        ({"transfer-encoding": "chunked"}, 411, "Send Content-Length instead of Transfer-Encoding."),
        (
            {"transfer-encoding": "chunked", "content-length": "2"},
            400,
            "Send Content-Length or Transfer-Encoding, not both.",
        ),
        ({"content-length": "2,2"}, 400, "Content-Length is not one number."),
        ({"content-length": "²"}, 400, "Content-Length is not one number."),
        ({"content-length": "-1"}, 400, "Content-Length is not one number."),
        ({"content-length": "65537"}, 413, "The body is longer than 65536 bytes."),
        ({"content-length": "9" * 9_000}, 413, "The body is longer than 65536 bytes."),
    ],
)
def test_a_body_without_an_acceptable_length_is_not_read(
    headers: Mapping[str, str], status: int, text: str
) -> None:
    client = Client()
    found = client.send("POST", "/control/echo", {**JSON, **headers}, b"{}")
    assert refused(found) == (status, text)
    assert not client.used


@pytest.mark.parametrize(("length", "size"), [("0", 0), ("0002", 2), ("65536", LARGEST_BODY)])
def test_a_body_of_an_acceptable_length_is_read(length: str, size: int) -> None:
    client = Client()
    client.send("POST", "/control/echo", {**JSON, "content-length": length}, b"{}")
    assert client.used[0] == f"read {size}"


NOT_JSON = "Send a JSON object with Content-Type: application/json."
NOT_LOCAL = "Use localhost or the loopback address as the host of the URL."
NO_TOKEN = "This client requires a token for control. Set HEADWATER_CONTROL_TOKEN where it runs."
WRONG_TOKEN = "Send the token of HEADWATER_CONTROL_TOKEN in the header Authorization: Bearer."
ANYWHERE = "0.0.0.0"  # noqa: S104 - what is tested


@pytest.mark.parametrize(
    ("access", "headers", "expected"),
    [
        (LOCAL, {}, (415, NOT_JSON)),
        (LOCAL, {"content-type": ""}, (415, NOT_JSON)),
        (LOCAL, JSON | {"content-type": "text/plain; application/json"}, (415, NOT_JSON)),
        (LOCAL, JSON | {"content-type": "Application/JSON ; charset=utf-8"}, None),
        (LOCAL, JSON, None),
        (LOCAL, JSON | {"host": "127.0.0.9"}, None),
        (LOCAL, JSON | {"host": "[::1]:9878"}, None),
        (LOCAL, JSON | {"host": "LOCALHOST"}, None),
        (LOCAL, JSON | {"host": ""}, (403, NOT_LOCAL)),
        (LOCAL, {"content-type": "application/json"}, (403, NOT_LOCAL)),
        (LOCAL, JSON | {"host": "localhost.attacker.example"}, (403, NOT_LOCAL)),
        (Access(ANYWHERE, 1), JSON, (403, NO_TOKEN)),
        (Access(ANYWHERE, 1, TOKEN), JSON, (401, WRONG_TOKEN)),
        (Access(ANYWHERE, 1, TOKEN), JSON | {"authorization": f"bearer  {TOKEN} "}, None),
        (Access(ANYWHERE, 1, TOKEN), JSON | {"authorization": f"Basic {TOKEN}"}, (401, WRONG_TOKEN)),
        (Access("::1", 1, "two words"), JSON | {"authorization": "Bearer two words"}, None),
        (Access("::1", 1, TOKEN), JSON | {"host": "proxy", "authorization": f"Bearer {TOKEN}"}, None),
    ],
)
def test_who_may_control(
    access: Access, headers: Mapping[str, str], expected: tuple[int, str] | None
) -> None:
    found = Client(access).post("/control/echo", b"{}", headers)
    assert (None if found.status == HTTPStatus.OK else refused(found)) == expected


@pytest.mark.parametrize(
    "address", ["", "9878", ":9878", "localhost", "localhost:", "a:65536", "a:-1", "a:²"]
)
def test_an_address_that_is_not_valid_is_a_problem(address: str) -> None:
    with pytest.raises(ProblemsError) as caught:
        access_of(address, {})
    assert caught.value.problems == (
        Problem(
            code=ProblemCode.INVALID_CONFIG,
            summary="The address of the HTTP endpoint is not valid.",
            expected="HOST:PORT, such as 127.0.0.1:9878; port 0 is any free port",
            found=address,
            why="Metrics, health and status would not be served.",
            fix="Correct the address.",
        ),
    )


def test_the_token_is_never_shown() -> None:
    assert repr(access_of("a:65535", {"HEADWATER_CONTROL_TOKEN": TOKEN})) == (
        "Access(host='a', port=65535, token=***)"
    )
    assert repr(LOCAL) == "Access(host='127.0.0.1', port=9878, token=None)"
