"""What must agree with each other, and what must not be recorded, in the files that pin versions."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from headwater.model.versions import DEFAULT_VERSION
from headwater.toolchain.kafka import KAFKA_VERSION, OTHER_VERSIONS, STREAMS_VERSION
from headwater.toolchain.kafka_plugin import PLUGIN_VERSION
from headwater.toolchain.pulumi_cli import CLI_VERSION
from headwater.toolchain.spark import CONNECTOR_VERSION

_ROOT = Path(__file__).parents[2]
_LOCKS = sorted((_ROOT / "requirements").glob("*.txt"))


def project() -> dict[str, Any]:
    return tomllib.loads((_ROOT / "pyproject.toml").read_text())


@pytest.mark.parametrize("lock", _LOCKS, ids=lambda path: path.name)
def test_locks_hold_hashes_and_no_registry(lock: Path) -> None:
    text = lock.read_text()
    assert "://" not in text
    assert "index-url" not in text
    for requirement in re.split(r"\n(?=\S)", text.strip()):
        assert re.match(r"[a-z0-9._-]+==\S+", requirement), requirement
        assert "--hash=sha256:" in requirement, requirement


def _locked() -> dict[str, str]:
    """Return package → version."""
    text = (_ROOT / "requirements" / "dev.txt").read_text()
    return {
        canonicalize_name(name): number for name, number in re.findall(r"^(\S+)==(\S+)", text, re.MULTILINE)
    }


def test_every_development_dependency_is_pinned_and_locked_as_pinned() -> None:
    groups = project()["dependency-groups"]
    pins = [*groups["build"], *project()["build-system"]["requires"]]
    pins += [pin for pin in groups["dev"] if isinstance(pin, str)]
    assert {re.sub(r"\[.*]", "", pin) for pin in pins} <= {
        f"{name}=={number}" for name, number in _locked().items()
    }


def test_every_dependency_of_users_is_a_range_that_contains_the_locked_version() -> None:
    described = project()["project"]
    for text in (*described["dependencies"], *described["optional-dependencies"]["spark"]):
        requirement = Requirement(text)
        assert {each.operator for each in requirement.specifier} & {">=", "~="}, text
        assert requirement.specifier.contains(_locked()[canonicalize_name(requirement.name)]), text


def test_the_plugin_is_that_of_the_sdk() -> None:
    assert f"pulumi-kafka~={PLUGIN_VERSION}" in project()["project"]["dependencies"]
    assert _locked()["pulumi-kafka"] == PLUGIN_VERSION


def test_the_go_and_maven_files_have_the_reported_versions() -> None:
    toolchain = _ROOT / "infra" / "headwater" / "toolchain"
    assert f"github.com/pulumi/pulumi/pkg/v3 v{CLI_VERSION} " in (toolchain / "go/cli/go.mod").read_text()
    assert f"<version>{KAFKA_VERSION}</version>" in (toolchain / "maven/kafka.xml").read_text()
    assert f" kafka_2.13-{KAFKA_VERSION}.jar\n" in (toolchain / "maven/kafka.sha256").read_text()
    for version in OTHER_VERSIONS:
        file = toolchain / "maven" / f"kafka-{version.rpartition('.')[0]}.xml"
        assert f"<version>{version}</version>" in file.read_text()
        assert f" kafka_2.13-{version}.jar\n" in file.with_suffix(".sha256").read_text()
    assert str(DEFAULT_VERSION) == STREAMS_VERSION
    assert f"<version>{DEFAULT_VERSION}</version>" in (toolchain / "maven/streams.xml").read_text()
    assert f" kafka-streams-{DEFAULT_VERSION}.jar\n" in (toolchain / "maven/streams.sha256").read_text()
    assert f"<version>{CONNECTOR_VERSION}</version>" in (toolchain / "maven/spark.xml").read_text()
    connector = f" spark-sql-kafka-0-10_2.13-{CONNECTOR_VERSION}.jar\n"
    assert connector in (toolchain / "maven/spark.sha256").read_text()
