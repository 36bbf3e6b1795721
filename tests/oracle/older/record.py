"""Record what Kafka Streams 2.5 to 3.7 builds: `python -m tests.oracle.older.record` writes recorded.json.

Maven downloads each version; javac compiles `OlderVersions.java` against it.
"""

import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import attrs

from headwater.model.versions import OLDER, SUPPORTED

RECORDED = Path(__file__).with_name("recorded.json")
VERSIONS = tuple(map(str, (*OLDER, SUPPORTED[0])))
_PROGRAM = Path(__file__).with_name("OlderVersions.java")
_POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>headwater</groupId><artifactId>older</artifactId><version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId><artifactId>kafka-streams</artifactId><version>${kafka}</version>
    </dependency>
    <dependency>
      <groupId>org.slf4j</groupId><artifactId>slf4j-nop</artifactId><version>1.7.36</version>
    </dependency>
  </dependencies>
</project>
"""
_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"


@attrs.frozen
class Built:
    """What `versions`, which are neighbors, build of a topology; `refusal` is the text of an exception."""

    case: str
    versions: tuple[str, ...]
    describe: str = ""
    topics: Mapping[str, Mapping[str, str]] = attrs.field(factory=dict)
    copartitioned: Sequence[Sequence[str]] = attrs.field(factory=list)
    refusal: str = ""


def recorded() -> tuple[Built, ...]:
    """Return the recorded topologies."""
    return tuple(
        Built(**{**each, "versions": tuple(each["versions"])})
        for each in json.loads(RECORDED.read_text(encoding="utf-8"))
    )


def build(version: str) -> Mapping[str, Mapping[str, Any]]:
    """Return case → what Kafka Streams of `version` builds."""
    with TemporaryDirectory(prefix="headwater-older-") as folder:
        (Path(folder) / "pom.xml").write_text(_POM, encoding="utf-8")
        jars = Path(folder) / "jars"
        copy = ["mvn", "--quiet", "--batch-mode", "--file", f"{folder}/pom.xml", _COPY]
        subprocess.run([*copy, f"-Dkafka={version}", f"-DoutputDirectory={jars}"], check=True)
        subprocess.run(
            ["javac", "-nowarn", "-proc:none", "-cp", f"{jars}/*", "-d", folder, str(_PROGRAM)], check=True
        )
        done = subprocess.run(
            ["java", "-cp", os.pathsep.join((folder, f"{jars}/*")), "OlderVersions"],
            check=True,
            capture_output=True,
        )
    found: Mapping[str, Mapping[str, Any]] = json.loads(done.stdout)
    return found


def grouped(found: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> Iterator[Built]:
    """Yield what neighboring versions build alike; `found` is version → case → what it builds."""
    for case in next(iter(found.values())):
        same: Built | None = None
        for version, cases in found.items():
            built = read_built(case, version, cases[case])
            if built is None:
                continue
            if same is not None and attrs.evolve(same, versions=()) == attrs.evolve(built, versions=()):
                same = attrs.evolve(same, versions=(*same.versions, version))
                continue
            if same is not None:
                yield same
            same = built
        if same is not None:
            yield same


def read_built(case: str, version: str, given: Mapping[str, Any]) -> Built | None:
    """Return None if the version does not have the calls."""
    if "missing" in given:
        return None
    if "error" in given:
        return Built(case, (version,), refusal=given["error"])
    own = {name: config for name, config in given["topics"].items() if name not in {"a", "b"}}
    topics = {
        name: config for name, config in own.items() if name.endswith(("changelog", "repartition", "topic"))
    }
    return Built(case, (version,), given["describe"], topics, given["copartitioned"])


def write(found: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> None:
    """Write the record."""
    content = [attrs.asdict(built) for built in grouped(found)]
    RECORDED.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write({version: build(version) for version in VERSIONS})
