"""Spark's Kafka connector: the jars that `pyspark` does not include."""

from pathlib import Path

from headwater.toolchain import machine
from headwater.toolchain.cache import Cache
from headwater.toolchain.maven_jars import MavenJars
from headwater.toolchain.progress import Progress

CONNECTOR_VERSION = "4.2.0"
_JARS = MavenJars("spark", "Spark's Kafka connector", CONNECTOR_VERSION)


def needed_programs(cache: Cache) -> tuple[machine.Program, ...]:
    return (machine.JAVA,) if cache.find(_JARS.entry) else (machine.JAVA, machine.MAVEN)


def fetched_spark_jars(cache: Cache | None = None) -> tuple[Path, ...]:
    """Return the connector's jars if they are downloaded already, else none."""
    folder = (cache or Cache()).find(_JARS.entry)
    return () if folder is None else tuple(sorted(folder.glob("*.jar")))


def ensure_spark_jars(cache: Cache | None = None, progress: Progress | None = None) -> tuple[Path, ...]:
    """Return the connector's jars for `spark.jars`, downloaded on first use; raises `ToolchainError`."""
    cache = cache or Cache()
    machine.require(needed_programs(cache))
    return tuple(sorted(_JARS.ensure(cache, progress or Progress()).glob("*.jar")))
