"""`headwater publish`: comments and issues on GitHub and GitLab."""

import json
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

import attrs
import click

from headwater.cli.console import print_line

_REQUEST_SECONDS = 30
_PAGE = 100
_MOST_ANSWERED_BYTES = 32 << 20
Entry = Mapping[str, Any]


class ForgeError(click.ClickException):
    """A request failed or a setting is missing; the text is for the operator and contains no token."""


@attrs.frozen(kw_only=True)
class Endpoints:
    """The API paths and JSON keys for one kind of entry: the comments of a pull request, or issues.

    `path` lists and creates entries, with the parameters `query`. `entry_path` is the path of one entry, `id`
    the key of its id, `text` the key of its body. `update_method` is the HTTP method of an update, `closed`
    has the fields that close an entry.
    """

    path: str
    entry_path: str
    id: str
    text: str
    update_method: str
    query: Mapping[str, str] = attrs.field(factory=dict)
    closed: Mapping[str, str] = attrs.field(factory=dict)


@attrs.frozen
class Author:
    """The author of an entry, or the owner of a token. A bot and a user may have the same name."""

    name: str
    is_bot: bool

    @classmethod
    def from_user(cls, user: Entry) -> "Author | None":
        """Read a user of GitHub (`login`, `type`) or GitLab (`username`); None = no name is known."""
        name = str(user.get("login") or user.get("username") or "")
        is_bot = name.endswith("[bot]") or user.get("type") == "Bot"
        return cls(name.removesuffix("[bot]"), is_bot) if name else None


@attrs.frozen
class Forge:
    """A forge: `api` is the address of its API, `headers` contain the token."""

    api: str
    headers: Mapping[str, str] = attrs.field(repr=False)
    comments: Callable[[int], Endpoints]
    """The comments of the pull or merge request with a number."""
    issues: Endpoints
    """The open issues."""
    user: Callable[["Forge"], "Author | None"]
    """Ask who the owner of the token is."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "Forge":
        """Return the forge that the pipeline runs on.

        Raises:
            ForgeError: The environment names no forge, no token, or an address without https.
        """
        if repository := environment.get("GITHUB_REPOSITORY"):
            return _github_forge(repository, environment)
        if project := environment.get("CI_PROJECT_ID"):
            return _gitlab_forge(project, environment)
        raise ForgeError(
            "No forge is configured: neither GITHUB_REPOSITORY nor CI_PROJECT_ID is set.\n"
            "  Run this command in a pipeline of GitHub or GitLab, or set their variables."
        )

    def publish_entry(self, endpoints: Endpoints, entry: Entry, is_same: Callable[[Entry], bool]) -> str:
        """Update the first entry of this user that `is_same`, or create one; return what was done.

        The result is `created`, `updated` or `unchanged`. Entries of others are never changed: everyone can
        write a comment that looks like ours. Raises `ForgeError`.
        """
        found = next(self._own_entries(endpoints, is_same), None)
        if found is None:
            self.request("POST", endpoints.path, entry)
            return "created"
        if all(found.get(key) == value for key, value in entry.items()):
            return "unchanged"
        self.request(endpoints.update_method, endpoints.entry_path.format(id=found[endpoints.id]), entry)
        return "updated"

    def close_entries(self, endpoints: Endpoints, entry: Entry, is_same: Callable[[Entry], bool]) -> str:
        """Update all entries of this user that are `is_same` and close them; return what was done.

        The result is `closed` or `nothing to close`. Raises `ForgeError`.
        """
        found = [*self._own_entries(endpoints, is_same)]
        for each in found:
            self.request(
                endpoints.update_method,
                endpoints.entry_path.format(id=each[endpoints.id]),
                {**entry, **endpoints.closed},
            )
        return "closed" if found else "nothing to close"

    def _own_entries(self, endpoints: Endpoints, is_same: Callable[[Entry], bool]) -> Iterator[Entry]:
        user: Author | None = None
        for entry in filter(is_same, self._entries(endpoints)):
            user = user or self.user(self)
            if user is not None and user == Author.from_user(entry.get("user") or entry.get("author") or {}):
                yield entry

    def _entries(self, endpoints: Endpoints) -> Iterator[Entry]:
        page = 1
        while entries := self.request("GET", endpoints.path, query={**endpoints.query, "page": str(page)}):
            yield from entries
            if len(entries) < _PAGE:
                break
            page += 1

    def request(
        self, method: str, path: str, body: Entry | None = None, query: Mapping[str, str] | None = None
    ) -> Any:  # noqa: ANN401 - JSON of the forge
        """Send a request and return the JSON of the answer; raises `ForgeError`."""
        search = "" if query is None else f"?{urlencode({'per_page': str(_PAGE), **query})}"
        request = Request(  # noqa: S310 - `_checked` allows only http and https
            f"{self.api}{path}{search}",
            data=None if body is None else json.dumps(body).encode(),
            headers={**self.headers, "Content-Type": "application/json", "User-Agent": "headwater"},
            method=method,
        )
        try:
            with build_opener(_NoRedirects).open(request, timeout=_REQUEST_SECONDS) as answer:
                content = answer.read(_MOST_ANSWERED_BYTES + 1)
                if len(content) > _MOST_ANSWERED_BYTES:
                    raise ForgeError(f"{method} {self.api}{path} failed: the answer is too large.")
                return json.loads(content)
        except HTTPError as error:
            with error:
                reason = f"{error.code} {error.reason}"
        except URLError as error:
            reason = str(error.reason)
        except TimeoutError:
            reason = "no answer"
        except (json.JSONDecodeError, UnicodeDecodeError):
            reason = "the answer is not JSON"
        except ValueError:  # its text has the token
            reason = "the token has a character that no token may have"
        raise ForgeError(
            f"{method} {self.api}{path} failed: {reason}.\n"
            "  Check that the token is valid and has permission to write comments or issues."
        )


class _NoRedirects(HTTPRedirectHandler):
    """Refuses redirects, which would send the token to another host."""

    def redirect_request(self, *_: Any) -> None:  # noqa: ANN401 - urllib's signature
        return None


def _github_forge(repository: str, environment: Mapping[str, str]) -> Forge:
    base = f"/repos/{quote(repository)}"
    return Forge(
        _checked_address(environment.get("GITHUB_API_URL") or "https://api.github.com"),
        {
            "Authorization": f"Bearer {_token_of(environment, 'GITHUB_TOKEN')}",
            "Accept": "application/vnd.github+json",
        },
        lambda number: Endpoints(
            path=f"{base}/issues/{number}/comments",
            entry_path=f"{base}/issues/comments/{{id}}",
            id="id",
            text="body",
            update_method="PATCH",
        ),
        issues=Endpoints(
            path=f"{base}/issues",
            entry_path=f"{base}/issues/{{id}}",
            id="number",
            text="body",
            update_method="PATCH",
            query={"state": "open"},
            closed={"state": "closed"},
        ),
        user=_github_user,
    )


def _github_user(forge: Forge) -> Author | None:
    """Return the user of a token. Tokens of pipelines and apps cannot read `/user`, but GraphQL answers."""
    try:
        return Author.from_user(forge.request("GET", "/user"))
    except ForgeError:
        path = "/../graphql" if forge.api.endswith("/v3") else "/graphql"
        answer = forge.request("POST", path, {"query": "{viewer {login __typename}}"})
        viewer = (answer.get("data") or {}).get("viewer") or {}
        return Author.from_user({"login": viewer.get("login"), "type": viewer.get("__typename")})


def _gitlab_forge(project: str, environment: Mapping[str, str]) -> Forge:
    base = f"/projects/{quote(project, safe='')}"
    return Forge(
        _checked_address(environment.get("CI_API_V4_URL") or "https://gitlab.com/api/v4"),
        {"PRIVATE-TOKEN": _token_of(environment, "GITLAB_TOKEN")},
        lambda number: Endpoints(
            path=f"{base}/merge_requests/{number}/notes",
            entry_path=f"{base}/merge_requests/{number}/notes/{{id}}",
            id="id",
            text="body",
            update_method="PUT",
        ),
        issues=Endpoints(
            path=f"{base}/issues",
            entry_path=f"{base}/issues/{{id}}",
            id="iid",
            text="description",
            update_method="PUT",
            query={"state": "opened"},
            closed={"state_event": "close"},
        ),
        user=lambda forge: Author.from_user(forge.request("GET", "/user")),
    )


def _checked_address(api: str) -> str:
    """Return the address without a trailing slash, if it is safe to send a token there."""
    address = urlsplit(api)
    is_local = address.scheme == "http" and address.hostname in ("localhost", "127.0.0.1", "::1")
    if address.scheme != "https" and not is_local:
        raise ForgeError(f"{api} is not an https address: the token would be sent unencrypted.")
    return api.rstrip("/")


def _token_of(environment: Mapping[str, str], name: str) -> str:
    if token := environment.get(name, "").strip():
        return token
    raise ForgeError(
        f"No token: {name} is not set.\n  Set it to a token with permission to write comments and issues."
    )


_MOST_REPORT_BYTES = 8 << 20
_MARKER = re.compile(r"<!-- .+ -->")


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--pull-request",
    "--merge-request",
    type=click.IntRange(1),
    metavar="NUMBER",
    help="Publish as a comment there; replaces the token owner's comment with the same first line.",
)
@click.option(
    "--issue",
    metavar="TITLE",
    help="Publish as an issue; replaces the text of the token owner's open issue with this title.",
)
@click.option("--close", is_flag=True, help="Replace the text of these open issues and close them.")
def publish(*, file: Path, pull_request: int | None, issue: str | None, close: bool) -> None:
    """Publish a report as a comment or issue on GitHub or GitLab.

    FILE is Markdown. A second run replaces the text of the first. The address and the repository are read
    from the variables of the pipeline, the token from GITHUB_TOKEN or GITLAB_TOKEN. Connects to no cluster.

    \b
    Examples:
      headwater publish comment.md --pull-request 12
      headwater publish drift.md --issue "Kafka topics of production drifted"
    """
    if (pull_request is None) == (issue is None):
        raise click.UsageError("Exactly one of --pull-request NUMBER and --issue TITLE is required.")
    if close and issue is None:
        raise click.UsageError("--close requires --issue TITLE.")
    text = _read_report(file)
    forge = Forge.from_environment(os.environ)
    if pull_request is not None:
        print_line(_publish_comment(forge, pull_request, text))
    else:
        print_line(_publish_issue(forge, str(issue), text, close=close))


def _read_report(file: Path) -> str:
    try:
        text = _read_content(file).decode()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        if isinstance(error, UnicodeDecodeError):
            reason = "it is not UTF-8 text"
        raise click.ClickException(
            f"{file} cannot be read: {reason}.\n  Name the Markdown file that Headwater wrote."
        ) from None
    if not text.strip():
        raise click.ClickException(f"{file} is empty.\n  Name the Markdown file that Headwater wrote.")
    return text


def _read_content(file: Path) -> bytes:
    """Return the content of a regular file of limited size; raises `OSError` and `ValueError`.

    A repository may contain a link in the place of the file, for example to the environment of this process.
    """
    here, target = Path.cwd().resolve(), file.resolve(strict=True)
    is_link = file.is_symlink() or not file.is_absolute()
    if is_link and not target.is_relative_to(here):
        raise ValueError("it is a link to a file outside of the working folder")
    with target.open("rb") as opened:
        status = os.fstat(opened.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("it is not a regular file")
        content = opened.read(_MOST_REPORT_BYTES + 1)
    if len(content) > _MOST_REPORT_BYTES:
        raise ValueError(f"it is larger than {_MOST_REPORT_BYTES >> 20} MiB")
    if len(content) != status.st_size:
        raise ValueError("it is not a file of a disk, or it changed meanwhile")
    return content


def _publish_comment(forge: Forge, pull_request: int, text: str) -> str:
    marker = text.partition("\n")[0]
    if not _MARKER.fullmatch(marker):
        raise ForgeError(
            "The file does not begin with a marker, so its comment could not be found again.\n"
            "  Create it with `headwater plan-comment`."
        )
    endpoints = forge.comments(pull_request)

    def is_same(entry: Entry) -> bool:
        return str(entry[endpoints.text]).splitlines()[:1] == [marker]

    return f"comment {forge.publish_entry(endpoints, {endpoints.text: text}, is_same)}"


def _publish_issue(forge: Forge, title: str, text: str, *, close: bool) -> str:
    endpoints = forge.issues

    def is_same(entry: Entry) -> bool:
        # GitHub lists pull requests among the issues.
        return entry["title"] == title and "pull_request" not in entry

    if close:
        return f"issue: {forge.close_entries(endpoints, {endpoints.text: text}, is_same)}"
    return f"issue {forge.publish_entry(endpoints, {'title': title, endpoints.text: text}, is_same)}"
