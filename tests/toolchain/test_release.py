"""Pulumi's release is downloaded from an HTTP server, and verified by the checksums of the release."""

import hashlib
import io
import platform
import tarfile
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console

from infra.cli.main import main
from toolchain import ToolchainError, ensure_pulumi
from toolchain.cache import Cache
from toolchain.kafka_plugin import PLUGIN_VERSION
from toolchain.progress import Progress
from toolchain.pulumi_cli import CLI_VERSION, find_pulumi
from toolchain.pulumi_release import VARIABLE, download_release

_PROGRAM = b"#!/bin/sh\necho v3.250.0\n"
_NAMES = {"Linux": "linux", "Darwin": "darwin"}
_ARCHIVE = (
    f"pulumi-v{CLI_VERSION}-{_NAMES[platform.system()]}-"
    f"{'arm64' if platform.machine() in ('aarch64', 'arm64') else 'x64'}.tar.gz"
)


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name in the base class
        del format, args


@pytest.fixture
def releases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Serve a folder with a release of two programs; no `pulumi` is on PATH."""
    folder = tmp_path / "releases"
    folder.mkdir()
    with tarfile.open(folder / _ARCHIVE, "w:gz") as archive:
        for name in ("pulumi", "pulumi-language-python"):
            entry = tarfile.TarInfo(f"pulumi/{name}")
            entry.size, entry.mode = len(_PROGRAM), 0o755
            archive.addfile(entry, io.BytesIO(_PROGRAM))
    write_checksum(folder, hashlib.sha256((folder / _ARCHIVE).read_bytes()).hexdigest())
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=folder))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    monkeypatch.setenv(VARIABLE, f"http://127.0.0.1:{server.server_port}/")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("PATH", "")
    yield folder
    server.shutdown()
    thread.join()
    server.server_close()


def write_checksum(folder: Path, digest: str) -> None:
    lines = f"{'0' * 64}  pulumi-v{CLI_VERSION}-other.tar.gz\n{digest}  {_ARCHIVE}\n"
    (folder / f"pulumi-{CLI_VERSION}-checksums.txt").write_text(lines)


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


@pytest.fixture
def output() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def progress(output: io.StringIO) -> Progress:
    return Progress(Console(file=output, width=200, highlight=False))


@pytest.fixture
def _plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "home" / "plugins" / f"resource-kafka-v{PLUGIN_VERSION}").mkdir(parents=True)
    monkeypatch.setenv("PULUMI_HOME", str(tmp_path / "home"))


@pytest.mark.usefixtures("_plugin")
def test_the_release_is_downloaded_once_and_used(
    releases: Path, cache: Cache, progress: Progress, output: io.StringIO
) -> None:
    assert find_pulumi(cache) is None
    toolchain = ensure_pulumi(cache, progress)
    assert toolchain.cli.read_bytes() == _PROGRAM
    assert toolchain.cli.stat().st_mode & 0o111
    assert sorted(file.name for file in toolchain.cli.parent.iterdir()) == [
        "pulumi",
        "pulumi-language-python",
    ]
    assert "downloading (takes about a minute)" in output.getvalue()
    for file in releases.iterdir():
        file.unlink()
    assert ensure_pulumi(cache, progress) == toolchain == find_pulumi(cache)


def test_an_archive_that_differs_from_its_checksum_is_refused(
    releases: Path, cache: Cache, progress: Progress
) -> None:
    write_checksum(releases, "f" * 64)
    with pytest.raises(ToolchainError, match="differs from the checksum of the release"):
        download_release(CLI_VERSION, cache, progress)
    assert find_pulumi(cache) is None
    assert not [path for path in cache.root.iterdir() if path.is_dir()]


def test_a_missing_release_is_reported_with_its_address(
    releases: Path, cache: Cache, progress: Progress, output: io.StringIO
) -> None:
    (releases / _ARCHIVE).unlink()
    assert download_release(CLI_VERSION, cache, progress) is None
    assert f"/{_ARCHIVE} answers 404" in output.getvalue()


def test_a_truncated_archive_is_not_used(
    releases: Path, cache: Cache, progress: Progress, output: io.StringIO
) -> None:
    packed = (releases / _ARCHIVE).read_bytes()[:-40]
    (releases / _ARCHIVE).write_bytes(packed)
    write_checksum(releases, hashlib.sha256(packed).hexdigest())
    assert download_release(CLI_VERSION, cache, progress) is None
    assert "download failed" in output.getvalue()
    assert find_pulumi(cache) is None


@pytest.mark.usefixtures("releases")
def test_without_download_and_go_the_command_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADWATER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv(VARIABLE, "http://127.0.0.1:1")
    result = CliRunner().invoke(main, ["toolchain", "pulumi"])
    assert result.exit_code == 1
    failed = "Pulumi CLI 3.250.0: download failed: [Errno 111] Connection refused"
    assert result.output.count(failed) == 1
    assert "Go 1.24 or newer is missing" in result.output
    assert "https://www.pulumi.com/docs/install" in result.output


@pytest.mark.usefixtures("releases", "_plugin")
def test_a_failed_download_is_tried_once_before_a_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Go is replaced by a program that builds nothing, so that the build fails."""
    go = tmp_path / "bin" / "go"
    go.parent.mkdir()
    go.write_text('#!/bin/sh\ncase "$1" in env) echo go1.24.0;; *) echo no network; exit 1;; esac\n')
    go.chmod(0o755)
    monkeypatch.setenv("PATH", str(go.parent))
    monkeypatch.setenv("HEADWATER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv(VARIABLE, "http://127.0.0.1:1")
    result = CliRunner().invoke(main, ["toolchain", "pulumi"])
    assert result.exit_code == 1
    assert result.output.count("download failed") == 1
    assert "Pulumi CLI 3.250.0 could not be built (exit code 1).\n    no network" in result.output
