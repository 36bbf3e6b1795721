"""Log in to a broker (KIP-152) with each SASL mechanism."""

import base64
import hashlib
import hmac
import math
import secrets
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial
from threading import Lock

from headwater.kafka.connection_settings import ConnectionSettings
from headwater.kafka.pending_requests import in_background

_HASHES: Mapping[str, Callable[..., "hashlib._Hash"]] = {
    "SCRAM-SHA-256": hashlib.sha256,
    "SCRAM-SHA-512": hashlib.sha512,
}
_MOST_ITERATIONS = 1_000_000
"""A broker names the number; Kafka's own default is 4,096, and more would keep this machine busy."""
_TOKEN_SECONDS = 60.0
_REQUEST_SECONDS = 15.0
_FAILURE_SECONDS = 5.0
"""Threads that wait for each other all learn of a failure in this time: none requests a token again."""
Exchange = Callable[[bytes], bytes]
"""Send a message of the mechanism, and return the answer; raises `OSError` if the broker refuses it."""


def wire_mechanism(settings: ConnectionSettings) -> str:
    """Return the SASL mechanism as brokers name it: MSK takes its signed tokens as OAuth tokens."""
    return "OAUTHBEARER" if settings.mechanism == "AWS_MSK_IAM" else str(settings.mechanism)


class LoginRefusedError(OSError):
    """The broker refuses the credentials, or there is no token."""


class Login:
    """The credentials of a connection. Connections that are opened soon after each other share a token.

    They also share that there is none, and may be opened in several threads.
    """

    def __init__(self, settings: ConnectionSettings) -> None:
        self._settings = settings
        self._requested: Future[str] = Future()
        self._shared_until = self._awaited_until = -math.inf
        self._lock = Lock()

    def prepare(self) -> None:
        """Request the token, if the mechanism needs one; raises `LoginRefusedError`."""
        if self._settings.uses_sasl and wire_mechanism(self._settings) == "OAUTHBEARER":
            self._current_token()

    def exchange(self, exchange: Exchange) -> None:
        """Exchange the messages of the mechanism; raises `OSError`, `ValueError`."""
        user, password = (self._settings.username or "").encode(), (self._settings.password or "").encode()
        mechanism = wire_mechanism(self._settings)
        if mechanism == "PLAIN":
            exchange(b"\x00" + user + b"\x00" + password)
        elif mechanism == "OAUTHBEARER":
            self._send_token(exchange)
        else:
            _log_in_by_scram(exchange, _HASHES[mechanism], user, password)

    def _current_token(self) -> str:
        """Return the token that all threads share; raises `LoginRefusedError` after a limited time."""
        from headwater.kafka.token_request import request_token  # noqa: PLC0415 - imports an HTTP client

        with self._lock:
            if (now := time.monotonic()) > self._shared_until:
                self._requested = in_background(partial(request_token, self._settings))
                self._shared_until, self._awaited_until = now + _TOKEN_SECONDS, now + _REQUEST_SECONDS
            requested, seconds = self._requested, max(0.0, self._awaited_until - now)
        try:
            return requested.result(seconds)
        except TimeoutError:
            failure = f"no {self._settings.mechanism} token within {_REQUEST_SECONDS:g} s"
        except OSError as error:
            failure = str(error)
        with self._lock:
            if requested is self._requested:
                self._shared_until = min(self._shared_until, time.monotonic() + _FAILURE_SECONDS)
        raise LoginRefusedError(failure)

    def _send_token(self, exchange: Exchange) -> None:
        """Log in with a token (RFC 7628, sections 3.1 and 3.2.3)."""
        refusal = exchange(b"n,,\x01auth=Bearer " + self._current_token().encode() + b"\x01\x01")
        if refusal:  # the error follows the client's answer to it
            exchange(b"\x01")
            raise LoginRefusedError(f"the broker refuses the token: {refusal.decode(errors='replace')}")


def _log_in_by_scram(
    exchange: Exchange, algorithm: Callable[..., "hashlib._Hash"], user: bytes, password: bytes
) -> None:
    """Log in with SCRAM (RFC 5802, section 3)."""
    escaped = user.replace(b"=", b"=3D").replace(b",", b"=2C")
    nonce = base64.b64encode(secrets.token_bytes(24))
    first = b"n=" + escaped + b",r=" + nonce
    challenge = exchange(b"n,," + first)
    fields = dict(part.split(b"=", 1) for part in challenge.split(b",") if b"=" in part)
    if not fields.get(b"r", b"").startswith(nonce):
        raise OSError("the broker answers another login")
    iterations = int(fields.get(b"i", b"0"))
    if not 0 < iterations <= _MOST_ITERATIONS:
        raise OSError("the broker requires a number of iterations that is not possible")
    salted = hashlib.pbkdf2_hmac(
        algorithm().name, password, base64.b64decode(fields.get(b"s", b"")), iterations
    )
    key = hmac.digest(salted, b"Client Key", algorithm().name)
    last = b"c=biws,r=" + fields[b"r"]
    signed = first + b"," + challenge + b"," + last
    signature = hmac.digest(algorithm(key).digest(), signed, algorithm().name)
    proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
    answer = exchange(last + b",p=" + base64.b64encode(proof))
    server = hmac.digest(salted, b"Server Key", algorithm().name)
    expected = hmac.digest(server, signed, algorithm().name)
    if not hmac.compare_digest(answer, b"v=" + base64.b64encode(expected)):
        raise OSError("the broker does not know the password")
