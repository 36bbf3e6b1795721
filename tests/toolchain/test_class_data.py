"""Kafka's archived classes: Java reads them, and starts without them if they do not fit."""

import subprocess
from pathlib import Path

import attrs
import pytest

from headwater.toolchain import KafkaDistribution
from headwater.toolchain.broker.launch import tool_command
from headwater.toolchain.broker.process import ensure_class_data
from headwater.toolchain.cache import Cache
from headwater.toolchain.commands import Progress
from headwater.toolchain.kafka import class_data_entry

pytestmark = pytest.mark.broker

_UUID_LENGTH = 22


def started(distribution: KafkaDistribution, *options: str) -> str:
    """Run a program of Kafka that prints a random id; return its output."""
    java, *arguments = tool_command(distribution, "kafka.tools.StorageTool")
    command = [java, *options, *arguments, "random-uuid"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_java_reads_the_archived_classes(kafka_distribution: KafkaDistribution) -> None:
    archived = ensure_class_data(kafka_distribution, Cache(), Progress())
    loading = started(archived, "-Xlog:class+load").splitlines()
    ours = [line for line in loading if " org.apache.kafka." in line]
    assert any("shared objects file (top)" in line for line in ours)


@pytest.mark.parametrize("content", [None, b"damaged"])
def test_java_starts_without_a_missing_or_damaged_archive(
    kafka_distribution: KafkaDistribution, tmp_path: Path, content: bytes | None
) -> None:
    archive = tmp_path / "archive.jsa"
    if content is not None:
        archive.write_bytes(content)
    output = started(attrs.evolve(kafka_distribution, class_data=archive))
    assert len(output.strip()) == _UUID_LENGTH, "only the id is printed"


def test_an_archive_belongs_to_one_build_of_java(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    java = tmp_path / "bin" / "java"
    java.touch()
    entries = {class_data_entry(java)}
    for release in ('JAVA_VERSION="17.0.15"', 'JAVA_VERSION="17.0.16"'):
        (tmp_path / "release").write_text(release)
        entries.add(class_data_entry(java))
    assert len(entries) == 3
