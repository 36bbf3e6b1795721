"""The log redacts every secret, whichever of the four commands starts a job."""

import base64
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import attrs
import pytest
import structlog

import agent_main
import run_main
from headwater.cli.main import main as headwater
from headwater.control.logs import redacted_texts
from headwater.kafka import Connection

_CERTIFICATE = "-----BEGIN CERTIFICATE-----\nMIIBpublic\n-----END CERTIFICATE-----\n"
_KEY_BODY = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC"
_KEY = f"-----BEGIN PRIVATE KEY-----\n{_KEY_BODY}\nQUIetQUAILlastLINE==\n-----END PRIVATE KEY-----\n"
_SECRETS = {
    "HEADWATER_SASL_PASSWORD": 'quail "password"/1',
    "HEADWATER_CLIENT_KEY": _KEY,
    "HEADWATER_CLIENT_KEY_PASSPHRASE": "quail-key-passphrase",
    "HEADWATER_CONTROL_TOKEN": "quail-control-token",
    "SCHEMA_REGISTRY_USER_INFO": "registry-user:quail-registry-password",
    "SCHEMA_REGISTRY_TOKEN": "quail-registry-token",
    "AWS_SECRET_ACCESS_KEY": "quail-aws-secret",
    "AWS_SESSION_TOKEN": "quail-aws-session",
}
_PARTS = ("quail", _KEY_BODY, "QUIetQUAILlastLINE==", base64.b64encode(b"registry-user:quail").decode()[:-4])
_FIELDS = {"password", "key", "key_password"}
_PUBLIC = {"ca", "certificate"}


def _headwater(*command: str) -> Callable[[Sequence[str]], object]:
    def start(arguments: Sequence[str]) -> None:
        with suppress(SystemExit):
            headwater([*command, *arguments])

    return start


_STARTS = {
    "headwater agent run": _headwater("agent", "run"),
    "headwater run": _headwater("run"),
    "agent_main.py": agent_main.main,
    "run_main.py": run_main.main,
}


@pytest.fixture(autouse=True)
def _log_reset() -> Iterator[None]:
    yield
    structlog.reset_defaults()


@pytest.fixture(params=_STARTS)
def started(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Start a job that stops after its log is configured: the document has an error."""
    document = tmp_path / "document.yaml"
    document.write_text("application: {id: orders}\n")
    for name, value in _SECRETS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HEADWATER_BOOTSTRAP_SERVERS", "127.0.0.1:1")
    monkeypatch.setenv("HEADWATER_SECURITY_PROTOCOL", "SASL_SSL")
    monkeypatch.setenv("HEADWATER_SASL_USERNAME", "orders")
    monkeypatch.setenv("HEADWATER_CLIENT_CERT", _CERTIFICATE)
    _STARTS[request.param]([str(document)])
    assert structlog.is_configured()


@pytest.mark.usefixtures("started")
@pytest.mark.parametrize("name", _SECRETS)
def test_log_redacts_every_secret(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    secret = _SECRETS[name]
    log = structlog.get_logger()
    log.error("failed with %s", secret)
    log.error("failed", reason=f"refused {secret}", nested={"settings": [secret]}, found=ValueError(secret))
    log.error("failed", request=f"https://registry?secret={quote(secret, safe='')}", settings={"x": {secret}})
    log.error("failed", header=f"Basic {base64.b64encode(secret.encode()).decode()}")
    log.error("failed", exc_info=ValueError(secret))
    text = capsys.readouterr().err
    assert "***" in text
    assert [part for part in _PARTS if part in text] == []


def test_every_hidden_field_of_a_connection_is_a_secret_or_public() -> None:
    hidden = {field.name for field in attrs.fields(Connection) if field.repr is not True}
    assert hidden == _FIELDS | _PUBLIC
    connection = Connection(bootstrap_servers=("localhost:9092",), password="a", key="b", key_password="c")
    assert set(connection.secrets) == {"a", "b", "c"}


def test_text_of_few_characters_is_not_redacted() -> None:
    assert redacted_texts(("abc", None, ""), {"HEADWATER_CONTROL_TOKEN": "xy"}) == ()
