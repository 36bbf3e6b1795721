"""The log and the endpoint of an agent contain no secret, at any log level."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headwater.toolchain.broker import Broker, SaslUser, Settings
from headwater.toolchain.broker.readiness import until
from tests.agent.live_documents import texts
from tests.control.conftest import HttpClient

pytestmark = pytest.mark.broker

_ROOT = Path(__file__).parents[2]
_USER = SaslUser("agent", "pa55word-of-the-agent")
_TOKEN = "t0ken-of-the-agent"


@pytest.fixture(scope="module")
def guarded(own_broker: Callable[..., Broker]) -> Iterator[Broker]:
    with own_broker(Settings(sasl_users=(_USER,))) as broker:
        yield broker


@pytest.mark.parametrize("password", [_USER.password, "wr0ng-password"])
def test_secrets_are_shown_nowhere(guarded: Broker, tmp_path: Path, password: str) -> None:
    (tmp_path / "orders.yaml").write_text(texts("secrets")[0])
    environment = {
        **os.environ,
        "HEADWATER_BOOTSTRAP_SERVERS": guarded.address("SASL_PLAINTEXT"),
        "HEADWATER_SASL_USERNAME": _USER.name,
        "HEADWATER_SASL_PASSWORD": password,
        "HEADWATER_CONTROL_TOKEN": _TOKEN,
    }
    command = [
        sys.executable,
        "-m",
        "headwater.cli",
        "agent",
        "run",
        str(tmp_path),
        "--http",
        "127.0.0.1:0",
    ]
    log = tmp_path / "log.txt"
    with log.open("w") as stderr:
        agent = subprocess.Popen(
            [*command, "--log-level", "debug", "--log-format", "json"],
            cwd=_ROOT,
            env=environment,
            stdout=stderr,
            stderr=subprocess.STDOUT,
        )
        try:
            words = "leadership gained" if password == _USER.password else "AuthenticationRefused"
            assert until(lambda: words in log.read_text(), 60), log.read_text()
            client = HttpClient(_endpoint(log.read_text()))
            answers = [client.get(path).text for path in ("/status", "/metrics", "/health/ready")]
            answers.append(client.post("/control/autoscaling", {}).text)
        finally:
            agent.terminate()
            agent.wait(60)
    for text in (log.read_text(), *answers):
        assert password not in text
        assert _TOKEN not in text


def _endpoint(log: str) -> str:
    lines = (json.loads(line) for line in log.splitlines() if line.startswith("{"))
    return str(next(line["endpoint"] for line in lines if line["event"] == "agent started"))
