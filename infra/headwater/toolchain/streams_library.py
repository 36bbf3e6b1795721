"""The library for Kafka Streams applications: the jar of the wheel, or a jar built from the sources."""

import os
from collections.abc import Iterator
from pathlib import Path

from headwater.toolchain import machine
from headwater.toolchain.cache import Cache, fingerprint
from headwater.toolchain.commands import Progress, run_logged
from headwater.toolchain.streams_jar import JAR, VERSION, belongs_to, build_command, source_digest

_IN_WHEEL = Path(__file__).parents[1] / "streams_library"
_SOURCE = _IN_WHEEL if _IN_WHEEL.is_dir() else Path(__file__).parents[3] / "streams_library"


def ensure_streams_library(cache: Cache | None = None, progress: Progress | None = None) -> Path:
    """Return the jar of the wheel; in a checkout, the jar that Maven builds on first use.

    A wheel that was built without Maven has no jar. A jar of other sources is not used. Raises
    `ToolchainError` if Maven or a JDK is missing for a build, or if Maven failed.
    """
    if belongs_to(_IN_WHEEL / JAR, _SOURCE):
        return _IN_WHEEL / JAR
    cache = cache or Cache()
    folder = cache.ensure(
        _cache_entry(), lambda draft, shown: _build_jar(draft, cache, shown), progress or Progress()
    )
    return folder / JAR


def needed_programs(cache: Cache) -> Iterator[machine.Program]:
    """Yield the programs that `ensure_streams_library` would run now."""
    if not belongs_to(_IN_WHEEL / JAR, _SOURCE) and cache.find(_cache_entry()) is None:
        yield from (machine.JAVA, machine.MAVEN)


def _cache_entry() -> str:
    return f"streams-library-{VERSION}-{fingerprint(source_digest(_SOURCE))}"


def _build_jar(folder: Path, cache: Cache, progress: Progress) -> None:
    programs = machine.require_programs((machine.JAVA, machine.MAVEN))
    with progress.step("Library for Kafka Streams: compiling with Maven", expected="10 seconds") as show:
        run_logged(
            build_command(programs[machine.MAVEN], _SOURCE, folder),
            log=cache.root / "logs" / "streams-library.log",
            environment=os.environ,
            show=show,
            failure="Maven could not compile the library for Kafka Streams",
        )
