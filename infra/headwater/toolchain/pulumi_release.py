"""Download Pulumi's own release of the CLI and verify it by a hash that does not come from its server.

The checksums that are published next to an archive prove nothing: who replaces one replaces the other.
"""

import hashlib
import os
import platform
import re
import tarfile
import time
import urllib.request
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit

from headwater.toolchain.cache import Cache, fingerprint
from headwater.toolchain.commands import Progress, ToolchainError

RELEASES = "https://get.pulumi.com/releases/sdk"
VARIABLE = "HEADWATER_PULUMI_RELEASES"
HASH_VARIABLE = "HEADWATER_PULUMI_SHA256"
_HASHES: Mapping[str, str] = {}
"""Archive → SHA-256. A maintainer adds those that were compared on two ways; others are given by the user."""
_HASH = re.compile(r"[0-9a-f]{64}")
_LOCAL = ("localhost", "127.0.0.1", "::1")
_SYSTEMS = {"Linux": "linux", "Darwin": "darwin"}
_MACHINES = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}
_ANSWER_SECONDS = 20
"""For a connection, and for each part of the archive."""
_TOTAL_SECONDS = 900
_CHUNK = 1 << 20


def release_entry(version: str) -> str:
    """Return the name of the release in the cache, which has the hash of its archive."""
    return f"pulumi-release-{version}-{fingerprint(version, _known_hash(version) or 'unknown')}"


def given_hash(variable: str) -> str | None:
    """Return the SHA-256 in an environment variable, None if it is not set; raises `ToolchainError`."""
    text = os.environ.get(variable, "").strip().lower()
    if text and not _HASH.fullmatch(text):
        raise ToolchainError(f"{variable} is not a SHA-256.\n  Set it to 64 hexadecimal digits.")
    return text or None


def checked_url(url: str) -> str:
    """Return the URL if it is safe to download programs from; raises `ToolchainError`."""
    parts = urlsplit(url)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOCAL):
        raise ToolchainError(f"{url} is not an https address.\n  Set {VARIABLE} to one that is.")
    return url


def download_release(version: str, cache: Cache, progress: Progress) -> Path | None:
    """Return a cache folder with the programs of the release, None if it cannot be downloaded.

    A release whose hash is not known is not downloaded: Pulumi is built from locked modules instead.

    Raises:
        ToolchainError: The downloaded archive has another hash, or the address is not https.
    """
    expected, archive = _known_hash(version), _archive_name(version)
    if expected is not None and (found := cache.find(release_entry(version))):
        return found
    releases = os.environ.get(VARIABLE, RELEASES).rstrip("/")
    if not releases or archive is None:
        return None
    checked_url(releases)
    if expected is None:
        progress.write_line(
            f"Pulumi CLI {version}: not downloaded, because no hash of {archive} is known. "
            f"To use Pulumi's release, set {HASH_VARIABLE} to its SHA-256."
        )
        return None

    def fill(folder: Path, progress: Progress) -> None:
        title = f"Pulumi CLI {version}: downloading"
        with progress.step(title, expected="a minute") as show:
            packed = folder / archive
            digest = _save_answer(f"{releases}/{archive}", packed, show)
            if digest != expected:
                raise ToolchainError(
                    f"{releases}/{archive} has the SHA-256 {digest}, expected is {expected}.\n"
                    "  Run again. If the error persists, check the proxy or mirror, or set another one in\n"
                    f"  {VARIABLE} (empty: build Pulumi from Go modules instead)."
                )
            _unpack_archive(packed, folder)

    try:
        return cache.ensure(release_entry(version), fill, progress)
    except (OSError, EOFError, zlib.error, tarfile.TarError, UnicodeDecodeError) as error:
        progress.write_line(f"Pulumi CLI {version}: download failed: {_reason_of(error)}")
        return None


def _archive_name(version: str) -> str | None:
    """Return the name of the archive for this machine, None if there is none."""
    system, machine = _SYSTEMS.get(platform.system()), _MACHINES.get(platform.machine().lower())
    return f"pulumi-v{version}-{system}-{machine}.tar.gz" if system and machine else None


def _known_hash(version: str) -> str | None:
    return given_hash(HASH_VARIABLE) or _HASHES.get(_archive_name(version) or "")


class _SafeRedirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects only to https."""

    def redirect_request(self, *arguments: Any) -> urllib.request.Request | None:  # noqa: ANN401 - urllib's signature
        try:
            checked_url(arguments[-1])
        except ToolchainError as error:
            raise URLError(str(error).partition("\n")[0]) from None
        return super().redirect_request(*arguments)


def _save_answer(url: str, file: Path, show: Callable[[str], None]) -> str:
    """Write the answer to `file` and return its SHA-256."""
    digest, received, deadline = hashlib.sha256(), 0, time.monotonic() + _TOTAL_SECONDS
    opener = urllib.request.build_opener(_SafeRedirects)
    with opener.open(url, timeout=_ANSWER_SECONDS) as answer, file.open("wb") as written:
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


def _unpack_archive(packed: Path, folder: Path) -> None:
    """Unpack the folder `pulumi` of the archive into `folder`, and delete the archive."""
    with tarfile.open(packed) as archive:
        archive.extractall(folder, filter="data")
    packed.unlink()
    for program in (folder / "pulumi").iterdir():
        program.rename(folder / f".{program.name}")
    (folder / "pulumi").rmdir()
    for program in folder.iterdir():
        program.rename(folder / program.name.removeprefix("."))


def _reason_of(error: Exception) -> str:
    if isinstance(error, HTTPError):
        return f"{error.url} answers {error.code}"
    return str(getattr(error, "reason", None) or error) or type(error).__name__
