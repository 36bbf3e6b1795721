"""Asking the endpoints of clients, as `headwater agent status` and its like do."""

import json
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, Request, build_opener

from spark_jobs.control.access import DEFAULT_ADDRESS

_LARGEST_ANSWER = 64 * 1024 * 1024


class NotAnsweredError(Exception):
    """A client did not answer, or refused; the message says why, without the address."""


def full_url(address: str) -> str:
    """Return the URL of an endpoint that is named by URL, by HOST:PORT or by HOST; raises `ValueError`."""
    url = address if "://" in address else f"http://{address}"
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.strip("/") or parts.query:
        raise ValueError(f"{address!r} is not the address of an endpoint, such as http://{DEFAULT_ADDRESS}")
    default = DEFAULT_ADDRESS.rpartition(":")[2]
    is_bare = "://" not in address and parts.port is None
    return f"{parts.scheme}://{parts.netloc}{f':{default}' if is_bare else ''}"


def ask(
    url: str,
    path: str,
    body: Mapping[str, Any] | None = None,
    *,
    token: str | None = None,
    timeout_seconds: float = 5.0,
) -> Mapping[str, Any]:
    """Return the JSON object that `GET url+path` answers, with a body `POST`; raises `NotAnsweredError`."""
    headers = {"Accept": "application/json"}
    if body is not None:
        headers["Content-Type"] = "application/json"
        if token:
            headers["Authorization"] = f"Bearer {token}"
    content = None if body is None else json.dumps(body).encode()
    request = Request(url + path, content, headers)  # noqa: S310 - `full_url` lets only http and https pass
    try:
        # Clients are reached directly: a proxy would see the token.
        with build_opener(ProxyHandler({})).open(request, timeout=timeout_seconds) as answer:
            told = json.loads(answer.read(_LARGEST_ANSWER))
    except HTTPError as error:
        raise NotAnsweredError(_refusal(error)) from None
    except URLError as error:
        reason = error.reason
        raise NotAnsweredError(getattr(reason, "strerror", None) or str(reason)) from None
    except (OSError, HTTPException, ValueError) as error:
        raise NotAnsweredError(str(error) or type(error).__name__) from None
    if not isinstance(told, dict):
        raise NotAnsweredError("the answer is not a JSON object")
    return told


def _refusal(error: HTTPError) -> str:
    """Return what the endpoint says, else the status."""
    try:
        return str(json.loads(error.read())["error"])
    except (OSError, ValueError, KeyError, TypeError):
        return f"{error.code} {error.reason}"
