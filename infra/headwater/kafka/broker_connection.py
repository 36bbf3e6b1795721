"""A connection to one broker, with TLS: requests, answers, and the features that the broker has enabled.

librdkafka (2.16) aborts the process if the answer of a group's coordinator comes after the timeout of an
admin request (its pull request 5397), and if an answer has no brokers. It deletes topics by name only.

Brokers answer the request ApiVersions before a client logs in, so it needs no credentials.
"""

import os
import socket
import ssl
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from struct import pack
from tempfile import TemporaryFile
from typing import IO, Self, TypeVar

import attrs
from confluent_kafka import KafkaError

from headwater.kafka.connection_settings import ConnectionSettings
from headwater.kafka.kafka_errors import BrokerFault, ClientMessage
from headwater.kafka.login import Login, LoginRefusedError, wire_mechanism
from headwater.kafka.wire import LateResponseError, ResponseReader, compact_text, receive_response

_PARALLEL = 32
_DAY_SECONDS = 86_400


def find_unreachable(addresses: Iterable[str], timeout_seconds: float) -> Mapping[str, str]:
    """Return address → reason for those that accept no TCP connection; tries all at the same time."""

    def reason(address: str) -> str:
        try:
            with socket.create_connection(_host_and_port(address), timeout_seconds):
                return ""
        except (OSError, ValueError) as error:
            return str(getattr(error, "strerror", None) or str(error) or type(error).__name__)

    unique = sorted(set(addresses))
    with ThreadPoolExecutor(_PARALLEL) as threads:
        reasons = dict(zip(unique, threads.map(reason, unique), strict=True))
    return {address: why for address, why in reasons.items() if why}


def certificate_days(settings: ConnectionSettings, address: str, timeout_seconds: float) -> int | None:
    """Return for how many whole days the certificate at `address` is valid; None = not known."""
    if not settings.uses_tls or settings.skip_tls_verify:
        return None
    try:
        with _open_connection(settings, address, timeout_seconds) as connected:
            certificate = connected.getpeercert() if isinstance(connected, ssl.SSLSocket) else None
    except (OSError, ValueError):
        return None
    end = (certificate or {}).get("notAfter")
    return (
        int((ssl.cert_time_to_seconds(end) - time.time()) // _DAY_SECONDS) if isinstance(end, str) else None
    )


def certificate_failure(
    settings: ConnectionSettings, address: str, timeout_seconds: float
) -> ClientMessage | None:
    """Return why the certificate at `address` is not accepted; None if it is, or without a connection."""
    try:
        with _open_connection(settings, address, timeout_seconds):
            return None
    except ssl.SSLCertVerificationError as error:
        return failure_message(address, error)
    except (OSError, ValueError):
        return None


def _tls_context(settings: ConnectionSettings) -> ssl.SSLContext:
    """Return the context; raises `OSError`, `ValueError` for certificates and keys that OpenSSL rejects."""
    context = ssl.create_default_context(cadata=settings.ca)
    # Python 3.13 rejects certificates of private authorities that librdkafka and Java accept.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.check_hostname = settings.verify_hostname and not settings.skip_tls_verify
    if settings.skip_tls_verify:
        context.verify_mode = ssl.CERT_NONE
    if settings.certificate is not None and settings.key is not None:
        _load_identity(context, f"{settings.key}\n{settings.certificate}", settings.key_password)
    return context


def _load_identity(context: ssl.SSLContext, identity: str, password: str | None) -> None:
    """Load a key and its certificates. OpenSSL reads them from a file: this one has no name."""
    with _unnamed_file() as file:
        file.write(identity.encode())
        file.flush()
        file.seek(0)
        # Without a password, OpenSSL would ask for one on the terminal.
        context.load_cert_chain(f"/dev/fd/{file.fileno()}", password=password or "")


def _unnamed_file() -> IO[bytes]:
    """Return a file that no other process finds, in memory where the system can."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("identity"), "w+b")
    return TemporaryFile()


def _open_connection(settings: ConnectionSettings, address: str, timeout_seconds: float) -> socket.socket:
    """Connect to `address` (host:port), with TLS if the settings use it; raises `OSError`, `ValueError`."""
    host, port = _host_and_port(address)
    plain = socket.create_connection((host, port), timeout_seconds)
    if not settings.uses_tls:
        return plain
    try:
        return _tls_context(settings).wrap_socket(plain, server_hostname=host)
    except BaseException:
        plain.close()
        raise


def _host_and_port(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


T = TypeVar("T")
_API_VERSIONS = 18
_SASL_HANDSHAKE, _SASL_AUTHENTICATE = 17, 36
_CLIENT = b"headwater"
_FINALIZED_FEATURES = 2
"""The tag of the field in the response to ApiVersions."""


@attrs.frozen
class Message:
    """A request of Kafka's protocol with the versions that are sent here, all of them flexible."""

    name: str
    key: int
    lowest: int
    highest: int


class UnknownRequestError(OSError):
    """The broker does not know the request, or no version of it that is sent here."""


class UnreadableAnswerError(OSError):
    """The answer of a broker is too large, or none of Kafka's protocol."""


class BrokerConnection:
    """A connection, logged in. Use it in a `with` statement and in one thread.

    Every method raises `OSError`. `features` are the enabled features of the cluster: name → level.
    """

    def __init__(
        self, settings: ConnectionSettings, address: str, seconds: float, login: Login | None
    ) -> None:
        """Connect and log in; without `login` the broker answers no request."""
        self.address = address
        self._correlation = 0
        self._deadline = self._end_by = time.monotonic() + seconds
        """Until when a response has to begin, and to end."""
        self._pause_seconds = seconds
        self._connected = _open_socket(settings, address, seconds)
        self._versions: Mapping[int, tuple[int, int]] = {}
        self.features: Mapping[str, int] = {}
        try:
            self._read_versions()
            if login is not None and settings.uses_sasl:
                self._log_in(settings, login)
        except ValueError as error:
            self._connected.close()
            raise OSError(f"{address} is not a Kafka broker: {error}") from None
        except BaseException:
            self._connected.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connected.close()

    def version(self, message: Message) -> int:
        """Return the highest version of a request that both sides know; raises `UnknownRequestError`."""
        first, last = self._versions.get(message.key, (0, -1))
        chosen = min(message.highest, last)
        if chosen < max(message.lowest, first):
            raise UnknownRequestError(f"{self.address} does not know the request {message.name}")
        return chosen

    def request(
        self,
        message: Message,
        body: bytes,
        seconds: float,
        read: Callable[[ResponseReader], T],
        *,
        whole_seconds: float = 0.0,
    ) -> T:
        """Send a request of a flexible version (KIP-482), and return what `read` makes of the response.

        The response has to begin within `seconds`, and to end within `whole_seconds` if they are more,
        without a pause of `seconds`.
        """
        version = self.version(message)
        self._pause_seconds = seconds
        self._deadline = time.monotonic() + seconds
        self._end_by = time.monotonic() + max(seconds, whole_seconds)
        try:
            reader = self._exchange(message.key, version, b"\x00" + body)
            reader.tagged_fields()
            return read(reader)
        except ValueError as error:
            text = f"{self.address} sent an answer that cannot be read: {error}"
            raise UnreadableAnswerError(text) from None

    def _read_versions(self) -> None:
        name = compact_text(_CLIENT.decode())
        reader = self._exchange(_API_VERSIONS, 3, b"\x00" + name + compact_text("1") + b"\x00")
        if (code := reader.number(2)) != 0:
            raise OSError(f"{self.address} does not tell its versions: {KafkaError(code).name()}")

        def versions() -> tuple[int, tuple[int, int]]:
            key, span = reader.number(2), (reader.number(2), reader.number(2))
            reader.tagged_fields()
            return key, span

        self._versions = dict(reader.compact_array(versions))
        reader.skip(4)  # throttle time
        if (found := reader.tagged_fields().get(_FINALIZED_FEATURES)) is not None:
            features = ResponseReader(found)
            self.features = dict(features.compact_array(lambda: _read_feature(features)))

    def _log_in(self, settings: ConnectionSettings, login: Login) -> None:
        mechanism = wire_mechanism(settings).encode()
        answer = self._exchange(_SASL_HANDSHAKE, 1, pack(">h", len(mechanism)) + mechanism)
        if answer.number(2) != 0:
            raise LoginRefusedError(f"the broker does not accept {mechanism.decode()}")

        def exchange(message: bytes) -> bytes:
            reader = self._exchange(_SASL_AUTHENTICATE, 1, pack(">i", len(message)) + message)
            code, size = reader.number(2), reader.number(2)
            reason = reader.take(max(0, size)).decode()
            if code != 0:
                raise LoginRefusedError(reason or KafkaError(code).name())
            return reader.take(max(0, reader.number(4)))

        login.exchange(exchange)

    def _exchange(self, key: int, version: int, body: bytes) -> ResponseReader:
        """Send a request, with the body after the client id, and return the response after its id."""
        self._correlation += 1
        self._connected.settimeout(max(0.001, self._deadline - time.monotonic()))
        header = pack(">hhih", key, version, self._correlation, len(_CLIENT)) + _CLIENT
        self._connected.sendall(pack(">i", len(header) + len(body)) + header + body)
        limits = (self._deadline, self._end_by, self._pause_seconds)
        response = receive_response(self._connected, self._correlation, *limits)
        return ResponseReader(response)


def _open_socket(settings: ConnectionSettings, address: str, seconds: float) -> socket.socket:
    try:
        return _open_connection(settings, address, seconds)
    except OSError:  # a certificate that is not trusted is a ValueError, too
        raise
    except ValueError as error:
        raise OSError(f"no connection to {address} is possible: {error}") from None


def _read_feature(reader: ResponseReader) -> tuple[str, int]:
    name, level = reader.compact_text(), reader.number(2)
    reader.skip(2)
    reader.tagged_fields()
    return name, level


def failure_message(address: str, error: OSError, code: int | None = None) -> ClientMessage:
    """Return the failure of a connection or a request, with the text that librdkafka's log has for it.

    `code` is the error of Kafka that the broker answered with.
    """
    if isinstance(error, ssl.SSLError):
        reason = (error.reason or str(error)).replace("_", " ").lower()
        if isinstance(error, ssl.SSLCertVerificationError):
            reason += f": {error.verify_message.removesuffix('.')}"
        fault, text = BrokerFault.NO_TLS, f"SSL handshake failed: {reason}"
    elif isinstance(error, LateResponseError):
        fault, text = BrokerFault.LATE, "No response in time"
    elif isinstance(error, TimeoutError):
        fault, text = BrokerFault.NO_CONNECTION, "Connection setup timed out"
    else:
        fault, text = BrokerFault.NO_CONNECTION, f"Connect to {address} failed: {error.strerror or error}"
    return ClientMessage(f"{address}/bootstrap: {text}", code, fault, address)


def enabled_features(settings: ConnectionSettings, timeout_seconds: float) -> Mapping[str, int] | None:
    """Return feature → level, as a bootstrap server reports them; None = not known.

    Features that are not enabled are missing.
    """
    for server in settings.bootstrap_servers:
        try:
            with BrokerConnection(settings, server, timeout_seconds, login=None) as connected:
                return connected.features or None
        except OSError:
            continue
    return None
