"""Which files the user means, and what they hold: bounded, regular, UTF-8."""

import glob
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from infra.model.problems import Location, Problem, ProblemCode
from infra.spec.limits import MAX_BYTES

POLICIES = "headwater-policies"
"""The name, before its suffix, of the file of policies: it may lie among documents and is none."""
_SUFFIXES = frozenset({".yaml", ".yml", ".json"})


def find(paths: Sequence[Path]) -> tuple[tuple[Path, ...], tuple[Problem, ...]]:
    """The files that `paths` (files, folders with YAML and JSON below, patterns) stand for, each once."""
    files: dict[str, Path] = {}
    problems = []
    for path in paths:
        matches = list(_matches(path))
        if not matches:
            problems.append(_nothing(path))
        for match in matches:
            if isinstance(match, Problem):
                problems.append(match)
            else:
                files.setdefault(os.path.realpath(match), match)
    return tuple(files.values()), tuple(problems)


def read(file: Path, code: ProblemCode = ProblemCode.UNREADABLE_DOCUMENT) -> str | Problem:
    """The text of `file`, or why it cannot be had. A file that is too large is not read at all."""
    at = Location(str(file))
    try:
        status = file.stat()
        if not stat.S_ISREG(status.st_mode):
            return _unreadable(code, at, "It is not a regular file.", "a file", "something else")
        if status.st_size > MAX_BYTES:
            return _too_large(at, status.st_size)
        with file.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "its name is not valid"
        return _unreadable(code, at, f"It cannot be read: {reason}.", "a readable file", reason)
    if len(content) > MAX_BYTES:  # it has grown in the meantime
        return _too_large(at, len(content))
    return _decoded(content, code, at)


def _decoded(content: bytes, code: ProblemCode, at: Location) -> str | Problem:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start]
        line = before.count(b"\n") + 1
        column = len(before) - (before.rfind(b"\n") + 1) + 1
        return _unreadable(
            code,
            Location(at.file, line, column),
            "It is not UTF-8 text.",
            "UTF-8",
            f"byte 0x{content[error.start]:02x}",
        )


def _matches(path: Path) -> Iterator[Path | Problem]:
    names = [path] if os.path.lexists(path) else sorted(glob.glob(str(path), recursive=True))  # noqa: PTH207
    for name in names:
        # Path.is_dir() raises for names that are too long or in the way of a missing right
        yield from _below(name) if os.path.isdir(name) else (Path(name),)  # noqa: PTH112


def _below(folder: str | Path) -> Iterator[Path | Problem]:
    faults: list[OSError] = []
    for root, folders, names in os.walk(folder, onerror=faults.append):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            is_another = name.endswith(".schema.json") or Path(name).stem == POLICIES
            if Path(name).suffix in _SUFFIXES and not name.startswith(".") and not is_another:
                yield Path(root, name)
    for fault in faults:
        at = Location(str(fault.filename))
        yield _unreadable(
            ProblemCode.UNREADABLE_DOCUMENT,
            at,
            f"{fault.strerror}.",
            "a readable folder",
            str(fault.strerror),
        )


def _nothing(path: Path) -> Problem:
    return Problem(
        code=ProblemCode.UNREADABLE_DOCUMENT,
        summary=f"No topology document was found at `{path}`.",
        expected="a file, a folder with *.yaml, *.yml or *.json below, or a pattern",
        found="nothing",
        why="An application whose document is not found would look as if it had been removed.",
        fix="Correct the path.",
        location=Location(str(path)),
    )


def _unreadable(code: ProblemCode, at: Location, reason: str, expected: str, found: str) -> Problem:
    return Problem(
        code=code,
        summary=f"`{Path(at.file).name}` cannot be used. {reason}",
        expected=expected,
        found=found,
        why="An application whose document is not read would look as if it had been removed.",
        fix="Make it readable UTF-8 text, or name another file.",
        location=at,
    )


def _too_large(at: Location, size: int) -> Problem:
    return Problem(
        code=ProblemCode.DOCUMENT_TOO_LARGE,
        summary=f"`{Path(at.file).name}` is too large.",
        expected=f"at most {MAX_BYTES:,} bytes",
        found=f"{size:,} bytes",
        why="It was not read: no topology needs as much, and reading it could exhaust this machine.",
        fix="Split it into one document an application.",
        location=at,
    )
