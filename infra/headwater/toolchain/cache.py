"""Cache folders that are created once, complete or not at all, also by several processes at the same time."""

import fcntl
import hashlib
import os
import platform
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs

from headwater.toolchain.commands import Progress, ToolchainError


def default_root() -> Path:
    """Return `$HEADWATER_CACHE`, or `headwater` in the user's cache folder as XDG defines it."""
    if own := os.environ.get("HEADWATER_CACHE"):
        return Path(own).expanduser().absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser().absolute() / "headwater"


def fingerprint(*parts: bytes | str) -> str:
    """Return 12 hex digits over `parts` and the platform, which decide what a build yields."""
    digest = hashlib.sha256(f"{platform.system()} {platform.machine()}".encode())
    for part in parts:
        content = part.encode() if isinstance(part, str) else part
        digest.update(len(content).to_bytes(8, "big") + content)
    return digest.hexdigest()[:12]


def file_contents(folder: Path, names: Iterable[str]) -> list[bytes]:
    """Return the bytes of these files of a folder, as parts of a `fingerprint`."""
    return [(folder / name).read_bytes() for name in names]


@attrs.frozen
class Cache:
    """Entries are the folders `root/<name>`. An incomplete entry has another name."""

    root: Path = attrs.field(factory=default_root)

    def find(self, name: str) -> Path | None:
        folder = self.root / name
        return folder if folder.is_dir() else None

    def ensure(self, name: str, make: Callable[[Path, Progress], None], progress: Progress) -> Path:
        """Return the folder `name`; `make` fills it if it does not exist yet.

        Of several processes one fills it and the others wait. If `make` raises, the folder is removed. Raises
        `ToolchainError` if the cache cannot be written.
        """
        if found := self.find(name):
            return found
        with self._locked(name, progress):
            if found := self.find(name):
                return found
            # Each name has one draft, so that the next run removes what a killed run left.
            draft = self.root / f".{name}.draft"
            shutil.rmtree(draft, ignore_errors=True)
            draft.mkdir()
            try:
                make(draft, progress)
                draft.rename(self.root / name)
            finally:
                shutil.rmtree(draft, ignore_errors=True)
        return self.root / name

    @contextmanager
    def _locked(self, name: str, progress: Progress) -> Iterator[None]:
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            file = (self.root / f".{name}.lock").open("w")
        except OSError as error:
            raise ToolchainError(
                f"The cache folder {self.root} cannot be written: {error.strerror}.\n"
                "  Set HEADWATER_CACHE to a folder that this user can write."
            ) from None
        with file as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                with progress.step(f"waiting for another process that creates {name}"):
                    fcntl.flock(lock, fcntl.LOCK_EX)
            yield
