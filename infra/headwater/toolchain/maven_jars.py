"""Jars that Maven resolves, checked by their hashes, and how their builds are recorded."""

import hashlib
import os
from contextlib import suppress
from pathlib import Path

import attrs

from headwater.toolchain import machine
from headwater.toolchain.cache import Cache, file_contents, fingerprint
from headwater.toolchain.commands import Progress, ToolchainError, run_logged

_WITHOUT_WARNINGS = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")


def reading_options(archive: Path) -> tuple[str, ...]:
    """Return the options of Java that use an archive; Java ignores an unfit archive without a warning."""
    return (f"-XX:SharedArchiveFile={archive}", *_WITHOUT_WARNINGS)


def recording_options(archive: Path) -> tuple[str, ...]:
    """Return the options of Java that write an archive when the program ends."""
    return (f"-XX:ArchiveClassesAtExit={archive}", *_WITHOUT_WARNINGS)


def build_of(java: Path) -> tuple[str, str]:
    """Return what identifies a build of Java: an archive is valid for one build only."""
    release = ""
    with suppress(OSError):
        release = (java.resolve().parents[1] / "release").read_text(encoding="utf-8")
    return str(java.resolve()), release


_SOURCE = Path(__file__).parent / "maven"
_COPY_DEPENDENCIES = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"


@attrs.frozen
class MavenJars:
    """A set of jars from Maven Central, pinned by a pom and checksums in `maven/`.

    `name` names these two files, `title` is shown, `version` is in the cache entry's name.
    """

    name: str
    title: str
    version: str

    @property
    def entry(self) -> str:
        contents = file_contents(_SOURCE, [self._project.name, self._listing.name])
        return f"{self.name}-{self.version}-{fingerprint(*contents)}"

    @property
    def _project(self) -> Path:
        return _SOURCE / f"{self.name}.xml"

    @property
    def _listing(self) -> Path:
        return _SOURCE / f"{self.name}.sha256"

    def ensure(self, cache: Cache, progress: Progress) -> Path:
        """Return the folder of the jars, downloaded on first use; raises `ToolchainError`."""
        return cache.ensure(self.entry, lambda folder, shown: self._fetch(folder, cache, shown), progress)

    def _fetch(self, folder: Path, cache: Cache, progress: Progress) -> None:
        maven = machine.require_programs([machine.MAVEN])[machine.MAVEN]
        with progress.step(
            f"{self.title} {self.version}: downloading with Maven", expected="10 seconds"
        ) as show:
            run_logged(
                [
                    *(maven, "--file", self._project, _COPY_DEPENDENCIES),
                    *("-DincludeScope=runtime", f"-DoutputDirectory={folder}"),
                    *("--batch-mode", "--no-transfer-progress", "-Dstyle.color=never"),
                ],
                log=cache.root / "logs" / f"{self.name}.log",
                environment=os.environ,
                show=show,
                failure=f"Maven could not download {self.title}",
            )
            verify_jars(folder, self._listing)


def verify_jars(folder: Path, listing: Path) -> None:
    """Compare `folder` with `listing` (lines of `sha256sum`); raises `ToolchainError` for any difference."""
    lines = listing.read_text(encoding="utf-8").splitlines()
    expected = {name: checksum for checksum, name in map(str.split, lines)}
    found = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.iterdir()}
    if wrong := sorted(
        name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name)
    ):
        raise ToolchainError(
            "Maven downloaded files that differ from the locked ones: "
            + ", ".join(wrong)
            + f".\n  Check the mirrors in ~/.m2/settings.xml. With a new version, update {listing.name}."
        )
