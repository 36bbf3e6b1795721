"""The Kafka broker: its jars and the Java that runs them."""

from pathlib import Path

import attrs

from toolchain import machine
from toolchain.cache import Cache
from toolchain.maven_jars import MavenJars
from toolchain.progress import Progress

KAFKA_VERSION = "4.1.1"
_JARS = MavenJars("kafka", "Kafka", KAFKA_VERSION)


@attrs.frozen
class KafkaDistribution:
    """The `java` that runs Kafka, and the folder of Kafka's jars."""

    java: Path
    jars: Path

    @property
    def class_path(self) -> str:
        return str(self.jars / "*")


def needed_programs(cache: Cache) -> tuple[machine.Program, ...]:
    return (machine.JAVA,) if cache.find(_JARS.entry) else (machine.JAVA, machine.MAVEN)


def ensure_kafka(cache: Cache | None = None, progress: Progress | None = None) -> KafkaDistribution:
    """Return Kafka, downloaded on first use; raises `ToolchainError` that names every missing program."""
    cache = cache or Cache()
    programs = machine.require(needed_programs(cache))
    return KafkaDistribution(programs[machine.JAVA], _JARS.ensure(cache, progress or Progress()))
