"""The Kafka broker: its jars, brought by Maven (`maven/pom.xml`), checked against `maven/kafka.sha256`."""

import hashlib
import os
from pathlib import Path

import attrs

from toolchain import machine
from toolchain.cache import Cache, file_contents, fingerprint
from toolchain.commands import run_logged
from toolchain.errors import ToolchainError
from toolchain.progress import Progress

KAFKA_VERSION = "4.1.1"
_SOURCE = Path(__file__).parent / "maven"
_COPY_DEPENDENCIES = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"


@attrs.frozen
class KafkaDistribution:
    """A Kafka that can be run: the `java` to run it by and the folder of its jars."""

    java: Path
    jars: Path

    @property
    def class_path(self) -> str:
        return str(self.jars / "*")


def needed_programs(cache: Cache) -> tuple[machine.Program, ...]:
    return (machine.JAVA,) if cache.find(_entry()) else (machine.JAVA, machine.MAVEN)


def ensure_kafka(cache: Cache | None = None, progress: Progress | None = None) -> KafkaDistribution:
    """Return the broker, fetched if need be; raises `ToolchainError`, naming every missing program."""
    cache = cache or Cache()
    programs = machine.require(needed_programs(cache))

    def fetch(folder: Path, progress: Progress) -> None:
        with progress.step(f"Kafka {KAFKA_VERSION}: fetching by Maven") as show:
            run_logged(
                [
                    *(programs[machine.MAVEN], "--file", _SOURCE / "pom.xml", _COPY_DEPENDENCIES),
                    *("-DincludeScope=runtime", f"-DoutputDirectory={folder}"),
                    *("--batch-mode", "--no-transfer-progress", "-Dstyle.color=never"),
                ],
                log=cache.root / "logs" / "kafka.log",
                environment=os.environ,
                show=show,
                failure="Maven could not fetch Kafka",
            )
            verify(folder, (_SOURCE / "kafka.sha256").read_text(encoding="utf-8"))

    return KafkaDistribution(programs[machine.JAVA], cache.ensure(_entry(), fetch, progress or Progress()))


def verify(folder: Path, listing: str) -> None:
    """Compare `folder` with `listing` (lines of `sha256sum`); raises `ToolchainError` for any difference."""
    expected = {name: checksum for checksum, name in map(str.split, listing.splitlines())}
    found = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.iterdir()}
    if wrong := sorted(
        name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name)
    ):
        raise ToolchainError(
            "Maven brought other files than the locked ones: "
            + ", ".join(wrong)
            + ".\n  Look at the mirrors in ~/.m2/settings.xml; after a change of pom.xml, renew kafka.sha256."
        )


def _entry() -> str:
    return f"kafka-{KAFKA_VERSION}-{fingerprint(*file_contents(_SOURCE, ['pom.xml', 'kafka.sha256']))}"
