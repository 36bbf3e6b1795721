"""`headwater publish`: publish a report as a comment or an issue, and update it."""

import os
import re
import stat
from pathlib import Path

import click

from headwater.cli.forges import Entry, Forge, ForgeError

_MOST_BYTES = 8 << 20
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
    text = _read(file)
    try:
        forge = Forge.from_environment(os.environ)
        if pull_request is not None:
            done = _comment(forge, pull_request, text)
        else:
            done = _issue(forge, str(issue), text, close=close)
    except ForgeError as error:
        raise click.ClickException(str(error)) from None
    click.echo(done)


def _read(file: Path) -> str:
    try:
        return _content(file).decode()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        if isinstance(error, UnicodeDecodeError):
            reason = "it is not UTF-8 text"
        raise click.ClickException(
            f"{file} cannot be read: {reason}.\n  Name the Markdown file that Headwater wrote."
        ) from None


def _content(file: Path) -> bytes:
    """Return the content of a regular file of limited size.

    A repository may contain a link in the place of the file, for example to the environment of this process.

    Raises:
        OSError, ValueError: It cannot be read, or must not be published.
    """
    here, target = Path.cwd().resolve(), file.resolve(strict=True)
    is_link = file.is_symlink() or not file.is_absolute()
    if is_link and not target.is_relative_to(here):
        raise ValueError("it is a link to a file outside of the working folder")
    with target.open("rb") as opened:
        status = os.fstat(opened.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("it is not a regular file")
        content = opened.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise ValueError(f"it is larger than {_MOST_BYTES >> 20} MiB")
    if len(content) != status.st_size:
        raise ValueError("it is not a file of a disk, or it changed meanwhile")
    return content


def _comment(forge: Forge, pull_request: int, text: str) -> str:
    marker = text.partition("\n")[0]
    if not _MARKER.fullmatch(marker):
        raise ForgeError(
            "The file does not begin with a marker, so its comment could not be found again.\n"
            "  Create it with `headwater plan-comment`."
        )
    endpoints = forge.comments(pull_request)

    def is_same(entry: Entry) -> bool:
        return str(entry[endpoints.text]).splitlines()[:1] == [marker]

    return f"comment {forge.publish(endpoints, {endpoints.text: text}, is_same)}"


def _issue(forge: Forge, title: str, text: str, *, close: bool) -> str:
    endpoints = forge.issues

    def is_same(entry: Entry) -> bool:
        # GitHub lists pull requests among the issues.
        return entry["title"] == title and "pull_request" not in entry

    if close:
        return f"issue: {forge.close(endpoints, {endpoints.text: text}, is_same)}"
    return f"issue {forge.publish(endpoints, {'title': title, endpoints.text: text}, is_same)}"
