"""Find and read files: regular, UTF-8, of limited size."""

import codecs
import glob
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import attrs

from headwater.model.problems import Location, Problem, ProblemCode
from headwater.spec.locations import MAX_BYTES

POLICIES = "headwater-policies"
"""The file of policies, without its suffix. It may be in a folder of documents and is not one of them."""
_PULUMI = re.compile(r"Pulumi(\..+)?\.(yaml|yml|json)")
"""The names of Pulumi's files: the project, and the settings of a stack."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_SUFFIXES = frozenset({".yaml", ".yml", ".json"})


@attrs.frozen
class FileKind:
    """What a file must hold. Problems with a file say what that means for a run."""

    schema: str
    """The name of the JSON Schema in `topology_schemas`."""
    why_unreadable: str
    why_misfit: str
    """What happens to a file that does not fit the schema."""
    how_to_split: str


DOCUMENT = FileKind(
    schema="topology.v1",
    why_unreadable="An application whose document is not read would look as if it had been removed.",
    why_misfit="A document that does not fit the schema is not planned.",
    how_to_split="Split it into one document per application.",
)
POLICY_FILE = FileKind(
    schema="policies.v1",
    why_unreadable="Policies that cannot be read cannot be checked, so nothing is planned.",
    why_misfit="Policies that do not fit the schema cannot be checked, so nothing is planned.",
    how_to_split="Split it into several files.",
)

SCHEMA_FILE = FileKind(
    schema="",
    why_unreadable="Without the schema, records of that format cannot be read or written.",
    why_misfit="Without the schema, records of that format cannot be read or written.",
    how_to_split="Use a smaller schema.",
)
STACK_FILE = FileKind(
    schema="",
    why_unreadable="Without the settings of the stack, nothing is planned.",
    why_misfit="Without the settings of the stack, nothing is planned.",
    how_to_split="Move settings into policy files.",
)


def find_files(paths: Sequence[Path]) -> tuple[tuple[Path, ...], tuple[Problem, ...]]:
    """Return the files of `paths` (files, folders with YAML and JSON files, glob patterns), each once."""
    files: dict[str, Path] = {}
    problems = []
    for path in paths:
        matches = list(_expand_pattern(path))
        if not matches:
            problems.append(_nothing_found(path))
        for match in matches:
            if isinstance(match, Problem):
                problems.append(match)
            else:
                files.setdefault(os.path.realpath(match), match)
    return tuple(files.values()), tuple(problems)


def read_regular_file(
    file: Path,
    kind: FileKind = DOCUMENT,
    *,
    code: ProblemCode = ProblemCode.UNREADABLE_DOCUMENT,
    at: Location | None = None,
) -> str | Problem:
    """Return the text of `file`, or the problem with it. A file that is too large is not read at all.

    The problem is located at `at`, where another file names this one, else in the file itself.
    """
    return _decode_text(file, partial(_open_file, file), kind, code, at)


def read_confined(
    folder: Path,
    name: str,
    kind: FileKind,
    *,
    code: ProblemCode = ProblemCode.UNREADABLE_DOCUMENT,
    at: Location | None = None,
) -> str | Problem | None:
    """Return the text of the file `name`, which a document or a setting in `folder` names.

    Links count as the files that they name. None: the file is outside of the folder. A document must not be
    able to read any file of a machine, also if a folder or the file becomes a link in the meantime.
    """
    root = Path(os.path.realpath(folder))
    try:
        file = Path(os.path.realpath(root / name))
    except ValueError:  # a null character
        return None
    if not file.is_relative_to(root) or file == root:
        return None
    return _decode_text(folder / name, partial(_open_below, root, file.relative_to(root)), kind, code, at)


def _decode_text(
    file: Path, opened: Callable[[], int], kind: FileKind, code: ProblemCode, at: Location | None
) -> str | Problem:
    content = _read_content(file, opened, kind, code, at or Location(str(file)))
    if isinstance(content, Problem):
        return content
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start]
        line = before.count(b"\n") + 1
        column = len(before) - (before.rfind(b"\n") + 1) + 1
        is_utf_16 = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        return _unreadable_file(
            file,
            f"It is {'UTF-16' if is_utf_16 else 'not UTF-8'} text.",
            kind=kind,
            code=code,
            at=at or Location(str(file), line, column),
            expected="UTF-8",
            found="UTF-16" if is_utf_16 else f"byte 0x{content[error.start]:02x}",
            fix="Save it as UTF-8, or name another file.",
        )


def _open_file(file: Path) -> int:
    # Without waiting for the other end of a pipe.
    return os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)


def _open_below(root: Path, relative: Path) -> int:
    """Open a file by a path that had no links a moment ago; fails if a part of it is a link now."""
    folder = os.open(root, _FOLDER)
    try:
        for part in relative.parts[:-1]:
            below = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)
            os.close(folder)
            folder = below
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(relative.name, flags, dir_fd=folder)
    finally:
        os.close(folder)


def _read_content(
    file: Path, opened: Callable[[], int], kind: FileKind, code: ProblemCode, at: Location
) -> bytes | Problem:
    try:
        descriptor = opened()
    except (OSError, ValueError) as error:
        return _unopened_file(file, error, kind, code, at)
    try:
        return _read_descriptor(descriptor, file, kind, code, at)
    except OSError as error:
        return _unopened_file(file, error, kind, code, at)
    finally:
        os.close(descriptor)


def _read_descriptor(
    descriptor: int, file: Path, kind: FileKind, code: ProblemCode, at: Location
) -> bytes | Problem:
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        return _unreadable_file(
            file,
            "It is not a regular file.",
            kind=kind,
            code=code,
            at=at,
            expected="a file",
            found="something else",
            fix="Name a file.",
        )
    if status.st_size > MAX_BYTES:
        return _too_large(file, status.st_size, kind, at)
    with os.fdopen(descriptor, "rb", closefd=False) as stream:
        content = stream.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:  # it grew in the meantime
        return _too_large(file, len(content), kind, at)
    return content


def _unopened_file(
    file: Path, error: OSError | ValueError, kind: FileKind, code: ProblemCode, at: Location
) -> Problem:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else "its name is not valid"
    return _unreadable_file(
        file,
        f"It cannot be read: {reason}.",
        kind=kind,
        code=code,
        at=at,
        expected="a readable file",
        found=reason,
        fix="Correct the name, or create the file."
        if isinstance(error, FileNotFoundError)
        else "Make it readable, or name another file.",
    )


def _expand_pattern(path: Path) -> Iterator[Path | Problem]:
    names = [path] if os.path.lexists(path) else sorted(glob.glob(str(path), recursive=True))  # noqa: PTH207
    for name in names:
        # Path.is_dir() raises for names that are too long and for missing permissions
        yield from _files_below(name) if os.path.isdir(name) else (Path(name),)  # noqa: PTH112


def _files_below(folder: str | Path) -> Iterator[Path | Problem]:
    faults: list[OSError] = []
    for root, folders, names in os.walk(folder, onerror=faults.append):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if Path(name).suffix in _SUFFIXES and not is_skipped(name):
                yield Path(root, name)
    for fault in faults:
        yield _unreadable_file(
            Path(fault.filename),
            f"{fault.strerror}.",
            kind=DOCUMENT,
            code=ProblemCode.UNREADABLE_DOCUMENT,
            at=Location(str(fault.filename)),
            expected="a readable folder",
            found=str(fault.strerror),
            fix="Make it readable, or name another folder.",
        )


def is_skipped(name: str) -> bool:
    """Return whether a file of this name is no document where a folder is named."""
    return name.startswith(".") or name.endswith(".schema.json") or _purpose_of(Path(name)) is not None


def file_of_another_kind(file: Path) -> Problem | None:
    """Return the problem of a named file that has no document, if its name says what it has instead."""
    purpose = _purpose_of(file)
    if purpose is None:
        return None
    return _unreadable_file(
        file,
        f"It has {purpose}.",
        kind=DOCUMENT,
        code=ProblemCode.UNREADABLE_DOCUMENT,
        at=Location(str(file)),
        expected="a topology document",
        found=purpose,
        fix="Name the files of the documents, or their folder: in a folder, this file is skipped.",
    )


def _purpose_of(file: Path) -> str | None:
    """Return what a file has that is no document; None: its name does not say."""
    if file.stem == POLICIES:
        return "policies (`--policies`)"
    if _PULUMI.fullmatch(file.name) is None:
        return None
    return "the settings of a Pulumi project" if file.stem == "Pulumi" else "the settings of a Pulumi stack"


def _nothing_found(path: Path) -> Problem:
    return Problem(
        code=ProblemCode.UNREADABLE_DOCUMENT,
        summary=f"No topology document was found at `{path}`.",
        expected="a file, a folder with *.yaml, *.yml or *.json files, or a pattern",
        found="nothing",
        why="An application whose document is not found would look as if it had been removed.",
        fix="Correct the path.",
        location=Location(str(path)),
    )


def _unreadable_file(
    file: Path,
    reason: str,
    *,
    kind: FileKind,
    code: ProblemCode,
    at: Location,
    expected: str,
    found: str,
    fix: str,
) -> Problem:
    return Problem(
        code=code,
        summary=f"`{file.name}` cannot be used. {reason}",
        expected=expected,
        found=found,
        why=kind.why_unreadable,
        fix=fix,
        location=at,
    )


def _too_large(file: Path, size: int, kind: FileKind, at: Location) -> Problem:
    return Problem(
        code=ProblemCode.DOCUMENT_TOO_LARGE,
        summary=f"`{file.name}` is too large.",
        expected=f"at most {MAX_BYTES:,} bytes",
        found=f"{size:,} bytes",
        why="It was not read: a file of this size could use up the memory of this machine.",
        fix=kind.how_to_split,
        location=at,
    )
