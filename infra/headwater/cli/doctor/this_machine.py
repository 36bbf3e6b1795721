"""Observe the programs and packages of this machine."""

import re
import shutil
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, requires, version

from headwater.doctor.machine import MachineFacts, Program
from headwater.toolchain import (
    PulumiToolchain,
    fetched_spark_jars,
    kafka,
    kafka_plugin,
    machine,
    pulumi_cli,
    spark,
)

_PINNED = re.compile(r"([A-Za-z0-9._-]+)==([^\s;]+)\s*(?:;.*extra == ['\"](\w+)['\"])?")
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


def _packages(extra: str) -> Mapping[str, tuple[str, str | None]]:
    """Return distribution → (required, installed) of Headwater's requirements for `extra`."""
    matches = (match for text in requires("headwater") or () if (match := _PINNED.match(text)))
    return {match[1]: (match[2], _installed(match[1])) for match in matches if (match[3] or "") == extra}


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
