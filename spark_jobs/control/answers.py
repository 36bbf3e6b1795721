"""Which part of the surface answers a request, and what the answer looks like."""

import json
from collections.abc import Callable, Mapping
from http import HTTPStatus

import attrs
import structlog
from prometheus_client.exposition import choose_encoder

from spark_jobs.control.access import Access
from spark_jobs.control.surface import Body, Health, Refused, Route, Surface

LARGEST_BODY = 64 * 1024
"""Bytes of a request's body that are read; what is longer is refused."""
_JSON = "application/json"

_log = structlog.get_logger(__name__)


@attrs.frozen
class Request:
    """`headers` have lower-case names. `read` gives that many bytes of the body; nothing is read unasked."""

    method: str
    path: str
    headers: Mapping[str, str]
    read: Callable[[int], bytes]
    address: str = ""


@attrs.frozen
class Answer:
    status: HTTPStatus
    content: bytes
    kind: str = _JSON


def answer(request: Request, surface: Surface, access: Access) -> Answer:
    """Answer a request, whatever goes wrong; errors are JSON objects with the key `error`."""
    try:
        return _routed(request, surface, access)
    except Refused as refused:
        return _json(refused.status, {"error": refused.message})
    except Exception:  # noqa: BLE001 - logged with its traceback; one bad answer must not end the server
        _log.exception("answer failed", path=request.path)
        told = "The client could not answer; its log says why."
        return _json(HTTPStatus.INTERNAL_SERVER_ERROR, {"error": told})


def _routed(request: Request, surface: Surface, access: Access) -> Answer:
    reading: Mapping[str, Callable[[], Answer]] = {
        "/metrics": lambda: _metrics(request, surface),
        "/health/live": lambda: _health(surface.live()),
        "/health/ready": lambda: _health(surface.ready()),
        "/status": lambda: _json(HTTPStatus.OK, surface.status()),
    }
    controlling = {route.path: route for route in surface.routes}
    path = request.path.partition("?")[0].rstrip("/")
    match request.method:
        case "GET" | "HEAD" if path in reading:
            return reading[path]()
        case "POST" if path in controlling:
            return _controlled(controlling[path], request, access)
    if path in (*reading, *controlling):
        method = "GET" if path in reading else "POST"
        raise Refused(f"Ask for {path} by {method}.", HTTPStatus.METHOD_NOT_ALLOWED)
    known = ", ".join((*reading, *controlling))
    raise Refused(f"There is nothing at this path. There is {known}.", HTTPStatus.NOT_FOUND)


def _metrics(request: Request, surface: Surface) -> Answer:
    encode, kind = choose_encoder(request.headers.get("accept", ""))
    return Answer(HTTPStatus.OK, encode(surface.registry), kind)


def _health(health: Health) -> Answer:
    return _json(HTTPStatus.OK if health.ok else HTTPStatus.SERVICE_UNAVAILABLE, attrs.asdict(health))


def _controlled(route: Route, request: Request, access: Access) -> Answer:
    access.check_control(request.headers)
    body = _body(request)
    told = route.handle(body)
    _log.info("controlled", path=route.path, address=request.address)
    return _json(HTTPStatus.OK, told)


def _body(request: Request) -> Body:
    length = request.headers.get("content-length", "")
    if not (length.isascii() and length.isdigit()):
        raise Refused("Say the Content-Length.", HTTPStatus.LENGTH_REQUIRED)
    if int(length[:10]) > LARGEST_BODY:
        raise Refused(f"Send at most {LARGEST_BODY} bytes.", HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    try:
        body = json.loads(request.read(int(length)))
    except (ValueError, RecursionError):
        raise Refused("The body is not JSON.") from None
    if not isinstance(body, dict):
        raise Refused("The body is not a JSON object.")
    return body


def _json(status: HTTPStatus, content: Body) -> Answer:
    return Answer(status, (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode())
