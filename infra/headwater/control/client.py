"""HTTP requests to the endpoints of clients, for `headwater status` and `headwater agent`."""

import json
from collections.abc import Collection, Mapping
from http.client import HTTPException, HTTPMessage
from typing import IO, Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

from headwater.control.access import DEFAULT_ADDRESS, TOKEN_VARIABLE

_LARGEST_ANSWER = 64 * 1024 * 1024


class _Redirects(HTTPRedirectHandler):
    """Follows no redirect of a control request: urllib would send GET instead, and the token to any host."""

    def redirect_request(  # noqa: PLR0917 - as in the library
        self,
        req: Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: HTTPMessage,
        newurl: str,
    ) -> Request | None:
        if req.data is not None:
            return None
        return super().redirect_request(req, fp, code, msg, headers, newurl)


class NotAnsweredError(Exception):
    """A client did not answer or refused the request; the message has the reason, not the address.

    `answer` is the JSON object with which a request was refused; empty if there is none.
    """

    def __init__(self, message: str, answer: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.answer = answer or {}


def full_url(address: str) -> str:
    """Return the URL of an endpoint from a URL, HOST:PORT or HOST; raises `ValueError`."""
    url = address if "://" in address else f"http://{address}"
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.strip("/") or parts.query:
        raise ValueError(f"{address!r} is not the address of an endpoint, such as http://{DEFAULT_ADDRESS}")
    default = DEFAULT_ADDRESS.rpartition(":")[2]
    is_bare = "://" not in address and parts.port is None
    return f"{parts.scheme}://{parts.netloc}{f':{default}' if is_bare else ''}"


def send_request(
    url: str,
    path: str,
    body: Mapping[str, Any] | None = None,
    *,
    token: str | None = None,
    timeout_seconds: float | None = 5.0,
    fields: Collection[str] = (),
) -> Mapping[str, Any]:
    """Send `GET url+path`, with a body `POST`, and return the JSON object; raises `NotAnsweredError`.

    `timeout_seconds` None: wait for the answer without a limit. `fields` are those that the answer has if it
    comes from Headwater; another program may listen on the port.
    """
    headers = {"Accept": "application/json"}
    if body is not None:
        headers["Content-Type"] = "application/json"
        if token:
            headers["Authorization"] = f"Bearer {token}"
    data = None if body is None else json.dumps(body).encode()
    request = Request(url + path, data, headers)  # noqa: S310 - `full_url` lets only http and https pass
    try:
        # Without a proxy, which would see the token.
        with build_opener(ProxyHandler({}), _Redirects()).open(request, timeout=timeout_seconds) as answer:
            content = json.loads(answer.read(_LARGEST_ANSWER))
    except HTTPError as error:
        raise _refusal_of(error) from None
    except URLError as error:
        reason = error.reason
        raise NotAnsweredError(getattr(reason, "strerror", None) or str(reason)) from None
    except (OSError, HTTPException) as error:
        raise NotAnsweredError(str(error) or type(error).__name__) from None
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError):
        raise NotAnsweredError("the answer is not JSON") from None
    except ValueError:  # its text has the token
        raise NotAnsweredError(f"{TOKEN_VARIABLE} has a character that no token may have") from None
    if not isinstance(content, dict):
        raise NotAnsweredError("the answer is not a JSON object")
    if missing := [name for name in fields if name not in content]:
        raise NotAnsweredError(f"the answer is not one of Headwater: it has no `{missing[0]}`")
    return content


def _refusal_of(error: HTTPError) -> NotAnsweredError:
    """Return the error text of the endpoint with its answer, else the HTTP status."""
    if (target := error.headers.get("Location")) is not None:
        return NotAnsweredError(f"the address redirects to {target}: use the address of the endpoint itself")
    try:
        answer = json.loads(error.read(_LARGEST_ANSWER))
        return NotAnsweredError(str(answer["error"]), answer)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return NotAnsweredError(f"{error.code} {error.reason}")
