"""`headwater change --git`: files of a revision, compared with the working tree."""

import subprocess
from pathlib import Path

import pytest

from headwater.cli.console import ExitCode
from tests.edits.change_command import FILTERED, headwater, read, verdicts, write
from tests.edits.sides import GENERATED


def _git(folder: Path, *arguments: str) -> None:
    of = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *of, *arguments], cwd=folder, check=True, capture_output=True)


def test_a_revision_of_git_is_compared_with_the_working_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = "application: {id: app, kafkaStreams: '4.3'}\ndescribe: {file: app.txt}\n"
    write(tmp_path / "before.yaml", GENERATED)
    for name, text in (("before", GENERATED), ("after", FILTERED)):
        shown = headwater(write(tmp_path / f"{name}.yaml", text), command="describe")
        write(tmp_path / f"{name}.txt", shown.stdout)
    repository = tmp_path / "repository"
    write(repository / "topologies/app.yaml", document)
    write(repository / "topologies/app.txt", (tmp_path / "before.txt").read_text())
    _git(repository, "init", "--quiet")
    _git(repository, "add", ".")
    _git(repository, "commit", "--quiet", "--message", "Add")
    write(repository / "topologies/app.txt", (tmp_path / "after.txt").read_text())
    monkeypatch.chdir(repository)

    found = read(headwater("topologies", "--git", "HEAD", "--format", "json"))
    unknown = headwater("topologies", "--git", "no-such-branch")
    option = headwater("topologies", "--git=--upload-pack=touch hacked")

    assert set(verdicts(found).values()) == {"renamed"}
    assert unknown.exit_code == ExitCode.PROBLEMS
    assert "Git finds no revision `no-such-branch`" in unknown.stderr
    assert option.exit_code == ExitCode.PROBLEMS
    assert not (repository / "hacked").exists()


def test_a_file_that_the_revision_does_not_have_is_a_new_application(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "other.txt", "")
    _git(tmp_path, "init", "--quiet")
    _git(tmp_path, "add", ".")
    _git(tmp_path, "commit", "--quiet", "--message", "Add")
    write(tmp_path / "app.yaml", GENERATED)
    monkeypatch.chdir(tmp_path)

    assert read(headwater("app.yaml", "--git", "HEAD", "--format", "json"))["addedApplications"] == ["app"]


@pytest.mark.parametrize("pattern", ["*/app.yaml", "topolog[a-z]es", "topologies/a??.yaml"])
def test_a_pattern_finds_the_files_of_the_revision(
    pattern: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path / "topologies" / "app.yaml", GENERATED)
    _git(tmp_path, "init", "--quiet")
    _git(tmp_path, "add", ".")
    _git(tmp_path, "commit", "--quiet", "--message", "Add")
    write(Path(file), FILTERED)
    monkeypatch.chdir(tmp_path)

    found = read(headwater(pattern, "--git", "HEAD", "--format", "json"))

    assert found["addedApplications"] == []
    assert set(verdicts(found).values()) == {"renamed"}


def test_links_of_a_revision_that_lead_outside_are_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "repository/topologies"
    write(folder / "app.yaml", GENERATED)
    (folder / "outside.yaml").symlink_to("/etc/passwd")
    (folder / "loop.txt").symlink_to("loop.txt")
    (folder / "to-loop.txt").symlink_to("loop.txt")
    # Without the link `up`, which is written later, this path is in the folder.
    levels = ("a",) * 16
    (folder / "0.yaml").symlink_to("/".join((*levels, "up", *(len(levels) + 1) * ("..",), "etc/passwd")))
    folder.joinpath(*levels).mkdir(parents=True)
    folder.joinpath(*levels, "up").symlink_to("/".join(len(levels) * ("..",)))
    _git(folder, "init", "--quiet", "..")
    _git(folder, "add", ".")
    _git(folder, "commit", "--quiet", "--message", "Add")
    for name in ("0.yaml", "outside.yaml"):
        (folder / name).unlink()
    monkeypatch.chdir(folder)

    found = read(headwater(".", "--git", "HEAD", "--format", "json"))

    assert set(verdicts(found).values()) == {"kept"}


def test_files_that_releases_leave_out_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(tmp_path / "topologies" / "app.yaml", GENERATED)
    write(tmp_path / ".gitattributes", "topologies export-ignore\n")
    _git(tmp_path, "init", "--quiet")
    _git(tmp_path, "add", ".")
    _git(tmp_path, "commit", "--quiet", "--message", "Add")
    write(Path(file), FILTERED)
    monkeypatch.chdir(tmp_path)

    found = read(headwater("topologies", "--git", "HEAD", "--format", "json"))

    assert found["addedApplications"] == []
    assert set(verdicts(found).values()) == {"renamed"}


@pytest.mark.parametrize("argument", ["shared/topologies", "shared", "."])
def test_a_submodule_is_read_at_the_commit_of_the_revision(
    argument: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library, repository = tmp_path / "library", tmp_path / "repository"
    write(library / "topologies/app.yaml", GENERATED)
    for folder in (library, repository):
        folder.mkdir(exist_ok=True)
        _git(folder, "init", "--quiet")
    _git(library, "add", ".")
    _git(library, "commit", "--quiet", "--message", "Add")
    _git(
        repository, "-c", "protocol.file.allow=always", "submodule", "add", "--quiet", str(library), "shared"
    )
    _git(repository, "commit", "--quiet", "--message", "Add the submodule")
    write(repository / "shared/topologies/app.yaml", FILTERED)
    _git(repository / "shared", "commit", "--quiet", "--all", "--message", "Filter")
    monkeypatch.chdir(repository)

    found = read(headwater(argument, "--git", "HEAD", "--format", "json"))

    assert found["addedApplications"] == []
    assert set(verdicts(found).values()) == {"renamed"}


def test_outside_of_a_repository_git_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "app.yaml", GENERATED)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))

    done = headwater("app.yaml", "--git", "HEAD")

    assert done.exit_code == ExitCode.PROBLEMS
    assert "not a git repository" in done.stderr
    assert "shallow" not in done.stderr
    assert "Run the command in the working tree" in done.stderr
    assert "`headwater change OLD NEW`" in done.stderr
