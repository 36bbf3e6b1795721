"""Files as they are at a revision of a Git repository."""

import io
import subprocess
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import chdir, contextmanager, suppress
from itertools import takewhile
from pathlib import Path
from tempfile import TemporaryDirectory

import click

_PATTERN = frozenset("*?[")


@contextmanager
def files_at(revision: str, paths: Sequence[Path]) -> Iterator[tuple[Path, ...]]:
    """Change into a temporary folder with the files at `revision`, and yield the `paths` that exist there.

    Glob patterns are paths, too. Files next to them are extracted as well: documents refer to texts.

    Raises:
        click.ClickException: There is no repository or revision of this name, or Git is not installed.
    """
    root = Path(_git("rev-parse", "--show-toplevel").decode().strip())
    # A revision that begins with a hyphen would be an option.
    commit = _git(
        "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}", of=revision
    )
    absolute = [path if path.is_absolute() else Path.cwd() / path for path in paths]
    for path in absolute:
        if not path.resolve().is_relative_to(root.resolve()):
            raise click.ClickException(f"{path} is not in the Git repository {root}.")
    names = [path.resolve().relative_to(root.resolve()) for path in absolute]
    with TemporaryDirectory(prefix="headwater-change-") as folder:
        _extract(root, commit.decode().strip(), names, folder)
        with chdir(folder):
            yield tuple(name for name in names if name.exists() or any(Path().glob(str(name))))


def _extract(root: Path, commit: str, names: Sequence[Path], folder: str) -> None:
    """Extract the folders of `names`: a document refers only to files of its own folder."""
    folders = {_folder(name) for name in names}
    known = [
        str(each)
        for each in sorted(folders)
        if each == Path() or _git("-C", str(root), "ls-tree", "--name-only", commit, "--", f"{each}")
    ]
    if not known:
        return
    archive = _git("-C", str(root), "archive", "--format=tar", commit, "--", *known)
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for member in tar:
            with suppress(tarfile.FilterError):  # a link to a file outside of the folder
                tar.extract(member, folder, filter="data")


def _folder(name: Path) -> Path:
    """Return the folder of a file, or the folder that contains all files of a pattern."""
    plain = Path(*takewhile(lambda part: not _PATTERN & set(part), name.parts))
    return plain.parent if plain == name and name.suffix else plain


def _git(*arguments: str, of: str | None = None) -> bytes:
    try:
        return subprocess.run(
            ["git", *arguments],
            check=True,
            capture_output=True,
        ).stdout
    except FileNotFoundError:
        raise click.ClickException("--git needs Git, which is not installed.") from None
    except subprocess.CalledProcessError as error:
        reason = error.stderr.decode(errors="replace").strip() or "there is no such revision"
        if of is None:
            raise click.ClickException(f"Git failed: {reason.rstrip('.')}.") from None
        raise click.ClickException(
            f"Git finds no revision {of}: {reason.rstrip('.')}.\n  In a shallow clone, fetch it first."
        ) from None
