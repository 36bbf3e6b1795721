"""Download or build programs ahead of time, and the variables that put them on the PATH of a shell."""

import os
import shlex
from collections.abc import Iterable, Iterator

from toolchain import kafka, machine, pulumi_cli, spark
from toolchain.broker.class_data import ensure_class_data
from toolchain.cache import Cache
from toolchain.progress import Progress

PARTS = ("kafka", "spark", "pulumi")


def prepare(parts: Iterable[str]) -> None:
    """Download or build each of `parts` into the cache folder; raises `ToolchainError`."""
    cache, progress, chosen = Cache(), Progress(), tuple(parts)
    # Report all missing programs together, before a build that takes minutes.
    machine.require(_needed_programs(chosen, cache, progress))
    if "kafka" in chosen:
        ensure_class_data(kafka.ensure_kafka(cache, progress), cache, progress)
    if "spark" in chosen:
        spark.ensure_spark_jars(cache, progress)
    if "pulumi" in chosen:
        pulumi_cli.ensure_pulumi(cache, progress)


def shell_exports() -> tuple[str, ...]:
    """Return the `export` lines that a shell needs to run `pulumi`: none if the user's own CLI is used.

    Raises:
        ToolchainError: Pulumi is not in the cache and can be neither downloaded nor built.
    """
    pulumi = pulumi_cli.ensure_pulumi()
    if pulumi.is_users:
        return ()
    variables = pulumi.environment().items()
    return tuple(
        f"export {name}={shlex.quote(value)}" for name, value in variables if os.environ.get(name) != value
    )


def _needed_programs(parts: tuple[str, ...], cache: Cache, progress: Progress) -> Iterator[machine.Program]:
    if "kafka" in parts:
        yield from kafka.needed_programs(cache)
    if "spark" in parts:
        yield from spark.needed_programs(cache)
    if "pulumi" in parts:
        yield from pulumi_cli.needed_programs(cache, progress)
