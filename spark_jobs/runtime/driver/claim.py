"""One client a checkpoint: a second one would have Spark stop the queries of both, again and again."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile

from infra.model.problems import Problem, ProblemCode, ProblemsError

_FILE = "client.lock"


@contextmanager
def claimed(checkpoint: str, application: str) -> Iterator[None]:
    """Have a checkpoint to oneself, also against other processes of this machine; raises `ProblemsError`.

    The system ends the claim of a process that dies. Of a checkpoint elsewhere (a URL) nothing is known.
    """
    if "://" in checkpoint:
        yield
        return
    folder = Path(checkpoint, application)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = os.open(folder / _FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise ProblemsError([_unusable("checkpoint", "--checkpoint", folder, application, error)]) from None
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(file, 20, 0).decode(errors="replace").strip()
            raise ProblemsError([_taken(application, folder, holder)]) from None
        os.ftruncate(file, 0)
        os.pwrite(file, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(file)


def check_folder(folder: Path, application: str) -> None:
    """Make the folder of the local state, where tasks run on this machine; raises `ProblemsError`."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        TemporaryFile(dir=folder).close()
    except OSError as error:
        raise ProblemsError([_unusable("state", "--state-dir", folder, application, error)]) from None


def _unusable(what: str, option: str, folder: Path, application: str, error: OSError) -> Problem:
    return Problem(
        code=ProblemCode.NOT_RUNNABLE,
        application=application,
        summary=f"The {what} folder cannot be used.",
        expected="a folder that this process may make and write to",
        found=f"{folder}: {error.strerror}",
        why="Without it nothing can be processed, and nothing is started.",
        fix=f"Choose another folder by {option}, or correct the permissions of this one.",
    )


def _taken(application: str, folder: Path, holder: str) -> Problem:
    return Problem(
        code=ProblemCode.NOT_RUNNABLE,
        summary=f"{application} runs already, with the same checkpoint.",
        application=application,
        expected=f"{folder} for this process alone",
        found=f"process {holder or 'unknown'}",
        why="One process drives all of an application's tasks; more capacity comes from more executors.",
        fix="Stop the other one first. A second client that stands by needs a --checkpoint and a --state-dir "
        "of its own.",
    )
