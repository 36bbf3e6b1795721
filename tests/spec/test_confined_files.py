"""Files that a document or a setting names are in or below the folder of the one that names them."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from headwater.model.problems import Problem, ProblemCode, errors
from headwater.spec import files, load_documents
from headwater.spec.files import DOCUMENT, read_confined
from headwater.spec.policies import load_policies

SECRET = "secret: value"
POLICY = "policies:\n  - topicPartitions: {max: 6}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with files, next to a secret and a folder with another one."""
    (tmp_path / "secret.yaml").write_text(SECRET)
    (tmp_path / "other").mkdir()
    (tmp_path / "other/secret.yaml").write_text(SECRET)
    folder = tmp_path / "folder"
    (folder / "below/deep").mkdir(parents=True)
    for file in ("own.yaml", "below/own.yaml", "below/deep/own.yaml"):
        (folder / file).write_text("own")
    (folder / "inner-link.yaml").symlink_to("below/own.yaml")
    (folder / "inner-folder").symlink_to("below")
    (folder / "link.yaml").symlink_to(tmp_path / "secret.yaml")
    (folder / "relative-link.yaml").symlink_to("../secret.yaml")
    (folder / "link-to-link.yaml").symlink_to("link.yaml")
    (folder / "outer-folder").symlink_to(tmp_path / "other")
    (folder / "loop").symlink_to("loop")
    return folder


@pytest.mark.parametrize(
    "name",
    [
        "own.yaml",
        "below/own.yaml",
        "below/deep/../own.yaml",
        "./own.yaml",
        "inner-link.yaml",
        "inner-folder/own.yaml",
    ],
)
def test_files_below_are_read_also_by_links(folder: Path, name: str) -> None:
    assert read_confined(folder, name, DOCUMENT) == "own"
    assert read_confined(folder, str(folder / name), DOCUMENT) == "own"


@pytest.mark.parametrize(
    "name",
    [
        *("../secret.yaml", "below/../../secret.yaml", "/etc/passwd", "/proc/self/environ", "/dev/zero"),
        *("link.yaml", "relative-link.yaml", "link-to-link.yaml", "outer-folder/secret.yaml"),
        *("", ".", "..", "a\0b", "../folder-2/own.yaml", "../folder"),
    ],
)
def test_files_outside_are_not_read(folder: Path, name: str) -> None:
    (folder.parent / "folder-2").mkdir()
    (folder.parent / "folder-2/own.yaml").write_text(SECRET)
    assert read_confined(folder, name, DOCUMENT) is None


@pytest.mark.parametrize("name", ["missing.yaml", "below", "loop", "own.yaml/x", "x" * 5_000, "pipe"])
def test_what_is_no_readable_file_is_a_problem(folder: Path, name: str) -> None:
    os.mkfifo(folder / "pipe")
    found = read_confined(folder, name, DOCUMENT)
    assert isinstance(found, Problem)
    assert found.code is ProblemCode.UNREADABLE_DOCUMENT


def _swap_file(folder: Path) -> None:
    (folder / "below/own.yaml").unlink()
    (folder / "below/own.yaml").symlink_to(folder.parent / "secret.yaml")


def _swap_folder(folder: Path) -> None:
    (folder / "below").rename(folder / "moved")
    (folder / "below").symlink_to(folder.parent / "other")
    (folder.parent / "other/own.yaml").write_text(SECRET)


def _swap_for_pipe(folder: Path) -> None:
    (folder / "below/own.yaml").unlink()
    os.mkfifo(folder / "below/own.yaml")


@pytest.mark.parametrize("swap", [_swap_file, _swap_folder, _swap_for_pipe])
def test_a_file_that_is_swapped_after_the_check_is_not_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch, swap: Callable[[Path], None]
) -> None:
    opened = files._open_below

    def swapped(root: Path, relative: Path) -> int:
        swap(folder)
        return opened(root, relative)

    monkeypatch.setattr(files, "_open_below", swapped)
    found = read_confined(folder, "below/own.yaml", DOCUMENT)
    assert isinstance(found, Problem)


@pytest.mark.parametrize("name", ["../secret.yaml", "link.yaml", "/proc/self/environ"])
def test_a_description_outside_is_one_problem_that_shows_nothing_of_it(folder: Path, name: str) -> None:
    (folder / "app.yaml").write_text(f"application: {{id: app}}\ndescribe: {{file: {name}}}\n")
    [problem] = errors(load_documents([folder / "app.yaml"]).problems)
    assert problem.code is ProblemCode.UNREADABLE_DESCRIBE
    assert "value" not in repr(problem).replace("valueless", "")


@pytest.mark.parametrize(
    "name", ["../secret.yaml", "link.yaml", "/proc/self/environ", "outer-folder/secret.yaml"]
)
def test_policies_of_a_stack_are_in_its_folder(folder: Path, name: str) -> None:
    [problem] = load_policies([Path(name)], folder).problems
    assert "outside of the project's folder" in problem.summary
    (folder / "below/policies.yaml").write_text(POLICY)
    assert len(load_policies([Path("below/policies.yaml")], folder).policies) == 1
    assert len(load_policies([folder / "below/policies.yaml"]).policies) == 1
