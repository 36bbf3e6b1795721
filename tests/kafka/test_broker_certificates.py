"""A client says why it does not accept the certificate of a broker: librdkafka has one text for all."""

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import attrs
import pytest
import trustme

from headwater.kafka import Connection, KafkaClusterReader, SnapshotRequest, answering_broker
from headwater.kafka.admin import Admin
from headwater.kafka.kafka_errors import Answering, ClientMessage
from headwater.model.problems import Problem, ProblemCode, ProblemsError

_SECONDS = 60.0
_OF_LIBRDKAFKA = (
    "SSL handshake failed: error:0A000086:SSL routines::certificate verify failed: broker certificate"
)


@attrs.define
class TlsServer:
    """A server that closes each connection after the TLS handshake; `context` has its certificate."""

    address: str
    context: ssl.SSLContext

    def use(self, certificate: trustme.LeafCert) -> None:
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        certificate.configure_cert(self.context)

    def serve(self, server: socket.socket) -> None:
        with suppress(OSError):
            while True:
                connected, _ = server.accept()
                threading.Thread(target=self._shake_hands, args=(connected,), daemon=True).start()

    def _shake_hands(self, connected: socket.socket) -> None:
        with connected, suppress(OSError):
            self.context.wrap_socket(connected, server_side=True).close()


@pytest.fixture(autouse=True)
def time_for_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a busy machine have more time than a user would wait."""
    monkeypatch.setattr(answering_broker, "_MOST_SECONDS", _SECONDS)


@pytest.fixture
def server() -> Iterator[TlsServer]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"localhost:{listening.getsockname()[1]}"
        started = TlsServer(address, ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
        threading.Thread(target=started.serve, args=(listening,), daemon=True).start()
        yield started
        listening.shutdown(socket.SHUT_RDWR)


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def _connection(server: TlsServer, authority: trustme.CA) -> Connection:
    trusted = authority.cert_pem.bytes().decode()
    return Connection(bootstrap_servers=(server.address,), protocol="SSL", ca=trusted)


def _refusal(server: TlsServer, authority: trustme.CA) -> Problem:
    with pytest.raises(ProblemsError) as refused:
        KafkaClusterReader(_connection(server, authority), _SECONDS).read(SnapshotRequest())
    (problem,) = refused.value.problems
    return problem


def _certificate(authority: trustme.CA, begin: int, end: int) -> trustme.LeafCert:
    """Return a certificate that is valid between two days, counted from now."""
    now = datetime.now(UTC)
    return authority.issue_cert(
        "localhost", not_before=now + timedelta(days=begin), not_after=now + timedelta(days=end)
    )


@pytest.mark.parametrize(
    ("begin", "end", "reason"), [(-3, -1, "certificate has expired"), (1, 3, "certificate is not yet valid")]
)
def test_a_certificate_that_is_not_valid_now_has_to_be_renewed(
    server: TlsServer, authority: trustme.CA, begin: int, end: int, reason: str
) -> None:
    server.use(_certificate(authority, begin, end))
    problem = _refusal(server, authority)
    assert problem.code is ProblemCode.CLUSTER_UNREACHABLE
    assert problem.expected == f"a TLS listener with a trusted certificate at {server.address}"
    assert problem.found == f"SSL handshake failed: certificate verify failed: {reason}"
    assert problem.fix.startswith("Renew the certificate of the broker")
    server.use(authority.issue_cert("localhost"))
    assert "certificate" not in str(_refusal(server, authority).found)  # this server is no broker


def test_a_certificate_of_another_host_or_authority_is_named(
    server: TlsServer, authority: trustme.CA
) -> None:
    for certificate, reason in (
        (
            authority.issue_cert("broker.example"),
            "Hostname mismatch, certificate is not valid for 'localhost'",
        ),
        (trustme.CA().issue_cert("localhost"), "unable to get local issuer certificate"),
    ):
        server.use(certificate)
        problem = _refusal(server, authority)
        assert problem.found == f"SSL handshake failed: certificate verify failed: {reason}"
        assert "set the CA certificate" in problem.fix


def test_a_broker_whose_certificate_has_expired_since_it_answered_is_named(
    server: TlsServer, authority: trustme.CA
) -> None:
    """The brokers of an answer are asked, not the bootstrap servers: there may be no other address."""
    server.use(_certificate(authority, -3, -1))
    settings = attrs.evolve(_connection(server, authority), bootstrap_servers=("127.0.0.1:1",))
    admin = Admin(settings, _SECONDS)
    admin._answering = Answering(server.address, (server.address,))
    problem = admin._no_answer("describe topics", (ClientMessage(_OF_LIBRDKAFKA),))
    assert problem.found == "SSL handshake failed: certificate verify failed: certificate has expired"
