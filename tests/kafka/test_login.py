"""Every kind of login works on the connections that Headwater opens itself, and refusals are named."""

import base64
import json
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import ModuleType
from typing import ClassVar

import attrs
import pytest
import trustme
from confluent_kafka import KafkaError
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from headwater.change.topics import delete_topics
from headwater.kafka import Connection, token_request
from headwater.kafka import login as login_module
from headwater.kafka.broker_session import NoAnswerError
from headwater.kafka.group_client import GroupClient
from headwater.kafka.login import Login, LoginRefusedError
from headwater.kafka.token_request import request_token
from headwater.toolchain.broker import Broker, SaslUser, Settings
from headwater.toolchain.broker.readiness import until
from tests.pulumi.cluster import Cluster
from tests.toolchain.certificates import pkcs8, server_tls

_SECONDS = 90.0
USER = SaslUser("headwater", "blue-heron-4711")
_KEY_PASSWORD = "green-frog-0815"
_OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
_LOGIN = f'{_OAUTH} required unsecuredLoginStringClaim_sub="broker";'


def token(subject: str) -> str:
    """Return a token without a signature, which brokers accept by default."""
    parts = ({"alg": "none"}, {"sub": subject, "iat": 1_700_000_000, "exp": 4_000_000_000})
    encoded = (base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts)
    return ".".join((*encoded, ""))


class TokenServer(BaseHTTPRequestHandler):
    """Gives a token to the client `headwater`; at `/moved`, it sends clients to another server."""

    requests: ClassVar[list[tuple[str, str]]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.requests.append((self.headers["Authorization"], body))
        if self.path == "/moved":
            self.send_response(307)
            self.send_header("Location", "/token")
            self.end_headers()
            return
        expected = "Basic " + base64.b64encode(f"{USER.name}:{USER.password}".encode()).decode()
        is_known = self.headers["Authorization"] == expected
        self.send_response(200 if is_known else 401)
        self.end_headers()
        answer = {"access_token": token(USER.name)} if self.path == "/token" else ["no object"]
        self.wfile.write(json.dumps(answer if is_known else {}).encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def token_url() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), TokenServer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/token"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def secured(own_broker: Callable[..., Broker], certificate_authority: trustme.CA) -> Iterator[Broker]:
    tls = server_tls(certificate_authority, client_certificate_required=True)
    overrides = {"sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER"}
    for listener in ("sasl_plaintext", "sasl_ssl"):
        overrides[f"listener.name.{listener}.oauthbearer.sasl.jaas.config"] = _LOGIN
    with own_broker(Settings(sasl_users=(USER,), tls=tls, overrides=overrides)) as broker:
        yield broker


def _password(broker: Broker, authority: trustme.CA, _: str, mechanism: str) -> Connection:
    return Connection(
        bootstrap_servers=(broker.address("SASL_SSL"),),
        protocol="SASL_SSL",
        mechanism=mechanism,
        username=USER.name,
        password=USER.password,
        ca=authority.cert_pem.bytes().decode(),
    )


def _oauth(broker: Broker, authority: trustme.CA, token_url: str, mechanism: str) -> Connection:
    return attrs.evolve(
        _password(broker, authority, token_url, mechanism),
        token_url=token_url,
        oauth_scopes=("kafka", "read"),
    )


def _msk(broker: Broker, authority: trustme.CA, token_url: str, mechanism: str) -> Connection:
    return attrs.evolve(
        _password(broker, authority, token_url, mechanism),
        username=None,
        password=None,
        aws_region="eu-west-1",
    )


def _certificate(broker: Broker, authority: trustme.CA, _: str, key_password: str) -> Connection:
    leaf = authority.issue_cert("client")
    key = pkcs8(leaf.private_key_pem)
    if key_password:
        loaded = load_pem_private_key(key.encode(), password=None)
        secret = BestAvailableEncryption(key_password.encode())
        key = loaded.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, secret).decode()
    return Connection(
        bootstrap_servers=(broker.address("SSL"),),
        protocol="SSL",
        ca=authority.cert_pem.bytes().decode(),
        certificate="".join(part.bytes().decode() for part in leaf.cert_chain_pems),
        key=key,
        key_password=key_password or None,
    )


@pytest.fixture
def signer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Amazon's library, with a token that this broker accepts."""

    class Provider:
        @staticmethod
        def generate_auth_token(_: str) -> tuple[str, int]:
            return token(USER.name), 4_000_000_000_000

    module = ModuleType("aws_msk_iam_sasl_signer")
    module.MSKAuthTokenProvider = Provider  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)


ConnectionOf = Callable[[Broker, trustme.CA, str, str], Connection]
LOGINS: tuple[tuple[ConnectionOf, str], ...] = (
    (_password, "PLAIN"),
    (_password, "SCRAM-SHA-256"),
    (_password, "SCRAM-SHA-512"),
    (_oauth, "OAUTHBEARER"),
    (_msk, "AWS_MSK_IAM"),
    (_certificate, ""),
    (_certificate, _KEY_PASSWORD),
)


@pytest.mark.broker
@pytest.mark.usefixtures("signer")
@pytest.mark.parametrize(("connection_of", "detail"), LOGINS)
def test_every_login_describes_groups_and_deletes_topics_by_id(
    secured: Broker,
    certificate_authority: trustme.CA,
    token_url: str,
    unique: Callable[[str], str],
    *,
    connection_of: ConnectionOf,
    detail: str,
) -> None:
    connection = connection_of(secured, certificate_authority, token_url, detail)
    described = GroupClient(connection, _SECONDS).describe(["some-group"])["some-group"]
    assert not isinstance(described, KafkaError)
    assert described.state == "Dead"
    cluster = Cluster(secured.bootstrap_servers)
    retired, replaced = unique("retired"), unique("replaced")
    for name in (retired, replaced):
        cluster.create(name, 1)
    ids = cluster.topic_ids([retired, replaced])
    cluster.delete(replaced)
    cluster.create(replaced, 1)  # the topic of another user
    assert delete_topics(connection, ids) == {}
    assert until(lambda: cluster.partitions(retired) is None, _SECONDS)
    assert cluster.partitions(replaced) == 1


@pytest.mark.broker
@pytest.mark.parametrize(("connection_of", "detail"), [LOGINS[0], LOGINS[1], LOGINS[2], LOGINS[3]])
def test_a_wrong_password_is_named_at_once(
    secured: Broker,
    certificate_authority: trustme.CA,
    token_url: str,
    connection_of: ConnectionOf,
    detail: str,
) -> None:
    connection = attrs.evolve(
        connection_of(secured, certificate_authority, token_url, detail), password="wrong-secret"
    )
    with pytest.raises(NoAnswerError) as refused:
        GroupClient(connection, 600.0).describe(["some-group"])
    text = str(refused.value)
    assert "credentials" in text or "Authentication failed" in text or "token URL answers 401" in text
    assert "wrong-secret" not in text


@pytest.mark.broker
def test_certificates_that_are_not_trusted_are_named_at_once(
    secured: Broker, certificate_authority: trustme.CA
) -> None:
    connection = _certificate(secured, certificate_authority, "", "")
    foreign = attrs.evolve(connection, ca=trustme.CA().cert_pem.bytes().decode())
    unknown = attrs.evolve(connection, certificate=None, key=None)
    for wrong, reason in (
        (foreign, "certificate verify failed"),
        (unknown, "alert (bad certificate|certificate required)"),
    ):
        with pytest.raises(NoAnswerError, match=f"SSL handshake failed: .*{reason}") as refused:
            GroupClient(wrong, 600.0).describe(["some-group"])
        assert all(message.is_final for message in refused.value.messages)


@pytest.mark.broker
def test_a_wrong_password_of_a_key_is_an_error(secured: Broker, certificate_authority: trustme.CA) -> None:
    """OpenSSL would ask on the terminal for a password that is missing."""
    connection = _certificate(secured, certificate_authority, "", _KEY_PASSWORD)
    for wrong in (None, "wrong"):
        with pytest.raises(OSError, match=r"(?i)pem|decrypt|ssl"):
            delete_topics(attrs.evolve(connection, key_password=wrong), {"a": "Pb8QEjjNSZeqdoOWZfNKSA"})


def _client(token_url: str) -> Connection:
    return Connection(
        bootstrap_servers=("unused:9092",),
        protocol="SASL_SSL",
        mechanism="OAUTHBEARER",
        username=USER.name,
        password=USER.password,
        token_url=token_url,
        oauth_scopes=("kafka", "read"),
    )


def test_connections_in_several_threads_share_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    requested, sent = [], []
    second = threading.Event()

    def slow_request(_: object) -> str:
        requested.append("token")
        if len(requested) == 1:
            other.start()
            second.wait(0.5)  # without the lock, the other thread requests a token meanwhile
        else:
            second.set()
        return f"token-{len(requested)}"

    def exchange(message: bytes) -> bytes:
        sent.append(message)
        return b""

    monkeypatch.setattr(token_request, "request_token", slow_request)
    login = Login(_client("http://127.0.0.1:1/token"))
    other = threading.Thread(target=login.exchange, args=(exchange,))
    login.exchange(exchange)
    other.join()
    assert requested == ["token"]
    assert sent == [b"n,,\x01auth=Bearer token-1\x01\x01"] * 2


@pytest.fixture
def unfinished(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Semaphore]:
    """A token URL that hangs until the end of the test; the semaphore counts the requests."""
    began, ended = threading.Semaphore(0), threading.Event()

    def hanging_request(_: object) -> str:
        began.release()
        ended.wait()
        return "late"

    monkeypatch.setattr(token_request, "request_token", hanging_request)
    yield began
    ended.set()


def test_a_token_url_that_hangs_is_awaited_once_by_all_threads(
    unfinished: threading.Semaphore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(login_module, "_REQUEST_SECONDS", 0.2)
    monkeypatch.setattr(login_module, "_TOKEN_SECONDS", 3_600.0)
    monkeypatch.setattr(login_module, "_FAILURE_SECONDS", 3_600.0)
    login = Login(_client("http://127.0.0.1:1/token"))
    failures: list[str] = []

    def log_in() -> None:
        with pytest.raises(LoginRefusedError) as refused:
            login.exchange(lambda _: b"")
        failures.append(str(refused.value))

    threads = [threading.Thread(target=log_in) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    log_in()  # of a thread that has waited for one of them
    assert failures == ["no OAUTHBEARER token within 0.2 s"] * 5
    assert unfinished.acquire(timeout=60.0)
    assert not unfinished.acquire(blocking=False)


def test_a_token_is_requested_again_after_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    failures = [OSError("no OAUTHBEARER token: the token URL answers 503")]

    def request(_: object) -> str:
        if failures:
            raise failures.pop()
        return "token"

    monkeypatch.setattr(token_request, "request_token", request)
    monkeypatch.setattr(login_module, "_FAILURE_SECONDS", -1.0)
    login = Login(_client("http://127.0.0.1:1/token"))
    sent: list[bytes] = []

    def exchange(message: bytes) -> bytes:
        sent.append(message)
        return b""

    with pytest.raises(LoginRefusedError, match="503"):
        login.exchange(exchange)
    login.exchange(exchange)
    assert sent == [b"n,,\x01auth=Bearer token\x01\x01"]


def test_a_token_is_requested_with_the_scopes(token_url: str) -> None:
    assert request_token(_client(token_url)) == token(USER.name)
    assert TokenServer.requests[-1][1] == "grant_type=client_credentials&scope=kafka+read"


def test_the_secret_is_not_sent_to_where_the_token_url_redirects(token_url: str) -> None:
    before = len(TokenServer.requests)
    with pytest.raises(OSError, match="the token URL answers 307"):
        request_token(_client(token_url.replace("/token", "/moved")))
    assert len(TokenServer.requests) == before + 1


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://127.0.0.1:1/token", "refused"),
        ("file:///etc/hostname", "not an HTTP URL"),
        ("/other", "has no access_token"),
    ],
)
def test_no_token_is_an_error(token_url: str, url: str, reason: str) -> None:
    url = token_url.replace("/token", url) if url.startswith("/") else url
    with pytest.raises(OSError, match=reason) as failed:
        request_token(_client(url))
    assert USER.password not in str(failed.value)


_LATE = r"no OAUTHBEARER token: no answer of the token URL within 0\.2 s"


def test_a_token_url_that_does_not_answer_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_request, "_REQUEST_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/token"
        with pytest.raises(OSError, match=_LATE):
            request_token(_client(url))


def test_a_token_url_that_accepts_no_connection_in_time_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(*_: object) -> None:
        raise TimeoutError("timed out")

    monkeypatch.setattr(token_request, "_REQUEST_SECONDS", 0.2)
    monkeypatch.setattr(socket, "create_connection", connect)
    with pytest.raises(OSError, match=_LATE):
        request_token(_client("http://127.0.0.1:1/token"))


def test_a_library_that_is_not_installed_is_named() -> None:
    connection = attrs.evolve(_client(""), mechanism="AWS_MSK_IAM", aws_region="eu-west-1")
    with pytest.raises(OSError, match="aws-msk-iam-sasl-signer-python"):
        request_token(connection)
