"""Download Pulumi's own release of the CLI and verify it by the checksums of the release."""

import hashlib
import os
import platform
import tarfile
import time
import urllib.request
import zlib
from collections.abc import Callable
from pathlib import Path
from urllib.error import HTTPError

from toolchain.cache import Cache, fingerprint
from toolchain.errors import ToolchainError
from toolchain.progress import Progress

RELEASES = "https://get.pulumi.com/releases/sdk"
VARIABLE = "HEADWATER_PULUMI_RELEASES"
_SYSTEMS = {"Linux": "linux", "Darwin": "darwin"}
_MACHINES = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}
_ANSWER_SECONDS = 20
"""For a connection, and for each part of the archive."""
_TOTAL_SECONDS = 900
_CHUNK = 1 << 20


def release_entry(version: str) -> str:
    return f"pulumi-release-{version}-{fingerprint(version)}"


def download_release(version: str, cache: Cache, progress: Progress) -> Path | None:
    """Return a cache folder with the programs of the release, None if it cannot be downloaded.

    Raises:
        ToolchainError: The downloaded archive differs from its checksum.
    """
    if found := cache.find(release_entry(version)):
        return found
    releases, archive = os.environ.get(VARIABLE, RELEASES).rstrip("/"), _archive(version)
    if not releases or archive is None:
        return None

    def fill(folder: Path, progress: Progress) -> None:
        title = f"Pulumi CLI {version}: downloading"
        with progress.step(title, expected="a minute") as show:
            sums = _get(f"{releases}/pulumi-{version}-checksums.txt").decode()
            packed = folder / archive
            digest = _save(f"{releases}/{archive}", packed, show)
            if digest not in _checksums(sums, archive):
                raise ToolchainError(
                    f"{releases}/{archive} differs from the checksum of the release.\n"
                    "  Run again. If the error persists, check the proxy or mirror, or set another one in\n"
                    f"  {VARIABLE} (empty: build Pulumi from Go modules instead)."
                )
            _unpack(packed, folder)

    try:
        return cache.ensure(release_entry(version), fill, progress)
    except (OSError, EOFError, zlib.error, tarfile.TarError, UnicodeDecodeError) as error:
        progress.note(f"Pulumi CLI {version}: download failed: {_reason(error)}")
        return None


def _archive(version: str) -> str | None:
    """Return the name of the archive for this machine, None if there is none."""
    system, machine = _SYSTEMS.get(platform.system()), _MACHINES.get(platform.machine().lower())
    return f"pulumi-v{version}-{system}-{machine}.tar.gz" if system and machine else None


def _get(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=_ANSWER_SECONDS) as answer:  # noqa: S310 - set by the user
        content: bytes = answer.read()
        return content


def _save(url: str, file: Path, show: Callable[[str], None]) -> str:
    """Write the answer to `file` and return its SHA-256."""
    digest, received, deadline = hashlib.sha256(), 0, time.monotonic() + _TOTAL_SECONDS
    with urllib.request.urlopen(url, timeout=_ANSWER_SECONDS) as answer, file.open("wb") as written:  # noqa: S310 - same
        total = int(answer.headers.get("Content-Length") or 0)
        while chunk := answer.read(_CHUNK):
            written.write(chunk)
            digest.update(chunk)
            received += len(chunk)
            show(f"{received >> 20} of {total >> 20} MB" if total else f"{received >> 20} MB")
            if time.monotonic() > deadline:
                raise TimeoutError(f"it takes longer than {_TOTAL_SECONDS // 60} minutes")
    if total and received != total:
        raise ConnectionError(f"the connection ended after {received} of {total} bytes")
    return digest.hexdigest()


def _checksums(text: str, archive: str) -> set[str]:
    """Return the checksums of `archive` in lines of `sha256sum`."""
    lines = (line.split() for line in text.splitlines())
    return {words[0].lower() for words in lines if len(words) > 1 and words[1].lstrip("*") == archive}


def _unpack(packed: Path, folder: Path) -> None:
    """Unpack the folder `pulumi` of the archive into `folder`, and delete the archive."""
    with tarfile.open(packed) as archive:
        archive.extractall(folder, filter="data")
    packed.unlink()
    for program in (folder / "pulumi").iterdir():
        program.rename(folder / f".{program.name}")
    (folder / "pulumi").rmdir()
    for program in folder.iterdir():
        program.rename(folder / program.name.removeprefix("."))


def _reason(error: Exception) -> str:
    if isinstance(error, HTTPError):
        return f"{error.url} answers {error.code}"
    return str(getattr(error, "reason", None) or error) or type(error).__name__
