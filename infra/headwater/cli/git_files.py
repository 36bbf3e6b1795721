"""The files of a Git repository at a revision, in a temporary folder: nothing is checked out."""

import io
import os
import subprocess
from collections.abc import Collection, Iterator, Sequence
from contextlib import chdir, contextmanager
from itertools import takewhile
from pathlib import Path
from tempfile import TemporaryDirectory

import click

_PATTERN_CHARACTERS = frozenset("*?[")

_SUBMODULE, _LINK = b"160000", b"120000"
"""Modes of entries in a tree of Git that are no files."""

_WORKING_TREE = (
    "\n  Run the command in the working tree of the repository that has the files. "
    "Without a repository, name the files before the edit: `headwater change OLD NEW`."
)


@contextmanager
def files_at(revision: str, paths: Sequence[Path]) -> Iterator[tuple[Path, ...]]:
    """Change into a temporary folder with the files at `revision`, and yield the `paths` that exist there.

    Glob patterns are paths, too. Files next to them are extracted as well: documents refer to texts.

    Raises:
        click.ClickException: There is no repository or revision of this name, or Git is not installed.
    """
    root = Path(_run_git("rev-parse", "--show-toplevel", fix=_WORKING_TREE).decode().strip())
    # A revision that begins with a hyphen would be an option.
    commit = _run_git(
        "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}", of=revision
    )
    absolute = [path if path.is_absolute() else Path.cwd() / path for path in paths]
    for path in absolute:
        if not path.resolve().is_relative_to(root.resolve()):
            raise click.ClickException(f"{path} is not in the Git repository {root}.")
    names = [path.resolve().relative_to(root.resolve()) for path in absolute]
    with TemporaryDirectory(prefix="headwater-change-") as folder:
        _extract_files(root, commit.decode().strip(), {_find_folder(name) for name in names}, Path(folder))
        with chdir(folder):
            yield tuple(name for name in names if name.exists() or any(Path().glob(str(name))))


def _extract_files(
    root: Path, commit: str, folders: Collection[Path], target: Path, below: Path = Path()
) -> None:
    """Write the files of `folders` to `target`: a document refers only to files of its own folder.

    Blobs are read, not an archive: `export-ignore` says what a release contains, not what a repository has.
    A submodule is read at the commit that the revision names, if it is checked out. `below` is its path.
    """
    files: list[tuple[bytes, bytes, Path]] = []
    for mode, id_, name in _list_entries(root, commit):
        path = below / name
        if mode == _SUBMODULE:
            is_wanted = any(path.is_relative_to(each) or each.is_relative_to(path) for each in folders)
            if is_wanted and (root / name / ".git").exists():
                _extract_files(root / name, id_.decode(), folders, target, path)
        elif any(path.is_relative_to(each) for each in folders) and ".." not in path.parts:
            files.append((mode, id_, target / path))
    files.sort(key=lambda file: file[0] == _LINK)  # last, so that no file is written through a link
    for (mode, _, path), content in zip(files, _read_blobs(root, [id_ for _, id_, _ in files]), strict=True):
        if not _is_inside(path.parent, target):
            continue  # through a link
        path.parent.mkdir(parents=True, exist_ok=True)
        if mode != _LINK:
            path.write_bytes(content)
        elif _is_inside(path.parent / os.fsdecode(content), target):
            path.symlink_to(os.fsdecode(content))
    _delete_outside_links(target)


def _is_inside(path: Path, folder: Path) -> bool:
    """Return whether the real path is in the folder; of a loop of links, it is the path itself."""
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def _delete_outside_links(target: Path) -> None:
    """Delete the links that lead out of `target`: a link that is written later changes where others lead."""
    for folder, folders, files in os.walk(target):
        for path in (Path(folder, name) for name in (*folders, *files)):
            if path.is_symlink() and not _is_inside(path, target):
                path.unlink()


def _list_entries(root: Path, commit: str) -> Iterator[tuple[bytes, bytes, Path]]:
    """Yield mode, id and path of all files and submodules of a commit."""
    listed = _run_git("-C", str(root), "ls-tree", "-r", "-z", "--full-tree", commit)
    for line in listed.split(b"\0")[:-1]:
        facts, _, name = line.partition(b"\t")
        mode, _, id_ = facts.split(b" ")
        yield mode, id_, Path(os.fsdecode(name))


def _read_blobs(root: Path, ids: Sequence[bytes]) -> Iterator[bytes]:
    """Yield the contents of files, read by one process: each follows a line with its size."""
    output = io.BytesIO(_run_git("-C", str(root), "cat-file", "--batch", given=b"\n".join([*ids, b""])))
    for _ in ids:
        id_, *facts = output.readline().split()
        if len(facts) != 2:  # noqa: PLR2004 - type and size, or the word `missing`
            raise click.ClickException(f"Git has no object {id_.decode()}. Fetch the revision first.")
        yield output.read(int(facts[1]))
        output.read(1)  # a line feed


def _find_folder(name: Path) -> Path:
    """Return the folder of a file, or the folder that contains all files of a pattern."""
    plain = Path(*takewhile(lambda part: not _PATTERN_CHARACTERS & set(part), name.parts))
    return plain.parent if plain == name and name.suffix else plain


def _run_git(*arguments: str, of: str | None = None, given: bytes = b"", fix: str = "") -> bytes:
    try:
        return subprocess.run(["git", *arguments], check=True, capture_output=True, input=given).stdout
    except FileNotFoundError:
        raise click.ClickException("--git needs Git, which is not installed.") from None
    except subprocess.CalledProcessError as error:
        reason = error.stderr.decode(errors="replace").strip() or "there is no such revision"
        if of is None:
            raise click.ClickException(f"Git failed: {reason.rstrip('.')}.{fix}") from None
        raise click.ClickException(
            f"Git finds no revision `{of}`: {reason.rstrip('.')}.\n  In a shallow clone, fetch it first."
        ) from None
