"""The commands that show and switch agents, with real endpoints and golden texts."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import attrs
import pytest
from click.testing import CliRunner, Result
from jsonschema import Draft202012Validator

from headwater.agent.documents import SwitchedDocuments
from headwater.agent.instruments import AgentInstruments
from headwater.agent.state import AgentState, agent_status
from headwater.cli.main import main
from headwater.control import TOKEN_VARIABLE, Access, ControlServer, Section, Surface, access_of
from headwater.control.client import full_url, send_request
from headwater.kafka.journal_lines import JournalLine, history_json, past_expansions
from headwater.model.expansions import ExpansionEntry, Stage
from headwater.model.problems import Location
from headwater.model.topology import Application, TopologyDocument
from headwater.report.agents import Client, list_applications
from headwater.toolchain.broker.readiness import until
from tests.control.conftest import HttpClient
from tests.control.states import FOLLOWING, LEADING, OVER_PARTITIONED, REFUSED, UNREADABLE

Golden = Callable[[Path, str], None]
_HERE = Path(__file__).parent / "golden"
_SCHEMA = Path(__file__).parents[2] / "topology_schemas" / "agent-status.v1.schema.json"
_NOW = "2026-11-21T15:40:02Z"


class _Documents:
    def current(self) -> tuple[TopologyDocument, ...]:
        return self._documents

    def refresh(self) -> tuple[()]:
        return ()

    _documents = (TopologyDocument(Application(id="orders-app", at=Location("orders.yaml"))),)


@attrs.define
class Agent:
    url: str
    documents: SwitchedDocuments
    woken: list[None]


@pytest.fixture
def agent() -> Iterator[Callable[..., Agent]]:
    """Serve an agent in a given state: `agent("agent-1", LEADING)`."""
    servers = []

    def serve(client_id: str, state: AgentState, token: str | None = None, trouble: str = "") -> Agent:
        surface = Surface.create(client_id, host="host-1", headwater="0.1.0")
        instruments = AgentInstruments(surface.registry, client_id, lambda: trouble)
        instruments.record_state(state)
        instruments._read_at = _NOW if state.observed_at_ms else None
        switched, woken = SwitchedDocuments(_Documents()), list[None]()
        surface = surface.with_section(instruments.section()).with_route(
            switched.route(lambda: woken.append(None))
        )
        servers.append(ControlServer(surface, Access("127.0.0.1", 0, token)).start())
        return Agent(servers[-1].url, switched, woken)

    yield serve
    for server in servers:
        server.close()


@pytest.fixture
def redirecting() -> Iterator[Callable[[str, int], str]]:
    """Serve redirects to another address: `redirecting(url, 301)` returns the URL that redirects."""
    servers: list[HTTPServer] = []

    def serve(target: str, code: int) -> str:
        class Redirect(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(code)
                self.send_header("Location", target + self.path)
                self.end_headers()

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                self.do_GET()

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
                """Print nothing."""

        servers.append(HTTPServer(("127.0.0.1", 0), Redirect))
        Thread(target=servers[-1].serve_forever, args=(0.05,), daemon=True).start()
        return f"http://127.0.0.1:{servers[-1].server_address[1]}"

    yield serve
    for server in servers:
        server.shutdown()
        server.server_close()


def _run(*arguments: str, **environment: str) -> Result:
    return CliRunner().invoke(main, ["agent", *arguments], env=environment)


def test_status_of_several_agents(agent: Callable[..., Agent], golden: Golden) -> None:
    agents = [
        agent("agent-2", FOLLOWING),
        agent("agent-1", LEADING),
        agent(
            "agent-3", UNREADABLE, trouble="GROUP_AUTHORIZATION_FAILED: Broker: Group authorization failed"
        ),
    ]
    done = _run("status", *(each.url for each in agents), "http://127.0.0.1:1")
    golden(_HERE / "status.txt", done.stdout)
    assert done.exit_code == 1


def test_status_without_problems(agent: Callable[..., Agent], golden: Golden) -> None:
    done = _run("status", agent("agent-1", LEADING).url)
    golden(_HERE / "status_of_one.txt", done.stdout)
    assert done.exit_code == 0


def test_status_shows_a_fix_of_several_topics_once(agent: Callable[..., Agent]) -> None:
    problems = tuple(
        attrs.evolve(OVER_PARTITIONED, topic=f"t-{number}", summary=f"t-{number} is too large.")
        for number in range(12)
    )
    refused = attrs.evolve(REFUSED, problems=problems)
    state = attrs.evolve(LEADING, applications={refused.id: refused})
    done = _run("status", agent("agent-1", state).url, COLUMNS="200")
    notes = [line for line in done.stdout.splitlines() if "OverPartitioned" in line]

    assert [line for line in notes if "is too large." in line] == [
        f"payments-app: OverPartitionedInternalTopic: t-{number} is too large." for number in range(10)
    ]
    assert notes[10:] == [
        "payments-app: OverPartitionedInternalTopic: and 2 more problems",
        f"payments-app: OverPartitionedInternalTopic: {OVER_PARTITIONED.fix}",
    ]


def test_status_as_json(agent: Callable[..., Agent]) -> None:
    leading, following = agent("agent-1", LEADING), agent("agent-2", FOLLOWING)
    done = _run("status", following.url, leading.url, "--format", "json")
    document = json.loads(done.stdout)
    schema = json.loads(_SCHEMA.read_text(encoding="utf-8"))
    for client in document["clients"]:
        Draft202012Validator(schema).validate(client["status"])
    [orders, *_] = document["applications"]
    assert orders["phase"] == "expanding"  # as the leader reports
    assert orders["parallelism"] == [
        {"subtopology": 0, "current": 6, "expected": 6},
        {"subtopology": 1, "current": 6, "expected": 6},  # the maximum over both
    ]


def test_silent_agents_do_not_delay_status() -> None:
    begin = time.monotonic()
    done = _run("status", *(f"127.0.0.1:{port}" for port in range(1, 9)))
    assert done.exit_code == 1
    assert done.stdout.count("Connection refused") == 8
    assert time.monotonic() - begin < 100


def test_unknown_answers_of_endpoints_are_tolerated() -> None:
    client = Client("http://a", {"clientId": "a\x1b[2J", "agent": {"applications": [{"id": "x"}]}})
    [application] = list_applications(
        [client, Client("http://b", {"runtime": {}}), Client("http://c", error="x")]
    )
    assert application.id == "x"
    assert application.parallelism == ()


@pytest.fixture
def another_program() -> Iterator[Callable[[bytes], str]]:
    """Serve the same JSON for every request, as another program on the port would."""
    servers = []

    def serve(content: bytes) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                self.send_response(200)
                self.end_headers()
                self.wfile.write(content)

            do_POST = do_GET  # noqa: N815 - the name in http.server

            def log_message(self, *_: object) -> None:
                pass

        servers.append(HTTPServer(("127.0.0.1", 0), Handler))
        Thread(target=servers[-1].serve_forever, daemon=True).start()
        return f"127.0.0.1:{servers[-1].server_port}"

    yield serve
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("content", [b'{"status": "UP"}', b'{"runtime": null}', b"[" * 100_000])
def test_answers_of_another_program_are_refused(
    another_program: Callable[[bytes], str], content: bytes
) -> None:
    address = another_program(content)
    for command in (
        ("status", address),
        ("threads", "list", address),
        ("threads", "add", address),
        ("threads", "remove", address),
        ("processors", "expand", address, "--to", "4"),
        ("processors", "expand", address, "--to", "4", "--no-wait"),
        ("agent", "status", address),
        ("agent", "autoscaling", "on", address),
    ):
        done = CliRunner().invoke(main, command)
        assert done.exit_code == 1, command
        assert address in done.output
        assert "Use the address of" in done.stderr or "is not the endpoint of" in done.stderr
        assert "Error in Headwater itself" not in done.output


def test_watch_updates_until_interrupted(serve_endpoint: Callable[..., HttpClient]) -> None:
    requests: list[None] = []

    def status() -> Mapping[str, Any]:
        requests.append(None)
        return agent_status(LEADING, _NOW)

    surface = Surface.create("agent-1", host="host-1").with_section(Section(name="agent", status=status))
    url = serve_endpoint(surface).url
    command = [sys.executable, "-m", "headwater.cli", "agent", "status", url, "--watch", "--interval", "0.1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as watching:
        try:
            assert until(lambda: len(requests) > 3, 60)
            watching.send_signal(signal.SIGINT)
            output, complaints = watching.communicate(timeout=60)
        finally:
            watching.kill()
    assert watching.returncode == 130
    assert "orders-app" in output
    assert "Traceback" not in complaints


def test_watch_requires_table() -> None:
    assert _run("status", "--watch", "--format", "json").exit_code == 64


@pytest.mark.parametrize("address", ["ftp://a", "http://", "http://a/status", "http://a?x"])
def test_invalid_addresses_are_refused(address: str) -> None:
    assert _run("status", address).exit_code == 64


def test_addresses_are_completed() -> None:
    assert full_url("agent-1") == "http://agent-1:9878"
    assert full_url("agent-1:80") == "http://agent-1:80"
    assert full_url("https://agents.example/") == "https://agents.example"


def test_autoscaling_is_switched(agent: Callable[..., Agent]) -> None:
    one, other = agent("agent-1", LEADING), agent("agent-2", FOLLOWING)
    done = _run("autoscaling", "on", one.url, other.url, "--application", "orders-app")
    assert done.exit_code == 0
    assert done.stdout == (
        f"{one.url}: autoscaling is on for orders-app.\n{other.url}: autoscaling is on for orders-app.\n"
    )
    for each in (one, other):
        [document] = each.documents.current()
        assert document.application.config["partition.autoscaling.enabled"] == "true"
        assert each.woken
    done = _run("autoscaling", "off", one.url, "--application", "odrers-app")
    assert done.exit_code == 1
    assert (
        done.stderr
        == f"{one.url}: This agent has no application 'odrers-app'. Its applications: orders-app.\n"
    )


def test_autoscaling_is_switched_with_token(agent: Callable[..., Agent]) -> None:
    locked = agent("agent-1", LEADING, token="t0ken")
    done = _run("autoscaling", "off", locked.url)
    assert done.exit_code == 1
    assert "HEADWATER_CONTROL_TOKEN" in done.stderr
    assert _run("autoscaling", "off", locked.url, HEADWATER_CONTROL_TOKEN="t0ken").exit_code == 0
    [document] = locked.documents.current()
    assert document.application.config["partition.autoscaling.enabled"] == "false"


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_a_redirect_of_a_control_request_is_not_followed(
    agent: Callable[..., Agent], code: int, redirecting: Callable[[str, int], str]
) -> None:
    target = agent("agent-1", LEADING)
    url = redirecting(target.url, code)
    assert send_request(url, "/status")["clientId"] == "agent-1"
    done = _run("autoscaling", "off", url)
    assert (done.exit_code, done.stdout) == (1, "")
    assert f"redirects to {target.url}/control/autoscaling" in done.stderr
    assert not target.woken


def test_a_token_may_end_with_a_line_break() -> None:
    """Files of secrets often do."""
    assert access_of("127.0.0.1:0", {TOKEN_VARIABLE: "t0ken\n"}).token == "t0ken"
    assert access_of("127.0.0.1:0", {TOKEN_VARIABLE: "\n"}).token is None


@pytest.mark.parametrize("token", ["s3cret\nmore", "s3cret\N{EURO SIGN}"])
def test_a_token_that_cannot_be_sent_is_not_shown(agent: Callable[..., Agent], token: str) -> None:
    done = _run("autoscaling", "off", agent("agent-1", LEADING).url, HEADWATER_CONTROL_TOKEN=token)
    assert done.exit_code == 1
    assert "HEADWATER_CONTROL_TOKEN has a character that no token may have" in done.stderr
    assert "s3cret" not in done.output


def _entry(stage: Stage, wall_ms: int, client_id: str = "agent-1", **more: Any) -> ExpansionEntry:  # noqa: ANN401
    return ExpansionEntry(
        application="orders-app",
        number=4,
        stage=stage,
        wall_ms=wall_ms,
        client_id=client_id,
        before={"a-changelog": 3, "b-changelog": 6, "c-repartition": 3},
        after={"a-changelog": 6, "b-changelog": 6, "c-repartition": 6},
        sources_before={"orders": 3},
        sources_after={"orders": 6},
        **more,
    )


_LINES = tuple(
    JournalLine.from_entry(entry, term, "host-1")
    for term, entry in (
        (7, _entry(Stage.STARTED, 1_000, reason="orders grew")),
        (8, _entry(Stage.EXPANDED, 2_500, "agent-2", done=("c-repartition",))),
        (8, _entry(Stage.NOTIFIED, 12_600, "agent-2", done=("c-repartition",))),
    )
)


def test_history_is_grouped_by_expansion() -> None:
    [past] = history_json(past_expansions(_LINES))["expansions"]
    assert (past["id"], past["outcome"]) == ("orders-app#4", "notified")
    assert past["sources"] == [{"topic": "orders", "from": 3, "to": 6}]
    assert past["topics"] == [
        {"topic": "a-changelog", "from": 3, "to": 6, "by": None},
        {"topic": "c-repartition", "from": 3, "to": 6, "by": "agent-2"},
    ]
    assert [stage["at"] for stage in past["stages"]][1] == "1970-01-01T00:00:02.500Z"
    assert past_expansions(_LINES, "payments-app") == ()


def test_status_values_are_plain_json() -> None:
    assert json.loads(json.dumps(agent_status(LEADING, _NOW))) == agent_status(LEADING, _NOW)


def test_the_endpoint_of_an_application_is_no_agent() -> None:
    surface = Surface.create("orders-1", host="host-1").with_section(
        Section(name="runtime", status=lambda: {"state": "RUNNING"})
    )
    server = ControlServer(surface, Access("127.0.0.1", 0, None)).start()
    try:
        done = _run("status", server.url)
    finally:
        server.close()
    assert done.exit_code == 1
    assert "use `headwater status`" in " ".join(done.stdout.split())
