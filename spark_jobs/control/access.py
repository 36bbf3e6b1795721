"""Where the endpoint listens, and who may control the client.

Reading needs no credential. Control (every POST) needs the bearer token if there is one; without a token it
is open on the loopback interface only, and there not to pages in a browser: they cannot send JSON to another
site unasked, and a site whose name leads here (DNS rebinding) shows by its Host header.
"""

import hmac
from collections.abc import Mapping
from http import HTTPStatus
from ipaddress import ip_address

import attrs

from infra.model.problems import Problem, ProblemCode, ProblemsError
from spark_jobs.control.surface import Refused

TOKEN_VARIABLE = "HEADWATER_CONTROL_TOKEN"  # noqa: S105 - its name, not a token
DEFAULT_ADDRESS = "127.0.0.1:9878"
_LOCAL_NAME = "localhost"
_LAST_PORT = 65_535


def _hidden(value: object) -> str:
    return "None" if value is None else "***"


@attrs.frozen
class Access:
    """`port` 0 is any free one. The token never shows in `repr`."""

    host: str
    port: int
    token: str | None = attrs.field(default=None, repr=_hidden)

    @property
    def is_loopback(self) -> bool:
        return _is_loopback(self.host)

    def check_control(self, headers: Mapping[str, str]) -> None:
        """Raise `Refused` unless a request with these headers (lower-case names) may control."""
        if headers.get("content-type", "").split(";")[0].strip().lower() != "application/json":
            raise Refused(
                "Send a JSON object with Content-Type: application/json.", HTTPStatus.UNSUPPORTED_MEDIA_TYPE
            )
        if self.token is not None:
            self._check_token(headers.get("authorization", ""))
        elif not self.is_loopback:
            raise Refused(
                f"This client can be controlled only with a token. Set {TOKEN_VARIABLE} where it runs.",
                HTTPStatus.FORBIDDEN,
            )
        elif not _is_loopback(_host_of(headers.get("host", ""))):
            raise Refused("Name this machine as localhost or by its loopback address.", HTTPStatus.FORBIDDEN)

    def _check_token(self, authorization: str) -> None:
        scheme, _, given = authorization.partition(" ")
        # Both always compared in full: how long it takes tells nothing of the token.
        is_equal = hmac.compare_digest(given.strip().encode(), (self.token or "").encode())
        if scheme.lower() != "bearer" or not is_equal:
            raise Refused(
                f"Send the token that {TOKEN_VARIABLE} holds, as Authorization: Bearer.",
                HTTPStatus.UNAUTHORIZED,
            )


def access_of(address: str, environment: Mapping[str, str]) -> Access:
    """Read `HOST:PORT` (`[::1]:9878` for IPv6) and the token; raises `ProblemsError` (InvalidConfig)."""
    host, separator, port = address.rpartition(":")
    if not separator or not host or not (port.isascii() and port.isdigit()) or int(port) > _LAST_PORT:
        raise ProblemsError(
            [
                Problem(
                    code=ProblemCode.INVALID_CONFIG,
                    summary="The address of the HTTP endpoint cannot be read.",
                    expected=f"HOST:PORT, as in {DEFAULT_ADDRESS}; port 0 is any free one",
                    found=address,
                    why="Metrics, health and status would not be served.",
                    fix="Correct the address.",
                )
            ]
        )
    return Access(
        host.removeprefix("[").removesuffix("]"), int(port), environment.get(TOKEN_VARIABLE) or None
    )


def _host_of(header: str) -> str:
    """Return the host of a Host header, without port and brackets."""
    if header.startswith("["):
        return header[1:].partition("]")[0]
    return header.partition(":")[0]


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == _LOCAL_NAME
