"""`python -m headwater.toolchain`: download or build, ahead of time, what the demo and the tests run."""

import sys

import click

from headwater.toolchain import machine
from headwater.toolchain.commands import ToolchainError
from headwater.toolchain.preparation import PARTS, prepare_parts, shell_exports


@click.command()
@click.argument("part", type=click.Choice((*PARTS, "all", "doctor", "env")), default="all")
@click.option("--without", multiple=True, type=click.Choice(PARTS), help="A part that is not prepared.")
def main(part: str, without: tuple[str, ...]) -> None:
    """Download or build PART into the cache folder.

    `doctor` lists the required programs and their versions on this machine. `env` prints the variables that
    put the Pulumi CLI of the cache on the PATH of a shell: eval "$(python -m headwater.toolchain env)"
    """
    try:
        if part == "doctor":
            sys.exit(0 if doctor() else 1)
        elif part == "env":
            for line in shell_exports():
                click.echo(line)
        else:
            chosen = PARTS if part == "all" else (part,)
            prepare_parts(each for each in chosen if each not in without)
    except ToolchainError as error:
        click.echo(str(error), err=True)
        sys.exit(1)


def doctor() -> bool:
    """Print each required program, found or missing; return whether all are found."""
    findings = [
        machine.inspect_program(program)
        for program in (machine.JAVA, machine.MAVEN, machine.GO, machine.MAKE)
    ]
    for finding in findings:
        click.echo(finding.describe())
    return all(finding.sufficient for finding in findings)


if __name__ == "__main__":
    main()
