"""The Kafka broker: its jars and the Java that runs them."""

from pathlib import Path

import attrs

from toolchain import java_classes, machine
from toolchain.cache import Cache, fingerprint
from toolchain.maven_jars import MavenJars
from toolchain.progress import Progress

KAFKA_VERSION = "4.1.1"
_JARS = MavenJars("kafka", "Kafka", KAFKA_VERSION)
CLASS_DATA_FILE = "broker.jsa"


@attrs.frozen
class KafkaDistribution:
    """The `java` that runs Kafka, and the folder of Kafka's jars.

    `class_data` is an archive of the classes that a broker loads; it makes the start of Kafka quicker.
    """

    java: Path
    jars: Path
    class_data: Path | None = None
    is_recording: bool = False
    """Whether Java writes the archive when Kafka ends, instead of reading it."""

    @property
    def class_path(self) -> str:
        return str(self.jars / "*")

    @property
    def java_options(self) -> tuple[str, ...]:
        """Options for a quick start."""
        if self.class_data is None:
            return ()
        return (java_classes.recording if self.is_recording else java_classes.reading)(self.class_data)


def needed_programs(cache: Cache) -> tuple[machine.Program, ...]:
    return (machine.JAVA,) if cache.find(_JARS.entry) else (machine.JAVA, machine.MAVEN)


def is_fetched(cache: Cache | None = None) -> bool:
    """Return whether the jars are downloaded already."""
    return (cache or Cache()).find(_JARS.entry) is not None


def ensure_kafka(cache: Cache | None = None, progress: Progress | None = None) -> KafkaDistribution:
    """Return Kafka, downloaded on first use; raises `ToolchainError` that names every missing program."""
    cache = cache or Cache()
    programs = machine.require(needed_programs(cache))
    java, jars = programs[machine.JAVA], _JARS.ensure(cache, progress or Progress())
    class_data = cache.find(class_data_entry(java))
    return KafkaDistribution(java, jars, class_data / CLASS_DATA_FILE if class_data else None)


def class_data_entry(java: Path) -> str:
    """Return the name of the cache entry with the class data; it is valid for one build of Java only."""
    return f"kafka-classes-{KAFKA_VERSION}-{fingerprint(_JARS.entry, *java_classes.build_of(java))}"
