"""Kafka Streams for the application of the demo: its jars, and the jars that it needs."""

from collections.abc import Iterator
from pathlib import Path

from headwater.toolchain import machine
from headwater.toolchain.cache import Cache
from headwater.toolchain.commands import Progress
from headwater.toolchain.maven_jars import MavenJars

VERSION = "4.4.0"
"""The newest supported version; a test compares it with the versions of documents."""
_JARS = MavenJars("streams", "Kafka Streams", VERSION)


def needed_programs(cache: Cache) -> Iterator[machine.Program]:
    """Yield the programs that `ensure_kafka_streams` would run now."""
    if cache.find(_JARS.entry) is None:
        yield from (machine.JAVA, machine.MAVEN)


def ensure_kafka_streams(cache: Cache | None = None, progress: Progress | None = None) -> Path:
    """Return the folder of the jars, downloaded on first use; raises `ToolchainError`."""
    return _JARS.ensure(cache or Cache(), progress or Progress())
