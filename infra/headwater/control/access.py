"""The address of the endpoint, and access control.

Reading needs no credentials. Control (every POST) requires the bearer token if one is set. Without a token,
control is open on the loopback interface only, and not for pages in a browser: without a CORS preflight they
cannot send JSON to another site, and DNS rebinding is detected by the Host header.
"""

import hmac
from collections.abc import Mapping
from http import HTTPStatus
from ipaddress import ip_address

import attrs

from headwater.control.surface import Refused
from headwater.model.problems import Problem, ProblemCode, ProblemsError

TOKEN_VARIABLE = "HEADWATER_CONTROL_TOKEN"  # noqa: S105 - its name, not a token
DEFAULT_ADDRESS = "127.0.0.1:9878"
_LOCAL_NAME = "localhost"
_LAST_PORT = 65_535


def _hide_value(value: object) -> str:
    return "None" if value is None else "***"


@attrs.frozen
class Access:
    """Port 0 is any free port. `repr` never shows the token."""

    host: str
    port: int
    token: str | None = attrs.field(default=None, repr=_hide_value)

    @property
    def is_loopback(self) -> bool:
        return _is_loopback(self.host)

    def check_control(self, headers: Mapping[str, str]) -> None:
        """Raise `Refused` unless a request with these headers (lower-case names) may control the client."""
        if headers.get("content-type", "").split(";")[0].strip().lower() != "application/json":
            raise Refused(
                "Send a JSON object with Content-Type: application/json.", HTTPStatus.UNSUPPORTED_MEDIA_TYPE
            )
        if self.token is not None:
            self._check_token(headers.get("authorization", ""))
        elif not self.is_loopback:
            raise Refused(
                f"This client requires a token for control. Set {TOKEN_VARIABLE} where it runs.",
                HTTPStatus.FORBIDDEN,
            )
        elif not _is_loopback(_host_of(headers.get("host", ""))):
            raise Refused(
                "Use localhost or the loopback address as the host of the URL.", HTTPStatus.FORBIDDEN
            )

    def _check_token(self, authorization: str) -> None:
        scheme, _, given = authorization.partition(" ")
        # Compares in constant time, which reveals nothing about the token.
        is_equal = hmac.compare_digest(given.strip().encode(), (self.token or "").encode())
        if scheme.lower() != "bearer" or not is_equal:
            raise Refused(
                f"Send the token of {TOKEN_VARIABLE} in the header Authorization: Bearer.",
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
                    summary="The address of the HTTP endpoint is not valid.",
                    expected=f"HOST:PORT, such as {DEFAULT_ADDRESS}; port 0 is any free port",
                    found=address,
                    why="Metrics, health and status would not be served.",
                    fix="Correct the address.",
                )
            ]
        )
    return Access(host.removeprefix("[").removesuffix("]"), int(port), control_token(environment))


def control_token(environment: Mapping[str, str]) -> str | None:
    """Return the token for control, without the line break that files of secrets often end with."""
    return environment.get(TOKEN_VARIABLE, "").strip() or None


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
