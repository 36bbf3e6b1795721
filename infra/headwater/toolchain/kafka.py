"""Kafka: the jars of the broker and the Java that runs them, and the jars of Kafka Streams for the demo."""

from collections.abc import Iterator
from pathlib import Path

import attrs

from headwater.toolchain import machine, maven_jars
from headwater.toolchain.cache import Cache, fingerprint
from headwater.toolchain.commands import Progress, ToolchainError
from headwater.toolchain.maven_jars import MavenJars

KAFKA_VERSION = "4.1.1"
OTHER_VERSIONS = ("3.9.2", "4.2.2", "4.3.1", "4.4.0")
"""Versions of brokers that only tests run; the wheel does not contain their lists of jars."""
PINNED_VERSIONS = tuple(sorted((KAFKA_VERSION, *OTHER_VERSIONS)))
_JARS = MavenJars("kafka", "Kafka", KAFKA_VERSION)

STREAMS_VERSION = "4.4.0"
"""The newest supported version; a test compares it with the versions of documents."""
_STREAMS_JARS = MavenJars("streams", "Kafka Streams", STREAMS_VERSION)
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
    version: str = KAFKA_VERSION

    @property
    def class_path(self) -> str:
        return str(self.jars / "*")

    @property
    def java_options(self) -> tuple[str, ...]:
        """Options for a quick start."""
        if self.class_data is None:
            return ()
        return (maven_jars.recording_options if self.is_recording else maven_jars.reading_options)(
            self.class_data
        )


def needed_programs(cache: Cache) -> tuple[machine.Program, ...]:
    """Return the programs that a download of Kafka's jars would run now."""
    return _programs_to_download(cache, _JARS)


def is_fetched() -> bool:
    """Return whether the jars are downloaded already."""
    return Cache().find(_JARS.entry) is not None


def ensure_kafka(
    cache: Cache | None = None, progress: Progress | None = None, version: str = KAFKA_VERSION
) -> KafkaDistribution:
    """Return Kafka, downloaded on first use.

    Raises `ToolchainError` if programs are missing (all are named), or if the version is not pinned.
    """
    cache, jars = cache or Cache(), _jars_of(version)
    programs = machine.require_programs(_programs_to_download(cache, jars))
    java, folder = programs[machine.JAVA], jars.ensure(cache, progress or Progress())
    class_data = cache.find(class_data_entry(java, version))
    archive = class_data / CLASS_DATA_FILE if class_data else None
    return KafkaDistribution(java, folder, archive, version=version)


def class_data_entry(java: Path, version: str = KAFKA_VERSION) -> str:
    """Return the name of the cache entry with the class data; it is valid for one build of Java only."""
    return f"kafka-classes-{version}-{fingerprint(_jars_of(version).entry, *maven_jars.build_of(java))}"


def _jars_of(version: str) -> MavenJars:
    if version == KAFKA_VERSION:
        return _JARS
    if version not in OTHER_VERSIONS:
        raise ToolchainError(
            f"Kafka {version} is not one of the pinned versions: {', '.join(PINNED_VERSIONS)}."
        )
    return MavenJars(f"kafka-{version.rpartition('.')[0]}", "Kafka", version)


def _programs_to_download(cache: Cache, jars: MavenJars) -> tuple[machine.Program, ...]:
    return (machine.JAVA,) if cache.find(jars.entry) else (machine.JAVA, machine.MAVEN)


def needed_streams_programs(cache: Cache) -> Iterator[machine.Program]:
    """Yield the programs that `ensure_kafka_streams` would run now."""
    if cache.find(_STREAMS_JARS.entry) is None:
        yield from (machine.JAVA, machine.MAVEN)


def ensure_kafka_streams(cache: Cache | None = None, progress: Progress | None = None) -> Path:
    """Return the folder of the jars, downloaded on first use; raises `ToolchainError`."""
    return _STREAMS_JARS.ensure(cache or Cache(), progress or Progress())
