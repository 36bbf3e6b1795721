"""Build the library for Kafka Streams applications: one jar, from the sources in `streams_library`."""

import os
from pathlib import Path

from headwater.toolchain import machine
from headwater.toolchain.cache import Cache, fingerprint
from headwater.toolchain.commands import Progress, run_logged

_IN_WHEEL = Path(__file__).parents[1] / "streams_library"
_SOURCE = _IN_WHEEL if _IN_WHEEL.is_dir() else Path(__file__).parents[3] / "streams_library"
_VERSION = "0.1.0"
JAR = f"headwater-streams-{_VERSION}.jar"


def ensure_streams_library(cache: Cache | None = None, progress: Progress | None = None) -> Path:
    """Return the jar, built with Maven on first use; raises `ToolchainError`."""
    cache = cache or Cache()
    folder = cache.ensure(
        _cache_entry(), lambda draft, shown: _build_jar(draft, cache, shown), progress or Progress()
    )
    return folder / JAR


def _cache_entry() -> str:
    sources = sorted(
        path
        for path in _SOURCE.rglob("*")
        if path.suffix in {".java", ".xml"} and "target" not in path.relative_to(_SOURCE).parts
    )
    parts = (part for path in sources for part in (str(path.relative_to(_SOURCE)), path.read_bytes()))
    return f"streams-library-{_VERSION}-{fingerprint(*parts)}"


def _build_jar(folder: Path, cache: Cache, progress: Progress) -> None:
    programs = machine.require((machine.JAVA, machine.MAVEN))
    with progress.step("Library for Kafka Streams: compiling with Maven", expected="10 seconds") as show:
        run_logged(
            [
                *(programs[machine.MAVEN], "--batch-mode", "--no-transfer-progress"),
                *("--file", _SOURCE / "pom.xml", f"-Doutside={folder}", "-Dmaven.test.skip=true"),
                *("-Dstyle.color=never", "package"),
            ],
            log=cache.root / "logs" / "streams-library.log",
            environment=os.environ,
            show=show,
            failure="Maven could not compile the library for Kafka Streams",
        )
