import json
from collections.abc import Callable, Iterator, Mapping
from http.client import HTTPConnection, HTTPResponse
from typing import Any
from urllib.parse import urlsplit

import attrs
import pytest
from structlog.testing import capture_logs

from spark_jobs.control import Access, ControlServer, Surface


@attrs.frozen
class Answered:
    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def json(self) -> Any:  # noqa: ANN401 - JSON
        return json.loads(self.text)


class Asking:
    """A plain HTTP client for one endpoint."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._address = urlsplit(url).netloc

    def get(self, path: str, **headers: str) -> Answered:
        return self.ask("GET", path, None, headers)

    def post(self, path: str, body: object, headers: Mapping[str, str] | None = None) -> Answered:
        text = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.ask("POST", path, text, {"Content-Type": "application/json", **(headers or {})})

    def ask(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> Answered:
        connection = HTTPConnection(self._address, timeout=60)
        try:
            connection.request(method, path, body, dict(headers))
            answer: HTTPResponse = connection.getresponse()
            return Answered(answer.status, dict(answer.getheaders()), answer.read().decode())
        finally:
            connection.close()


@pytest.fixture(autouse=True)
def _silence() -> Iterator[None]:
    """Keep what endpoints log out of what commands print."""
    with capture_logs():
        yield


@pytest.fixture
def serving() -> Iterator[Callable[..., Asking]]:
    """Serve a surface on a free port: `serving(surface, token=...)`."""
    servers: list[ControlServer] = []

    def serve(surface: Surface, *, host: str = "127.0.0.1", token: str | None = None) -> Asking:
        servers.append(ControlServer(surface, Access(host, 0, token)).start())
        return Asking(servers[-1].url)

    yield serve
    for server in servers:
        server.close()
