"""GitHub and GitLab, as far as a report is put there: comments and issues, found again and replaced."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, OpenerDirector, Request, build_opener

import attrs

_SECONDS = 30
_PAGE = 100
Entry = Mapping[str, Any]


class ForgeError(Exception):
    """What the forge refused or lacks; the text is meant for the operator and holds no token."""


@attrs.frozen(kw_only=True)
class Board:
    """Where entries of one kind stand: `path` lists and takes them, `each` is the path of one, `id` its key.

    `text` is the key of the body, `change` the method that changes an entry, `closed` what closes it.
    """

    path: str
    each: str
    id: str
    text: str
    change: str
    query: Mapping[str, str] = attrs.field(factory=dict)
    closed: Mapping[str, str] = attrs.field(factory=dict)


@attrs.frozen
class Forge:
    """`api` is the address of the interface, `headers` hold the token."""

    api: str
    headers: Mapping[str, str] = attrs.field(repr=False)
    comments: Callable[[int], Board]
    """Those of a pull or merge request."""
    issues: Board
    """Those that are open."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "Forge":
        """Return the forge that a pipeline runs on; raises `ForgeError`."""
        if repository := environment.get("GITHUB_REPOSITORY"):
            return _github(repository, environment)
        if project := environment.get("CI_PROJECT_ID"):
            return _gitlab(project, environment)
        raise ForgeError(
            "No forge is named: neither GITHUB_REPOSITORY nor CI_PROJECT_ID is set.\n"
            "  Run it in a pipeline of GitHub or GitLab, or set their variables."
        )

    def put(self, board: Board, entry: Entry, is_same: Callable[[Entry], bool]) -> str:
        """Replace the first entry that `is_same`, else add one; return what was done."""
        found = next(filter(is_same, self._entries(board)), None)
        if found is None:
            self._ask("POST", board.path, entry)
            return "created"
        if all(found.get(key) == value for key, value in entry.items()):
            return "unchanged"
        self._ask(board.change, board.each.format(id=found[board.id]), entry)
        return "updated"

    def close(self, board: Board, entry: Entry, is_same: Callable[[Entry], bool]) -> str:
        """Close every entry that `is_same`, with a last text; return what was done."""
        found = [*filter(is_same, self._entries(board))]
        for each in found:
            self._ask(board.change, board.each.format(id=each[board.id]), {**entry, **board.closed})
        return "closed" if found else "nothing to close"

    def _entries(self, board: Board) -> Iterator[Entry]:
        page = 1
        while entries := self._ask("GET", board.path, query={**board.query, "page": str(page)}):
            yield from entries
            if len(entries) < _PAGE:
                break
            page += 1

    def _ask(
        self, method: str, path: str, body: Entry | None = None, query: Mapping[str, str] | None = None
    ) -> Any:  # noqa: ANN401 - what the forge answers
        search = "" if query is None else f"?{urlencode({'per_page': str(_PAGE), **query})}"
        request = Request(  # noqa: S310 - `_checked` lets nothing but http through
            f"{self.api}{path}{search}",
            data=None if body is None else json.dumps(body).encode(),
            headers={**self.headers, "Content-Type": "application/json", "User-Agent": "headwater"},
            method=method,
        )
        try:
            with _opener().open(request, timeout=_SECONDS) as answer:
                return json.load(answer)
        except HTTPError as error:
            with error:
                reason = f"{error.code} {error.reason}"
        except URLError as error:
            reason = str(error.reason)
        except (TimeoutError, ValueError) as error:
            reason = str(error) or "no answer"
        raise ForgeError(
            f"{method} {self.api}{path} failed: {reason}.\n"
            "  Check that the token is valid and may write comments or issues there."
        )


class _NoRedirects(HTTPRedirectHandler):
    """A redirect would take the token to another host."""

    def redirect_request(self, *_: Any) -> None:  # noqa: ANN401 - urllib's signature
        return None


def _opener() -> OpenerDirector:
    return build_opener(_NoRedirects)


def _github(repository: str, environment: Mapping[str, str]) -> Forge:
    here = f"/repos/{quote(repository)}"
    return Forge(
        _checked(environment.get("GITHUB_API_URL") or "https://api.github.com"),
        {
            "Authorization": f"Bearer {_token(environment, 'GITHUB_TOKEN')}",
            "Accept": "application/vnd.github+json",
        },
        lambda number: Board(
            path=f"{here}/issues/{number}/comments",
            each=f"{here}/issues/comments/{{id}}",
            id="id",
            text="body",
            change="PATCH",
        ),
        Board(
            path=f"{here}/issues",
            each=f"{here}/issues/{{id}}",
            id="number",
            text="body",
            change="PATCH",
            query={"state": "open"},
            closed={"state": "closed"},
        ),
    )


def _gitlab(project: str, environment: Mapping[str, str]) -> Forge:
    here = f"/projects/{quote(project, safe='')}"
    return Forge(
        _checked(environment.get("CI_API_V4_URL") or "https://gitlab.com/api/v4"),
        {"PRIVATE-TOKEN": _token(environment, "GITLAB_TOKEN")},
        lambda number: Board(
            path=f"{here}/merge_requests/{number}/notes",
            each=f"{here}/merge_requests/{number}/notes/{{id}}",
            id="id",
            text="body",
            change="PUT",
        ),
        Board(
            path=f"{here}/issues",
            each=f"{here}/issues/{{id}}",
            id="iid",
            text="description",
            change="PUT",
            query={"state": "opened"},
            closed={"state_event": "close"},
        ),
    )


def _checked(api: str) -> str:
    """Return an address to which a token may be sent."""
    address = urlsplit(api)
    is_local = address.scheme == "http" and address.hostname in ("localhost", "127.0.0.1", "::1")
    if address.scheme != "https" and not is_local:
        raise ForgeError(f"{api} is no https address: a token would go over the line in the clear.")
    return api.rstrip("/")


def _token(environment: Mapping[str, str], name: str) -> str:
    if token := environment.get(name):
        return token
    raise ForgeError(f"No token: {name} is not set.\n  Give the step a token that may write what it posts.")
