"""Log in to a broker (KIP-152) with each SASL mechanism, and request tokens for SASL OAUTHBEARER.

Tokens are from an OAuth server (RFC 6749, section 4.4), or for Amazon MSK.
"""

import base64
import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Callable, Mapping
from urllib.error import HTTPError
from urllib.parse import urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from headwater.kafka.client_settings import token_callback
from headwater.kafka.connection_settings import ConnectionSettings
from headwater.model.problems import ProblemsError

_SECONDS = 15.0
_MOST_BYTES = 1 << 20


def request_token(settings: ConnectionSettings) -> str:
    """Return a token for the brokers; raises `OSError`. No text of an error contains a secret."""
    try:
        if settings.mechanism == "AWS_MSK_IAM":
            return token_callback(settings.aws_region or "")("")[0]
        return _oauth_token(settings)
    except ProblemsError as error:
        raise OSError(error.problems[0].summary) from None
    except HTTPError as error:
        error.close()
        raise OSError(f"no OAUTHBEARER token: the token URL answers {error.code}") from None
    except (OSError, ValueError) as error:
        raise OSError(f"no OAUTHBEARER token: {error}") from None
    except Exception as error:  # noqa: BLE001 - the classes of Amazon's library are not imported here
        raise OSError(f"no AWS_MSK_IAM token: {type(error).__name__}") from None


class _NoRedirect(HTTPRedirectHandler):
    """A redirect would send the client's secret to another server."""

    def redirect_request(self, *_: object, **__: object) -> None:
        return None


def _oauth_token(settings: ConnectionSettings) -> str:
    url = settings.token_url or ""
    if urlsplit(url).scheme not in ("http", "https"):
        raise ValueError("the token URL is not an HTTP URL")
    fields = {"grant_type": "client_credentials"}
    if settings.oauth_scopes:
        fields["scope"] = " ".join(settings.oauth_scopes)
    client = base64.b64encode(f"{settings.username}:{settings.password}".encode()).decode()
    headers = {
        "Accept": "application/json",
        "Authorization": f"Basic {client}",
        "Content-Type": "application/x-www-form-urlencoded",
    }
    request = Request(url, urlencode(fields).encode(), headers)  # noqa: S310 - the scheme is checked
    with build_opener(_NoRedirect()).open(request, timeout=_SECONDS) as response:
        answer = json.loads(response.read(_MOST_BYTES))
    token = answer.get("access_token") if isinstance(answer, dict) else None
    if not isinstance(token, str) or not token.isascii() or not token.isprintable():
        raise ValueError("the answer of the token URL has no access_token")
    return token


_HASHES: Mapping[str, Callable[..., "hashlib._Hash"]] = {
    "SCRAM-SHA-256": hashlib.sha256,
    "SCRAM-SHA-512": hashlib.sha512,
}
_MOST_ITERATIONS = 1_000_000
"""A broker names the number; Kafka's own default is 4,096, and more would keep this machine busy."""
_TOKEN_SECONDS = 60.0
Exchange = Callable[[bytes], bytes]
"""Send a message of the mechanism, and return the answer; raises `OSError` if the broker refuses it."""


def wire_mechanism(settings: ConnectionSettings) -> str:
    """Return the SASL mechanism as brokers name it: MSK takes its signed tokens as OAuth tokens."""
    return "OAUTHBEARER" if settings.mechanism == "AWS_MSK_IAM" else str(settings.mechanism)


class LoginRefusedError(OSError):
    """The broker refuses the credentials, or there is no token."""


class Login:
    """The credentials of a connection. Connections that are opened soon after each other share a token."""

    def __init__(self, settings: ConnectionSettings) -> None:
        self._settings = settings
        self._token = ""
        self._token_until = 0.0

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

    def _send_token(self, exchange: Exchange) -> None:
        """Log in with a token (RFC 7628, sections 3.1 and 3.2.3)."""
        if (now := time.monotonic()) > self._token_until:
            try:
                self._token, self._token_until = request_token(self._settings), now + _TOKEN_SECONDS
            except OSError as error:
                raise LoginRefusedError(str(error)) from None
        refusal = exchange(b"n,,\x01auth=Bearer " + self._token.encode() + b"\x01\x01")
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
