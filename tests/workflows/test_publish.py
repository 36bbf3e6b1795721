"""`headwater publish`: one comment, one issue, and the token is sent only to the forge."""

import os
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
from click.testing import CliRunner, Result

from headwater.cli.console import ExitCode
from headwater.cli.main import main
from tests.workflows.forge import TOKEN, Forge, running_forge

MARKER = "<!-- headwater plan-comment shop/production -->"
Publish = Callable[..., Result]


@pytest.fixture
def forge() -> Iterator[Forge]:
    with running_forge() as forge:
        yield forge


@pytest.fixture(params=["github", "gitlab"])
def publish(
    request: pytest.FixtureRequest, forge: Forge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Publish:
    github = {"GITHUB_REPOSITORY": "acme/shop", "GITHUB_API_URL": forge.address, "GITHUB_TOKEN": TOKEN}
    gitlab = {"CI_PROJECT_ID": "7", "CI_API_V4_URL": forge.address, "GITLAB_TOKEN": TOKEN}
    for name, value in (github if request.param == "github" else gitlab).items():
        monkeypatch.setenv(name, value)

    def run(text: str, *arguments: str) -> Result:
        (tmp_path / "report.md").write_text(text)
        return CliRunner().invoke(main, ["publish", str(tmp_path / "report.md"), *arguments])

    return run


def test_own_comment_is_replaced_and_comments_of_users_are_kept(forge: Forge, publish: Publish) -> None:
    for path in ("issues/3/comments", "merge_requests/3/notes"):
        for number in range(250):
            forge.add(path, body=f"{number}\n{MARKER}")
    for text, done in (("one", "created"), ("one", "unchanged"), ("two", "updated")):
        result = publish(f"{MARKER}\n{text}\n", "--pull-request", "3")
        assert result.stdout == f"comment {done}\n", result.output
    assert len(forge.entries) == 501
    assert forge.entries[-1]["body"] == f"{MARKER}\ntwo\n"
    assert forge.done == ["created", "updated"]


def test_an_issue_is_opened_once_and_closed(forge: Forge, publish: Publish) -> None:
    forge.add("issues", title="Drift", body="a pull request of that title", pull_request={})
    assert publish("gone", "--issue", "Drift", "--close").stdout == "issue: nothing to close\n"
    for text, done in (("one", "created"), ("one", "unchanged"), ("two", "updated")):
        assert publish(text, "--issue", "Drift").stdout == f"issue {done}\n"
    assert publish("gone", "--issue", "Drift", "--close").stdout == "issue: closed\n"
    assert publish("again", "--issue", "Drift").stdout == "issue created\n"
    assert forge.texts("issues") == ["a pull request of that title", "again"]


def test_report_without_a_marker_is_refused(publish: Publish) -> None:
    result = publish("no marker\n", "--pull-request", "3")
    assert result.exit_code == ExitCode.PROBLEMS
    assert "does not begin with a marker" in result.stderr


@pytest.mark.parametrize("arguments", [(), ("--pull-request", "3", "--issue", "a"), ("--close",)])
def test_exactly_one_target_is_required(publish: Publish, arguments: tuple[str, ...]) -> None:
    assert publish("text", *arguments).exit_code == ExitCode.USAGE


def test_error_does_not_contain_the_refused_token(publish: Publish, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GITHUB_TOKEN", "GITLAB_TOKEN"):
        monkeypatch.setenv(name, "another-secret")
    result = publish("text", "--issue", "Drift")
    assert result.exit_code == ExitCode.PROBLEMS
    assert "failed: 404" in result.stderr
    assert "another-secret" not in result.output


@pytest.mark.parametrize("token", ["another-secret\nmore", "another-secret\N{EURO SIGN}"])
def test_error_does_not_contain_a_token_that_cannot_be_sent(
    publish: Publish, monkeypatch: pytest.MonkeyPatch, token: str
) -> None:
    for name in ("GITHUB_TOKEN", "GITLAB_TOKEN"):
        monkeypatch.setenv(name, token)
    result = publish("text", "--issue", "Drift")
    assert result.exit_code == ExitCode.PROBLEMS
    assert "a character that no token may have" in result.stderr
    assert "another-secret" not in result.output


def test_a_token_may_end_with_a_line_break(publish: Publish, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of secrets often do."""
    for name in ("GITHUB_TOKEN", "GITLAB_TOKEN"):
        monkeypatch.setenv(name, f"{TOKEN}\n")
    assert publish("text", "--issue", "Drift").stdout == "issue created\n"


@pytest.mark.parametrize(
    ("variables", "reason"),
    [
        ({}, "No forge is configured"),
        ({"GITHUB_REPOSITORY": "acme/shop"}, "GITHUB_TOKEN is not set"),
        (
            {"CI_PROJECT_ID": "7", "GITLAB_TOKEN": "t", "CI_API_V4_URL": "http://git.example.com"},
            "not an https",
        ),
        ({"CI_PROJECT_ID": "7", "GITLAB_TOKEN": "t", "CI_API_V4_URL": "file:///etc"}, "not an https"),
    ],
)
def test_missing_or_invalid_variables(
    variables: dict[str, str], reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GITHUB_REPOSITORY", "GITHUB_TOKEN", "CI_PROJECT_ID", "GITLAB_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "report.md").write_text("text")
    result = CliRunner().invoke(main, ["publish", str(tmp_path / "report.md"), "--issue", "Drift"])
    assert result.exit_code == ExitCode.PROBLEMS
    assert reason in result.stderr


def test_the_token_follows_no_redirect(
    publish: Publish, forge: Forge, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Elsewhere(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(302)
            self.send_header("Location", forge.address + self.path)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Discard the log line."""

    with HTTPServer(("127.0.0.1", 0), Elsewhere) as server:
        thread = Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        for name in ("GITHUB_API_URL", "CI_API_V4_URL"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{server.server_port}")
        result = publish("text", "--issue", "Drift")
        server.shutdown()
        thread.join()
    assert "failed: 302" in result.stderr
    assert not forge.done


@pytest.mark.parametrize("is_app", [False, True])
def test_comments_of_others_are_never_changed(forge: Forge, publish: Publish, is_app: bool) -> None:  # noqa: FBT001 - parameter of a test
    """Also if they begin with the marker, and if a user has the name of the bot."""
    if is_app:
        forge.owner = {"login": "github-actions[bot]", "username": "project_7_bot", "type": "Bot"}
        forge.is_app = "GITHUB_REPOSITORY" in os.environ
    name = forge.owner["login"].removesuffix("[bot]")
    others = [{"login": "ada", "username": "ada", "type": "User"}]
    others += [{"login": name, "username": "ada", "type": "User"}] if is_app else []
    for path in ("issues/3/comments", "merge_requests/3/notes", "issues"):
        for user in others:
            forge.add(path, body=f"{MARKER}\nmine", description="mine", title="Drift", user=user)
    before = [dict(entry) for entry in forge.entries]
    for text, done in (("one", "created"), ("two", "updated")):
        assert publish(f"{MARKER}\n{text}\n", "--pull-request", "3").stdout == f"comment {done}\n"
        assert publish(text, "--issue", "Drift").stdout == f"issue {done}\n"
    assert publish("gone", "--issue", "Drift", "--close").stdout == "issue: closed\n"
    assert forge.entries[: len(before)] == before


@pytest.mark.usefixtures("publish")
@pytest.mark.parametrize("target", ["/proc/self/environ", "/etc/passwd", "/dev/zero", "../secret.txt"])
@pytest.mark.parametrize("is_folder", [False, True])
def test_a_link_that_leaves_the_working_folder_is_not_published(
    target: str,
    is_folder: bool,  # noqa: FBT001 - parameter of a test
    forge: Forge,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    folder = tmp_path / "checkout"
    folder.mkdir()
    monkeypatch.chdir(folder)
    path = Path(target)
    link = folder / "linked"
    link.symlink_to(path.parent if is_folder else path)
    named = f"linked/{path.name}" if is_folder else "linked"
    result = CliRunner().invoke(main, ["publish", named, "--issue", "Drift"])
    assert result.exit_code != 0
    assert "outside of the working folder" in result.stderr or "is not a regular file" in result.output
    assert not forge.done


@pytest.mark.usefixtures("publish")
@pytest.mark.parametrize("file", ["/proc/self/environ", "/proc/self/status"])
def test_a_file_of_the_kernel_is_not_published(file: str, forge: Forge) -> None:
    result = CliRunner().invoke(main, ["publish", file, "--issue", "Drift"])
    assert result.exit_code == ExitCode.PROBLEMS
    assert "not a file of a disk" in result.stderr
    assert not forge.done


def test_a_file_that_is_too_large_is_not_published(forge: Forge, publish: Publish) -> None:
    result = publish("x" * (9 << 20), "--issue", "Drift")
    assert result.exit_code == ExitCode.PROBLEMS
    assert "larger than 8 MiB" in result.stderr
    assert not forge.done
