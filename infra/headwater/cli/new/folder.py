"""Write the files of a project into a folder, all of them or none."""

import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from headwater.model.problems import Location, Problem, ProblemCode, ProblemsError

_PROJECT_NAME = re.compile(r"[A-Za-z0-9_.-]{1,100}")
_TOLERATED = frozenset({".git", ".venv"})
"""What a folder may contain: a repository without files, and the environment with Headwater."""
_WHY = "Nothing has been written."


def read_template(name: str) -> str:
    return files("headwater.cli.new").joinpath("files", name).read_text(encoding="utf-8")


def check_name(name: str) -> None:
    """Raise `ProblemsError` if `name` cannot be the name of a Pulumi project or of a Maven artifact."""
    if not _PROJECT_NAME.fullmatch(name):
        raise ProblemsError(
            [
                Problem(
                    code=ProblemCode.PROJECT_NOT_CREATED,
                    summary=f"{name!r} cannot be the name of a project.",
                    expected="letters, digits, `-`, `_` and `.`, at most 100 characters",
                    found=name or "an empty name",
                    why=_WHY,
                    fix="Choose another folder, or another name by --name.",
                )
            ]
        )


def write_project(folder: Path, contents: Mapping[str, str | bytes]) -> None:
    """Write path → content below `folder`, which is created if it does not exist.

    Raises:
        ProblemsError: The folder is not empty, or cannot be written. Files that were written are removed.
    """
    written: list[Path] = []
    try:
        if found := sorted(path.name for path in _entries(folder) if path.name not in _TOLERATED):
            raise ProblemsError([_not_empty(folder, found)])
        for path, content in contents.items():
            file = folder / path
            for parent in reversed([parent for parent in file.parents if not parent.exists()]):
                parent.mkdir()
                written.append(parent)
            written.append(file)
            if isinstance(content, str):
                file.write_text(content, encoding="utf-8", newline="")
            else:
                file.write_bytes(content)
    except OSError as error:
        _remove(written)
        raise ProblemsError([_not_writable(folder, error)]) from None


def _entries(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.exists() else []


def _remove(paths: list[Path]) -> None:
    for path in reversed(paths):
        if path.is_dir():
            path.rmdir()
        else:
            path.unlink(missing_ok=True)


def _not_empty(folder: Path, found: list[str]) -> Problem:
    shown = ", ".join(found[:3]) + (f" and {len(found) - 3} more" if len(found) > 3 else "")  # noqa: PLR2004 - see above
    return Problem(
        code=ProblemCode.PROJECT_NOT_CREATED,
        summary=f"The folder {folder} is not empty.",
        expected="a folder that does not exist or is empty, except for .git and .venv",
        found=shown,
        why="Existing files are never overwritten. " + _WHY,
        fix="Choose another folder. To use an existing repository, create the project in a new folder and "
        "move the files.",
        location=Location(str(folder)),
    )


def _not_writable(folder: Path, error: OSError) -> Problem:
    return Problem(
        code=ProblemCode.PROJECT_NOT_CREATED,
        summary=f"The project cannot be written to {folder}.",
        expected="a folder in which this user can create files",
        found=f"{error.strerror or error}: {error.filename}" if error.filename else str(error),
        why=_WHY,
        fix="Choose another folder, or change the permissions of this one.",
        location=Location(str(folder)),
    )
