"""Answer the HTTP requests of a surface."""

import json
from collections.abc import Callable, Mapping
from functools import partial
from http import HTTPStatus

import attrs
import structlog
from prometheus_client.exposition import choose_encoder

from headwater.control.access import Access
from headwater.control.surface import Body, Health, Refused, Route, Surface

LARGEST_BODY = 64 * 1024
"""Bytes of the body of a request; a longer body is refused."""
_JSON = "application/json"
_HEALTH = "/health/"

_log = structlog.get_logger(__name__)


@attrs.frozen
class Request:
    """A request to the endpoint.

    `headers` have lower-case names; values of repeated headers are joined by commas. `read(n)` returns n
    bytes of the body. `begin_answer` is called when the request is complete, unless it is about health. Both
    may raise `Refused`.
    """

    method: str
    path: str
    headers: Mapping[str, str]
    read: Callable[[int], bytes]
    address: str = ""
    begin_answer: Callable[[], None] = lambda: None


@attrs.frozen
class Answer:
    """The answer to a request; `kind` is the content type."""

    status: HTTPStatus
    content: bytes
    kind: str = _JSON


def answer_request(request: Request, surface: Surface, access: Access) -> Answer:
    """Answer a request; errors are JSON objects with the key `error`. Never raises."""
    try:
        return _answer_route(request, surface, access)
    except Refused as refused:
        return answer_refusal(refused)
    except Exception:  # noqa: BLE001 - logged with its traceback; a failed answer must not end the server
        _log.exception("answer failed", path=request.path)
        text = "The client failed to answer. See its log for the error."
        return _json_answer(HTTPStatus.INTERNAL_SERVER_ERROR, {"error": text})


def answer_refusal(refused: Refused) -> Answer:
    """Return the answer to a request that is refused."""
    return _json_answer(refused.status, {"error": refused.message, **refused.more})


def too_slow() -> Refused:
    """Return the refusal of a request that was not complete in time."""
    return Refused("The request was not complete in time.", HTTPStatus.REQUEST_TIMEOUT)


def _answer_route(request: Request, surface: Surface, access: Access) -> Answer:
    reading: Mapping[str, Callable[[], Answer]] = {
        "/metrics": lambda: _answer_metrics(request, surface),
        "/health/live": lambda: _answer_health(surface.live()),
        "/health/ready": lambda: _answer_health(surface.ready()),
        "/status": lambda: _json_answer(HTTPStatus.OK, surface.status()),
        **{
            route.path: partial(_answer_read, route.read)
            for route in surface.routes
            if route.read is not None
        },
    }
    controlling = {route.path: route for route in surface.routes}
    path = request.path.partition("?")[0].rstrip("/")
    match request.method:
        case "GET" | "HEAD" if path in reading:
            if not path.startswith(_HEALTH):
                request.begin_answer()
            return reading[path]()
        case "POST" if path in controlling:
            return _answer_control(controlling[path], request, access)
    if path in (*reading, *controlling):
        allowed = [method for method, paths in (("GET", reading), ("POST", controlling)) if path in paths]
        uses = " or ".join(f"{method} {path}" for method in allowed)
        raise Refused(f"Method not allowed. Use {uses}.", HTTPStatus.METHOD_NOT_ALLOWED)
    known = ", ".join(dict.fromkeys((*reading, *controlling)))
    raise Refused(f"Path not found. Paths: {known}.", HTTPStatus.NOT_FOUND)


def _answer_metrics(request: Request, surface: Surface) -> Answer:
    try:
        encode, kind = choose_encoder(request.headers.get("accept", ""))
        return Answer(HTTPStatus.OK, encode(surface.registry), kind)
    except TypeError:  # the library compares a version that is no number with one
        encode, kind = choose_encoder("")
        return Answer(HTTPStatus.OK, encode(surface.registry), kind)


def _answer_health(health: Health) -> Answer:
    return _json_answer(HTTPStatus.OK if health.ok else HTTPStatus.SERVICE_UNAVAILABLE, attrs.asdict(health))


def _answer_read(read: Callable[[], Body]) -> Answer:
    return _json_answer(HTTPStatus.OK, read())


def _answer_control(route: Route, request: Request, access: Access) -> Answer:
    access.check_control(request.headers)
    body = _parse_body(request)
    request.begin_answer()
    content = route.handle(body)
    _log.info("control request handled", path=route.path, address=request.address)
    return _json_answer(HTTPStatus.OK, content)


def _parse_body(request: Request) -> Body:
    length = _content_length(request.headers)
    if length > LARGEST_BODY:
        raise Refused(f"The body is longer than {LARGEST_BODY} bytes.", HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    try:
        body = json.loads(request.read(length))
    except (ValueError, RecursionError):
        raise Refused("The body is not JSON.") from None
    if not isinstance(body, dict):
        raise Refused("The body is not a JSON object.")
    return body


def _content_length(headers: Mapping[str, str]) -> int:
    """Return the length of the body in bytes (RFC 9112, 6.3), at most one more than `LARGEST_BODY`."""
    length = headers.get("content-length")
    if "transfer-encoding" in headers:
        if length is not None:
            raise Refused("Send Content-Length or Transfer-Encoding, not both.")
        raise Refused("Send Content-Length instead of Transfer-Encoding.", HTTPStatus.LENGTH_REQUIRED)
    if length is None:
        raise Refused("Content-Length header required.", HTTPStatus.LENGTH_REQUIRED)
    if not (length.isascii() and length.isdigit()):
        raise Refused("Content-Length is not one number.")
    digits = length.lstrip("0") or "0"
    return int(digits) if len(digits) <= len(str(LARGEST_BODY)) else LARGEST_BODY + 1


def _json_answer(status: HTTPStatus, content: Body) -> Answer:
    return Answer(status, (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode())
