"""The endpoint over real HTTP: its responses, its access control and its limits."""

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

import pytest
from prometheus_client import Counter

from headwater.control import (
    Access,
    ControlServer,
    Health,
    Refused,
    Route,
    Section,
    Surface,
    access_of,
)
from headwater.model.problems import Problem, ProblemCode, ProblemsError
from tests.control.conftest import HttpClient

ServeEndpoint = Callable[..., HttpClient]
TOKEN = "a-secret-control-token"


def _echo(body: Mapping[str, Any]) -> Mapping[str, Any]:
    if body.get("refuse"):
        raise Refused("Not today.", HTTPStatus.CONFLICT)
    if body.get("fail"):
        raise ValueError(f"inside: {TOKEN}")
    return {"echo": body}


@pytest.fixture
def surface() -> Surface:
    return Surface.create("client-1", host="host-1", headwater="0").with_route(Route("/control/echo", _echo))


def test_status_contains_all_sections(surface: Surface, serve_endpoint: ServeEndpoint) -> None:
    Counter("records", "Records", registry=surface.registry).inc(3)
    client = serve_endpoint(surface.with_section(Section(name="runtime", status=lambda: {"threads": 2})))
    status = client.get("/status")
    assert (status.status, status.headers["Content-Type"]) == (200, "application/json")
    assert status.json["clientId"] == "client-1"
    assert status.json["runtime"] == {"threads": 2}
    metrics = client.get("/metrics?name=x")
    assert metrics.headers["Content-Type"].startswith("text/plain")
    assert "records_total 3.0" in metrics.text
    assert 'failed_stream_threads_total{client_id="client-1"} 0.0' in metrics.text
    assert "process_cpu_seconds_total" in metrics.text
    openmetrics = client.get("/metrics", Accept="application/openmetrics-text; version=1.0.0")
    assert openmetrics.text.endswith("# EOF\n")


def test_health_is_that_of_worst_section(surface: Surface, serve_endpoint: ServeEndpoint) -> None:
    healthy = serve_endpoint(surface)
    assert (healthy.get("/health/live").status, healthy.get("/health/ready").status) == (200, 200)
    parts = surface.with_section(Section(name="a", status=dict)).with_section(
        Section(name="b", status=dict, ready=lambda: Health(ok=False, reason="No cluster."))
    )
    unhealthy = serve_endpoint(parts)
    assert unhealthy.get("/health/live").status == 200
    assert unhealthy.get("/health/ready").status == 503
    assert unhealthy.get("/health/ready").json == {"ok": False, "reason": "No cluster."}
    assert unhealthy.get("/status").json["ready"]["reason"] == "No cluster."


def test_control_without_token_is_limited_to_loopback(
    surface: Surface, serve_endpoint: ServeEndpoint
) -> None:
    assert serve_endpoint(surface).post("/control/echo", {"a": 1}).json == {"echo": {"a": 1}}
    anywhere = serve_endpoint(surface, host="0.0.0.0")  # noqa: S104 - what is tested
    assert anywhere.get("/status").status == 200
    assert anywhere.post("/control/echo", {"a": 1}).status == 403


def test_control_requires_token_if_set(surface: Surface, serve_endpoint: ServeEndpoint) -> None:
    for host in ("127.0.0.1", "0.0.0.0"):  # noqa: S104 - what is tested
        client = serve_endpoint(surface, host=host, token=TOKEN)
        without = client.post("/control/echo", {})
        assert (without.status, without.headers["WWW-Authenticate"]) == (401, "Bearer")
        for wrong in (f"Bearer {TOKEN}x", f"Basic {TOKEN}", "Bearer", "Bearer ", TOKEN, "Bearer ä"):
            assert client.post("/control/echo", {}, {"Authorization": wrong}).status == 401
        assert client.post("/control/echo", {}, {"Authorization": f"Bearer {TOKEN}"}).status == 200
        assert client.get("/metrics").status == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
        ({"Host": "attacker.example:9878"}, 403),
        ({"Host": "localhost:1"}, 200),
        ({"Host": "[::1]:1"}, 200),
    ],
)
def test_browser_pages_cannot_control(
    surface: Surface, serve_endpoint: ServeEndpoint, headers: Mapping[str, str], status: int
) -> None:
    assert serve_endpoint(surface).post("/control/echo", {}, headers).status == status


@pytest.mark.parametrize(
    ("body", "status", "expected"),
    [
        (b"{", 400, "The body is not JSON."),
        (b"[1]", 400, "The body is not a JSON object."),
        (b"\xff", 400, "The body is not JSON."),
        (b"[" * 60_000, 400, "The body is not JSON."),
        (b"{}" + b" " * 70_000, 413, "The body is longer than 65536 bytes."),
        (b'{"refuse": true}', 409, "Not today."),
        (b'{"fail": true}', 500, "The client failed to answer. See its log for the error."),
    ],
)
def test_refused_requests_have_reason(
    surface: Surface, serve_endpoint: ServeEndpoint, body: bytes, status: int, expected: str
) -> None:
    client = serve_endpoint(surface)
    answer = client.post("/control/echo", body)
    assert (answer.status, answer.json) == (status, {"error": expected})
    assert client.get("/health/live").status == 200


def test_unknown_paths_and_methods_are_refused(surface: Surface, serve_endpoint: ServeEndpoint) -> None:
    client = serve_endpoint(surface)
    assert client.get("/nothing").status == 404
    assert client.get("/nothing").json["error"].endswith("/status, /control/echo.")
    assert client.get("/control/echo").json == {"error": "Method not allowed. Use POST /control/echo."}
    assert client.post("/status", {}).status == 405
    assert client.request("DELETE", "/status", None, {}).status == 501
    head = client.request("HEAD", "/status", None, {})
    assert (head.status, head.text) == (200, "")


def test_route_with_a_reader_answers_both_methods(surface: Surface, serve_endpoint: ServeEndpoint) -> None:
    """Reading needs no credentials, control does; a refusal may have further keys."""

    def refuse(_: object) -> dict[str, object]:
        raise Refused("Not now.", HTTPStatus.CONFLICT, {"state": "CREATED"})

    route = Route("/control/both", refuse, lambda: {"state": "CREATED"})
    client = serve_endpoint(surface.with_route(route), token=TOKEN)
    assert client.get("/control/both").json == {"state": "CREATED"}
    assert client.post("/control/both", {}).status == 401
    refused = client.post("/control/both", {}, {"Authorization": f"Bearer {TOKEN}"})
    assert (refused.status, refused.json) == (409, {"error": "Not now.", "state": "CREATED"})
    assert client.get("/nothing").json["error"].endswith("/status, /control/both, /control/echo.")


def test_port_in_use_is_reported(surface: Surface) -> None:
    with ControlServer(surface, Access("127.0.0.1", 0)) as server:
        port = int(server.url.rpartition(":")[2])
        with pytest.raises(ProblemsError) as caught:
            ControlServer(surface, Access("127.0.0.1", port)).start()
    assert caught.value.problems == (
        Problem(
            code=ProblemCode.INVALID_CONFIG,
            summary="The HTTP endpoint cannot listen on its address.",
            expected="an address of this machine and a port that is free",
            found=f"127.0.0.1:{port}: Address already in use",
            why="Metrics, health and status would not be served.",
            fix="Choose another address or port (0 is any free port), or stop the program that listens "
            "there.",
        ),
    )
    ControlServer(surface, Access("127.0.0.1", port)).start().close()


def test_closed_endpoint_does_not_answer(surface: Surface) -> None:
    with ControlServer(surface, Access("127.0.0.1", 0)) as server:
        client = HttpClient(server.url)
        assert client.get("/status").status == 200
    with pytest.raises(OSError, match="refused"):
        client.get("/status")


def test_addresses() -> None:
    assert access_of("127.0.0.1:9878", {}) == Access("127.0.0.1", 9878)
    assert access_of("[::1]:0", {"HEADWATER_CONTROL_TOKEN": "t"}) == Access("::1", 0, "t")
    assert access_of("0.0.0.0:80", {"HEADWATER_CONTROL_TOKEN": ""}).token is None
    assert not access_of("0.0.0.0:80", {}).is_loopback
    assert access_of("localhost:80", {}).is_loopback
    assert TOKEN not in repr(Access("::1", 0, TOKEN))
    for wrong in (
        "9878",
        ":9878",
        "localhost",
        "localhost:x",
        "localhost:65536",
        "localhost:-1",
        "localhost:²",
    ):
        with pytest.raises(ProblemsError):
            access_of(wrong, {})


def test_ipv6(surface: Surface, serve_endpoint: ServeEndpoint) -> None:
    assert serve_endpoint(surface, host="::1").get("/status").status == 200
