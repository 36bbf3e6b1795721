"""Observe the programs and packages of this machine."""

import shutil
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, requires, version

from packaging.requirements import Requirement

from headwater.doctor.machine import MachineFacts, Package, Program
from headwater.toolchain import (
    PulumiToolchain,
    fetched_spark_jars,
    kafka,
    kafka_plugin,
    machine,
    pulumi_cli,
    spark,
)

_OLDEST_PULUMI = (3, 250)


def observe_machine() -> MachineFacts:
    found = pulumi_cli.find_pulumi()
    return MachineFacts(
        python=sys.version_info[:3],
        java=_program(machine.JAVA),
        maven=_program(machine.MAVEN),
        go=_program(machine.GO),
        pulumi=_pulumi(found),
        pulumi_is_on_path=found is not None and shutil.which("pulumi") == str(found.cli),
        plugin=str(plugin) if (plugin := kafka_plugin.find_plugin()) else None,
        plugin_is_visible=found is None or not found.is_users or kafka_plugin.is_visible(),
        plugin_version=kafka_plugin.PLUGIN_VERSION,
        kafka=kafka.is_fetched(),
        connector_found=bool(fetched_spark_jars()),
        connector=spark.CONNECTOR_VERSION,
        packages=_packages(""),
        spark_packages=_packages("spark"),
    )


def _program(program: machine.Program) -> Program | None:
    found = machine.inspect(program)
    if found.executable is None:
        return None
    return Program(path=str(found.executable), version=found.version, minimum=program.minimum)


def _pulumi(found: PulumiToolchain | None) -> Program | None:
    if found is None:
        return None
    return Program(path=str(found.cli), version=pulumi_cli.pulumi_version(found.cli), minimum=_OLDEST_PULUMI)


def _packages(extra: str) -> Mapping[str, Package]:
    """Return distribution → package of Headwater's requirements for `extra`, "" = those of every command."""
    found = {}
    for requirement in map(Requirement, requires("headwater") or ()):
        of_base = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        of_extra = requirement.marker is None or requirement.marker.evaluate({"extra": extra})
        if of_extra and (of_base is (extra == "")):
            found[requirement.name] = _package(requirement)
    return found


def _package(requirement: Requirement) -> Package:
    installed = _installed(requirement.name)
    is_fitting = installed is not None and requirement.specifier.contains(installed, prereleases=True)
    return Package(str(requirement.specifier), installed, is_fitting)


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
