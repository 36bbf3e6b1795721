"""Pulumi's release is downloaded from an HTTP server, and verified by a hash from elsewhere."""

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

from headwater.cli.main import main
from headwater.toolchain import ToolchainError, ensure_pulumi, kafka_plugin
from headwater.toolchain.cache import Cache
from headwater.toolchain.commands import Progress
from headwater.toolchain.kafka_plugin import HASH_VARIABLE as PLUGIN_HASH_VARIABLE
from headwater.toolchain.kafka_plugin import PLUGIN_VERSION
from headwater.toolchain.pulumi_cli import CLI_VERSION, find_pulumi
from headwater.toolchain.pulumi_release import HASH_VARIABLE, VARIABLE, download_release

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
    monkeypatch.setenv(HASH_VARIABLE, hashlib.sha256((folder / _ARCHIVE).read_bytes()).hexdigest())
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


def replace_archive(folder: Path, content: bytes) -> None:
    """Replace the archive and the checksums next to it, as whoever controls the server can do."""
    (folder / _ARCHIVE).write_bytes(content)
    lines = f"{hashlib.sha256(content).hexdigest()}  {_ARCHIVE}\n"
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


def test_an_archive_with_another_hash_is_refused(releases: Path, cache: Cache, progress: Progress) -> None:
    """Also if the checksums of the same server fit."""
    replace_archive(releases, (releases / _ARCHIVE).read_bytes() + b"hostile")
    with pytest.raises(ToolchainError, match=r"has the SHA-256 [0-9a-f]{64}, expected is [0-9a-f]{64}"):
        download_release(CLI_VERSION, cache, progress)
    assert find_pulumi(cache) is None
    assert not [path for path in cache.root.iterdir() if path.is_dir()]


@pytest.mark.usefixtures("releases")
def test_a_release_without_a_known_hash_is_not_downloaded(
    cache: Cache, progress: Progress, output: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(HASH_VARIABLE)
    assert download_release(CLI_VERSION, cache, progress) is None
    assert f"no hash of {_ARCHIVE} is known" in output.getvalue()
    assert find_pulumi(cache) is None


@pytest.mark.usefixtures("releases", "_plugin")
def test_a_release_of_the_cache_counts_only_with_its_hash(
    cache: Cache, progress: Progress, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert download_release(CLI_VERSION, cache, progress) is not None
    for other in ("", "f" * 64):
        monkeypatch.setenv(HASH_VARIABLE, other)
        assert find_pulumi(cache) is None


@pytest.mark.parametrize("url", ["http://releases.example.com", "ftp://localhost", "file:///tmp", "releases"])
@pytest.mark.usefixtures("releases")
def test_only_https_is_accepted(
    url: str, cache: Cache, progress: Progress, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, url)
    with pytest.raises(ToolchainError, match="is not an https address"):
        download_release(CLI_VERSION, cache, progress)


def test_a_redirect_to_http_is_not_followed(
    cache: Cache, progress: Progress, output: io.StringIO, releases: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Redirecting(_Quiet):
        def do_GET(self) -> None:
            self.send_response(302)
            self.send_header("Location", f"http://releases.example.com{self.path}")
            self.end_headers()

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Redirecting, directory=releases)) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        monkeypatch.setenv(VARIABLE, f"http://127.0.0.1:{server.server_port}")
        assert download_release(CLI_VERSION, cache, progress) is None
        server.shutdown()
        thread.join()
    assert "http://releases.example.com" in output.getvalue()
    assert "is not an https address" in output.getvalue()


@pytest.mark.parametrize("text", ["abc", "g" * 64, "sha256:" + "0" * 64])
def test_a_hash_that_is_none_is_an_error(
    text: str, cache: Cache, progress: Progress, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(HASH_VARIABLE, text)
    with pytest.raises(ToolchainError, match=f"{HASH_VARIABLE} is not a SHA-256"):
        download_release(CLI_VERSION, cache, progress)


def test_the_published_plugin_is_not_installed_without_its_hash(
    tmp_path: Path, progress: Progress, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The CLI is replaced by a program that records its arguments."""
    cli, asked = tmp_path / "pulumi", tmp_path / "asked"
    cli.write_text(f'#!/bin/sh\necho "$@" >> {asked}\n')
    cli.chmod(0o755)
    monkeypatch.delenv(PLUGIN_HASH_VARIABLE, raising=False)
    assert "no hash of the published plugin is known" in kafka_plugin._download_plugin(
        cli, tmp_path, progress
    )
    assert not asked.exists()
    monkeypatch.setenv(PLUGIN_HASH_VARIABLE, "a" * 64)
    assert kafka_plugin._download_plugin(cli, tmp_path, progress) == ""
    expected = f"plugin install resource kafka {PLUGIN_VERSION} --checksum {'a' * 64}\n"
    assert asked.read_text() == expected


def test_a_missing_release_is_reported_with_its_address(
    releases: Path, cache: Cache, progress: Progress, output: io.StringIO
) -> None:
    (releases / _ARCHIVE).unlink()
    assert download_release(CLI_VERSION, cache, progress) is None
    assert f"/{_ARCHIVE} answers 404" in output.getvalue()


def test_a_truncated_archive_is_not_used(
    releases: Path,
    cache: Cache,
    progress: Progress,
    output: io.StringIO,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    packed = (releases / _ARCHIVE).read_bytes()[:-40]
    replace_archive(releases, packed)
    monkeypatch.setenv(HASH_VARIABLE, hashlib.sha256(packed).hexdigest())
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
