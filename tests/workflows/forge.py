"""A test server for the APIs of GitHub and GitLab (comments and issues in memory) and a chat webhook."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, TypeGuard
from urllib.parse import parse_qsl, urlsplit

import attrs

_LIST_PATH = re.compile(
    r"/(?:repos/acme/shop|projects/7)/(issues/\d+/comments|merge_requests/\d+/notes|issues)$"
)
_ENTRY_PATH = re.compile(
    r"/(?:repos/acme/shop|projects/7)/(?:issues/comments|merge_requests/\d+/notes|issues)/(\d+)$"
)
TOKEN = "forge-token-51c7"
OWNER = "headwater-bot"
"""The owner of the token, who writes all comments of the tests' commands."""
_TOKENS = {"Authorization": f"Bearer {TOKEN}", "PRIVATE-TOKEN": TOKEN}


@attrs.define
class Forge:
    """`entries` are comments and issues in order, each with its `path`; `done` lists the changes."""

    address: str = ""
    owner: dict[str, Any] = attrs.field(factory=lambda: {"login": OWNER, "username": OWNER, "type": "User"})
    """Who the token belongs to."""
    is_app: bool = False
    """Whether the token is that of an app, which cannot read `/user`."""
    entries: list[dict[str, Any]] = attrs.field(factory=list)
    done: list[str] = attrs.field(factory=list)
    chat: list[dict[str, Any]] = attrs.field(factory=list)
    packages: dict[str, bytes] = attrs.field(factory=dict)
    """The files of the package registry of GitLab, by their paths."""

    def add(self, path: str, **entry: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        number = len(self.entries) + 1
        made = {"id": number, "number": number, "iid": number, "path": path, "title": "", **entry}
        made.setdefault("user", {"login": "ada", "username": "ada", "type": "User"})
        made["author"] = made["user"]
        self.entries.append(made)
        return made

    def open_entries(self, path: str) -> list[dict[str, Any]]:
        """Return the entries of an API path that are not closed."""
        return [entry for entry in self.entries if entry["path"] == path and not _is_closed(entry)]

    def texts(self, path: str) -> list[str]:
        return [str(entry.get("body") or entry.get("description")) for entry in self.open_entries(path)]


class _Handler(BaseHTTPRequestHandler):
    forge: Forge

    def do_GET(self) -> None:
        if "/packages/generic/" in self.path:
            self._package()
            return
        if self.path == "/user":
            self._answer(403 if self.forge.is_app else 200, self.forge.owner)
            return
        address = urlsplit(self.path)
        path, query = _LIST_PATH.match(address.path), dict(parse_qsl(address.query))
        if self._is_authorized(path):
            first = (int(query["page"]) - 1) * int(query["per_page"])
            self._answer(200, self.forge.open_entries(path[1])[first : first + int(query["per_page"])])

    def do_POST(self) -> None:
        if self.path == "/chat":
            self.forge.chat.append(self._body())
            self._answer(200, {})
        elif self.path == "/graphql":
            viewer = {"login": self.forge.owner["login"], "__typename": self.forge.owner["type"]}
            self._answer(200, {"data": {"viewer": viewer}})
        elif self._is_authorized(path := _LIST_PATH.match(self.path)):
            self.forge.done.append("created")
            self._answer(201, self.forge.add(path[1], **self._body(), user=self.forge.owner))

    def do_PATCH(self) -> None:
        if self._is_authorized(entry := _ENTRY_PATH.match(self.path)):
            self.forge.done.append("updated")
            self.forge.entries[int(entry[1]) - 1].update(self._body())
            self._answer(200, {})

    def do_PUT(self) -> None:
        if "/packages/generic/" in self.path:
            self.forge.packages[self.path] = self.rfile.read(int(self.headers["Content-Length"]))
            self._answer(201, {})
        else:
            self.do_PATCH()

    def _package(self) -> None:
        found = self.forge.packages.get(self.path)
        self.send_response(404 if found is None or self.headers.get("JOB-TOKEN") != TOKEN else 200)
        self.end_headers()
        self.wfile.write(found or b"")

    def _is_authorized(self, path: re.Match[str] | None) -> TypeGuard[re.Match[str]]:
        if path is None or not any(self.headers.get(name) == value for name, value in _TOKENS.items()):
            self._answer(404, {})
            return False
        return True

    def _body(self) -> dict[str, Any]:
        return dict(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def _answer(self, code: int, body: object) -> None:
        self.send_response(code)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, *_: object) -> None:
        """Discard the log line."""


@contextmanager
def running_forge() -> Iterator[Forge]:
    forge = Forge()
    handler = type("Handler", (_Handler,), {"forge": forge})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        forge.address = f"http://127.0.0.1:{server.server_port}"
        thread = Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield forge
        finally:
            server.shutdown()
            thread.join()


def _is_closed(entry: dict[str, Any]) -> bool:
    return entry.get("state") == "closed" or entry.get("state_event") == "close"
