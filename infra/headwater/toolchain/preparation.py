"""Download or build programs ahead of time, and the variables that put them on the PATH of a shell."""

import os
import shlex
from collections.abc import Iterable, Iterator, Mapping

from headwater.toolchain import (
    kafka,
    kafka_plugin,
    machine,
    pulumi_cli,
    spark,
    streams_library,
)
from headwater.toolchain.broker.process import ensure_class_data
from headwater.toolchain.cache import Cache
from headwater.toolchain.commands import Progress, ToolchainError
from headwater.toolchain.spark import ensure_spark_classes

PARTS = ("kafka", "spark", "streams-library", "pulumi")


def prepare_parts(parts: Iterable[str]) -> None:
    """Download or build each of `parts` into the cache folder; raises `ToolchainError`."""
    cache, progress, chosen = Cache(), Progress(), tuple(parts)
    # Report all missing programs together, before a build that takes minutes.
    needed = tuple(_needed_programs(chosen, cache, progress))
    machine.require_programs(needed)
    if "kafka" in chosen:
        ensure_class_data(kafka.ensure_kafka(cache, progress), cache, progress)
    if "spark" in chosen:
        spark.ensure_spark_jars(cache, progress)
        ensure_spark_classes(cache, progress)
    if "streams-library" in chosen:
        streams_library.ensure_streams_library(cache, progress)
        kafka.ensure_kafka_streams(cache, progress)
    if "pulumi" in chosen:
        pulumi_cli.ensure_pulumi(cache, progress, is_built=machine.GO in needed)


def shell_exports() -> tuple[str, ...]:
    """Return the `export` lines that a shell needs to run `pulumi`.

    If the user's own CLI is used, only the Kafka plugin may be missing: Pulumi also finds it on PATH.

    Raises:
        ToolchainError: Pulumi is not in the cache and can be neither downloaded nor built, or its home cannot
            be written.
    """
    pulumi = pulumi_cli.ensure_pulumi()
    if not pulumi.is_users:
        _prepare_home(pulumi)
    return tuple(f"export {name}={shlex.quote(value)}" for name, value in _missing_variables(pulumi).items())


def needs_exports() -> bool:
    """Return whether a shell needs `shell_exports` to run `pulumi`; raises `ToolchainError` as they do.

    The Pulumi home is not written.
    """
    return bool(_missing_variables(pulumi_cli.ensure_pulumi()))


def _missing_variables(pulumi: pulumi_cli.PulumiToolchain) -> Mapping[str, str]:
    """Return the variables of a shell that runs `pulumi`, without those that are set already."""
    if pulumi.is_users:
        variables: Mapping[str, str] = {} if kafka_plugin.is_visible() else {"PATH": _with_plugin(pulumi)}
    else:
        variables = pulumi.variables(home=pulumi_cli.own_login_home())
    return {name: value for name, value in variables.items() if os.environ.get(name) != value}


def _prepare_home(pulumi: pulumi_cli.PulumiToolchain) -> None:
    home = pulumi_cli.own_login_home()
    try:
        pulumi.environment(home=home)
    except OSError as error:
        raise ToolchainError(
            f"The folder {home} cannot be written: {error.strerror}.\n"
            "  Set XDG_STATE_HOME to a folder that this user can write."
        ) from None


def _with_plugin(pulumi: pulumi_cli.PulumiToolchain) -> str:
    return os.pathsep.join((str(kafka_plugin.plugin_folder(pulumi.home)), os.environ.get("PATH", os.defpath)))


def _needed_programs(parts: tuple[str, ...], cache: Cache, progress: Progress) -> Iterator[machine.Program]:
    if "kafka" in parts:
        yield from kafka.needed_programs(cache)
    if "spark" in parts:
        yield from spark.needed_programs(cache)
    if "streams-library" in parts:
        yield from streams_library.needed_programs(cache)
        yield from kafka.needed_streams_programs(cache)
    if "pulumi" in parts:
        yield from pulumi_cli.needed_programs(cache, progress)
