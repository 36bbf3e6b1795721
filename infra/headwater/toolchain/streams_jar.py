"""The jar of the library for Kafka Streams: its sources, its build, and whether a jar belongs to sources.

The build of the wheel (`hatch_build.py`) loads this file alone, so it imports the standard library only.
"""

import hashlib
import zipfile
from pathlib import Path

VERSION = "0.1.0"
JAR = f"headwater-streams-{VERSION}.jar"
_MANIFEST = "META-INF/MANIFEST.MF"
_DIGEST = "Headwater-Sources"


def source_digest(folder: Path) -> str:
    """Return the SHA-256 of the names and contents of all sources in `folder`, in hexadecimal digits."""
    digest = hashlib.sha256()
    paths = {path.relative_to(folder): path for path in folder.rglob("*") if path.suffix in {".java", ".xml"}}
    for name in sorted(paths):
        if "target" not in name.parts:  # what Maven wrote there, if someone called it in the folder
            for part in (name.as_posix().encode(), paths[name].read_bytes()):
                digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()


def belongs_to(jar: Path, folder: Path) -> bool:
    """Return whether the jar exists and says that it was built from exactly the sources in `folder`."""
    try:
        with zipfile.ZipFile(jar) as archive:
            manifest = archive.read(_MANIFEST).decode(errors="replace")
    except (OSError, KeyError, zipfile.BadZipFile):
        return False
    # Lines of more than 72 bytes continue in the next line, after a space.
    lines = manifest.replace("\r\n", "\n").replace("\n ", "").splitlines()
    return f"{_DIGEST}: {source_digest(folder)}" in lines


def build_command(maven: str | Path, folder: Path, output: Path) -> list[str | Path]:
    """Return the command that builds the jar in `output`; it needs a JDK.

    The same sources and the same JDK yield the same bytes.
    """
    return [
        *(maven, "--batch-mode", "--no-transfer-progress", "-Dstyle.color=never"),
        *("--file", folder / "pom.xml", f"-Doutside={output}", f"-Dsources.digest={source_digest(folder)}"),
        *("-Dmaven.test.skip=true", "package"),
    ]
