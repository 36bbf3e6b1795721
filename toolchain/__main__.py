"""`python -m toolchain`: download or build, ahead of time, what the demo and the tests run."""

import os
import shlex
import sys

import click

from toolchain import kafka, machine, pulumi_cli, spark
from toolchain.broker.class_data import ensure_class_data
from toolchain.cache import Cache
from toolchain.errors import ToolchainError
from toolchain.progress import Progress

_PARTS = ("kafka", "spark", "pulumi")


@click.command()
@click.argument("part", type=click.Choice((*_PARTS, "all", "doctor", "env")), default="all")
def main(part: str) -> None:
    """Download or build PART into the cache folder.

    `doctor` lists the required programs and their versions on this machine. `env` prints the variables that
    put the Pulumi CLI of the cache on the PATH of a shell: eval "$(python -m toolchain env)"
    """
    try:
        if part == "doctor":
            sys.exit(0 if doctor() else 1)
        elif part == "env":
            environment()
        else:
            ensure(_PARTS if part == "all" else (part,))
    except ToolchainError as error:
        click.echo(str(error), err=True)
        sys.exit(1)


def ensure(parts: tuple[str, ...]) -> None:
    cache, progress = Cache(), Progress()
    modules = {"kafka": kafka, "spark": spark, "pulumi": pulumi_cli}
    # Report all missing programs together, before a build that takes minutes.
    machine.require(program for part in parts for program in modules[part].needed_programs(cache))
    if "kafka" in parts:
        ensure_class_data(kafka.ensure_kafka(cache, progress), cache, progress)
    if "spark" in parts:
        spark.ensure_spark_jars(cache, progress)
    if "pulumi" in parts:
        pulumi_cli.ensure_pulumi(cache, progress)


def doctor() -> bool:
    """Print each required program, found or missing; return whether all are found."""
    findings = [
        machine.inspect(program) for program in (machine.JAVA, machine.MAVEN, machine.GO, machine.MAKE)
    ]
    for finding in findings:
        click.echo(finding.describe())
    return all(finding.sufficient for finding in findings)


def environment() -> None:
    """Print the variables that a shell needs to run `pulumi`: none if the user's own CLI is used."""
    pulumi = pulumi_cli.ensure_pulumi()
    if pulumi.is_users:
        return
    for name, value in pulumi.environment().items():
        if os.environ.get(name) != value:
            click.echo(f"export {name}={shlex.quote(value)}")


if __name__ == "__main__":
    main()
