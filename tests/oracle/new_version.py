"""Prepare the support of a new version of Kafka: `python -m tests.oracle.new_version [VERSION]`.

Looks up Maven Central for later versions, compares one with the newest supported version (configs, random
topologies, brokers) and with Headwater, and prints what is left to decide. CONTRIBUTING.md has the procedure.
"""

import argparse
import hashlib
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from headwater.model.versions import SUPPORTED, KafkaStreamsVersion, read_any_version
from headwater.toolchain import ToolchainError, machine
from headwater.toolchain.cache import Cache
from headwater.toolchain.commands import run_logged
from headwater.toolchain.kafka import OTHER_VERSIONS, KafkaDistribution
from tests.oracle.config_table import CLIENTS, generated
from tests.oracle.kafka_streams import KafkaStreams
from tests.oracle.random_topologies.stores import Choices
from tests.oracle.situations import random_situation

PINNED = Path(__file__).parents[2] / "infra" / "headwater" / "toolchain" / "maven"
_GET = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:get"
_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
_RELEASE = re.compile(r"(\d+)\.(\d+)\.(\d+)")
_FOLDER = "org/apache/kafka/kafka-streams"


def candidates(published: Iterable[str], supported: Sequence[KafkaStreamsVersion]) -> list[str]:
    """Return the published versions that are not supported yet, the oldest first.

    These are later patches of supported releases, and the latest patch of each later release.
    """
    newest = supported[-1]
    known = {version.release: version for version in supported}
    latest: dict[str, KafkaStreamsVersion] = {}
    for text in published:
        if (found := _RELEASE.fullmatch(text)) is None:  # a release candidate
            continue
        version = KafkaStreamsVersion(*map(int, found.groups()))
        is_later = version > known[version.release] if version.release in known else version > newest
        if is_later and version > latest.get(version.release, KafkaStreamsVersion(0, 0, 0)):
            latest[version.release] = version
    return [str(version) for version in sorted(latest.values())]


def changed_configs(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each config of a client that only one of two tables has, or that differs."""
    for client in CLIENTS:
        for key in sorted(old[client].keys() | new[client].keys()):
            before, after = old[client].get(key), new[client].get(key)
            if before is None:
                yield f"{client} {key}: new, {after}"
            elif after is None:
                yield f"{client} {key}: removed"
            elif before != after:
                yield f"{client} {key}: {before} -> {after}"
    if old["rules"] != new["rules"]:
        yield "the rules of `StreamsConfig` for its clients"


def similar_version(version: str) -> str:
    """Return the pinned version whose Maven project is changed: of the same release, otherwise the newest."""
    same = [each for each in OTHER_VERSIONS if each.rpartition(".")[0] == version.rpartition(".")[0]]
    return same[0] if same else max(OTHER_VERSIONS, key=_numbers)


def pinned_project(text: str, old: str, new: str) -> str:
    """Return the Maven project of a broker for another version; comments may need a check."""
    return text.replace(f"<version>{old}</version>", f"<version>{new}</version>")


def published_versions() -> list[str]:
    """Return the versions of Kafka Streams on Maven Central, as Maven's mirrors have them."""
    maven = machine.require_programs([machine.MAVEN])[machine.MAVEN]
    cache = Cache()
    with tempfile.TemporaryDirectory() as folder:
        run_logged(
            [
                *(maven, "--batch-mode", "--no-transfer-progress", _GET, f"-Dmaven.repo.local={folder}"),
                *("-Dtransitive=false", "-Dartifact=org.apache.kafka:kafka-streams:RELEASE:pom"),
            ],
            log=cache.root / "logs" / "new-version.log",
            environment=os.environ,
            show=lambda _: None,
            failure="Maven could not look up Kafka Streams",
        )
        files = (Path(folder) / _FOLDER).glob("maven-metadata-*.xml")
        return sorted({str(each.text) for file in files for each in ET.parse(file).iter("version")})  # noqa: S314 - written by Maven


def compare_configs(old: KafkaStreams, new: KafkaStreams) -> list[str]:
    """Print which configs differ; return what is left to do."""
    before, after = old.config_tables(), new.config_tables()
    lines = list(changed_configs(before, after))
    _print("Configs", lines or ["no change"])
    try:
        generated({old.version: before, new.version: after})
    except ValueError as error:
        return [f"Translate {error} in tests/oracle/config_table.py, and check it in compiler/configs."]
    missing = sorted(new.config_keys() - old.config_keys())
    if not missing:
        return []
    return [
        f"Classify {', '.join(missing)} in engine/program/config_support.py: does the runtime implement it?"
    ]


def compare_topologies(new: KafkaStreams, topologies: int) -> list[str]:
    """Compare Headwater, which handles the version as the newest known one, over random topologies."""
    different = []
    for number in range(topologies):
        source = random.Random(f"new {number}")  # noqa: S311 - repeatable
        situation = random_situation(Choices(source.randrange))
        if found := situation.differences(new):
            different.append(f"topology {number}: {found[0]}")
    _print(f"Headwater and {new.version}, {topologies} random topologies", different or ["no difference"])
    if not different:
        return []
    return ["Explain each topology in which Headwater differs; the rows of neighbors explain most of them."]


def compare_neighbors(old: str, new: str, topologies: int) -> list[str]:
    """Compare the two versions over random topologies, in a process of its own."""
    command = [sys.executable, "-m", "tests.oracle.neighbors", old, new, "--topologies", str(topologies)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    _print(f"Neighbors {old} and {new}", done.stdout.splitlines())
    if f"{topologies} topologies, 0 differ" in done.stdout:
        return []
    where = "compiler/version_differences.py, tests/oracle/differences and docs/versions.md"
    return [f"Add each kind of difference that the tables of configs do not explain to {where}."]


def pin_broker(version: str) -> Path:
    """Write the Maven project and the hashes of a broker, and return the folder of its jars."""
    release = version.rpartition(".")[0]
    similar = similar_version(version)
    template = (PINNED / f"kafka-{similar.rpartition('.')[0]}.xml").read_text(encoding="utf-8")
    project = PINNED / f"kafka-{release}.xml"
    project.write_text(pinned_project(template, similar, version), encoding="utf-8")
    maven = machine.require_programs([machine.MAVEN])[machine.MAVEN]
    cache = Cache()

    jars = Path(tempfile.mkdtemp(prefix="headwater-new-version-"))
    run_logged(
        [
            *(maven, "--batch-mode", "--no-transfer-progress", "--file", project, _COPY),
            *("-DincludeScope=runtime", f"-DoutputDirectory={jars}"),
        ],
        log=cache.root / "logs" / "new-version.log",
        environment=os.environ,
        show=lambda _: None,
        failure=f"Maven could not download the broker {version}",
    )
    hashes = (
        f"{hashlib.sha256(jar.read_bytes()).hexdigest()}  {jar.name}\n" for jar in sorted(jars.iterdir())
    )
    (PINNED / f"kafka-{release}.sha256").write_text("".join(hashes), encoding="utf-8")
    return jars


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def compare_brokers(version: str, jars: Path) -> list[str]:
    """Run recorded applications of the streams protocol on a broker of the version; return what differs."""
    os.environ["HEADWATER_KAFKA"] = version  # read by the modules that are imported now
    from headwater.toolchain.broker import Broker, Settings  # noqa: PLC0415
    from tests.acls.conftest import STREAMS_PROTOCOL  # noqa: PLC0415
    from tests.acls.streams_process import StreamsProcess  # noqa: PLC0415
    from tests.oracle import test_streams_groups as recorded  # noqa: PLC0415
    from tests.pulumi.cluster import Cluster  # noqa: PLC0415

    java = machine.require_programs((machine.JAVA,))[machine.JAVA]
    distribution = KafkaDistribution(java, jars, version=version)
    outcomes = recorded.recorded()
    newest = outcomes[max(outcomes, key=_numbers)]
    process = StreamsProcess(version)
    lines = []
    with (
        tempfile.TemporaryDirectory() as folder,
        Broker(distribution, Path(folder), Settings(overrides=STREAMS_PROTOCOL)) as broker,
    ):
        try:
            groups = recorded.StreamsGroups(Cluster(broker.bootstrap_servers), distribution, process)
            for name, expected in newest.items():
                found = groups.outcome(recorded.SITUATIONS[name], recorded.REFUSED.get(name))
                if found != expected:
                    lines.append(f"{name}: {json.dumps(expected)} -> {json.dumps(found)}")
        finally:
            process.close()
    _print(f"Streams groups of broker {version}, {len(newest)} applications", lines or ["as recorded"])
    return ["Explain the differences of streams groups in compiler/broker_counts.py."] if lines else []


def _print(title: str, lines: Iterable[str]) -> None:
    sys.stdout.write(f"\n== {title}\n" + "".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


_ALWAYS = (
    "Add the version to SUPPORTED (model/versions.py) and to OTHER_VERSIONS (toolchain/kafka.py).",
    "Pin it for the demo, too (toolchain/kafka.py, maven/streams.xml, maven/streams.sha256).",
    "UPDATE_GOLDEN=1 .venv/bin/pytest tests/oracle/test_configs.py, twice: the table, then Kafka's answers.",
    "HEADWATER_KAFKA=VERSION UPDATE_GOLDEN=1 .venv/bin/pytest -m soak tests/oracle/test_streams_groups.py",
    "Read Kafka's upgrade guide: data in planner/upgrade/data.py, results in version_differences.py.",
    "docs/versions.md (tables, counts of neighbors), docs/upgrade.md, the releases that other pages name.",
    "make check, make test, and HEADWATER_KAFKA=VERSION .venv/bin/pytest -m every_broker.",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("version", nargs="?", help="Default: the latest release that is not supported.")
    parser.add_argument("--topologies", type=int, default=1500)
    parser.add_argument("--without-broker", action="store_true", help="Pin and start no broker.")
    arguments = parser.parse_args()
    found = [] if arguments.version else candidates(published_versions(), SUPPORTED)
    if not arguments.version:
        _print("Maven Central has", found or [f"nothing later than {', '.join(map(str, SUPPORTED))}"])
    if not (arguments.version or found):
        return
    version = str(arguments.version or found[-1])
    if _RELEASE.fullmatch(version) is None or read_any_version(version) is None:
        parser.error(f"{version} is not a version of Kafka Streams that can be compared, such as 4.5.0")
    old, new = KafkaStreams(str(_neighbor(version))), KafkaStreams(version)
    try:
        left = [*compare_configs(old, new), *compare_topologies(new, arguments.topologies // 5)]
    except ToolchainError as error:
        parser.exit(
            1, f"{error}\nAn API moved: add a folder to tests/oracle/java/src, and its name to pom.xml.\n"
        )
    finally:
        old.close()
        new.close()
    left += compare_neighbors(old.version, version, arguments.topologies)
    if not arguments.without_broker:
        left += compare_brokers(version, pin_broker(version))
    _print("Left to do", (f"[ ] {line.replace('VERSION', version)}" for line in (*left, *_ALWAYS)))


def _neighbor(version: str) -> KafkaStreamsVersion:
    """Return the supported version to compare with: the latest one before it."""
    earlier = [each for each in SUPPORTED if _numbers(str(each)) < _numbers(version)]
    return earlier[-1] if earlier else SUPPORTED[0]


if __name__ == "__main__":
    main()
