"""Commands that download or build programs and jars: `toolchain` and `streams-library`."""

import shutil
from pathlib import Path

import click

from headwater.cli.console import print_line
from headwater.kafka.command_line import NamedPath
from headwater.toolchain.preparation import PARTS, needs_exports, prepare_parts, shell_exports
from headwater.toolchain.streams_library import ensure_streams_library

_IN_A_SHELL = 'To use Pulumi in this shell: eval "$(headwater toolchain env)"'


@click.command()
@click.argument("part", type=click.Choice((*PARTS, "all", "env")), default="all", metavar="[PART]")
def toolchain(part: str) -> None:
    """Download or build the Pulumi CLI, its Kafka plugin, Kafka, Spark's connector and the Java library.

    Only what is missing, once, into a cache folder: $HEADWATER_CACHE, by default ~/.cache/headwater. A
    `pulumi` on PATH is used if it fits. Otherwise its release is downloaded, if its hash is known
    (HEADWATER_PULUMI_SHA256), or built with Go (5 minutes). Maven downloads Kafka and the connector.

    PART is kafka, spark, streams-library, pulumi, all (default) or env. `env` prints the variables that put
    the downloaded or built Pulumi on the PATH of a shell, or only the Kafka plugin if your own `pulumi` does
    not have it. The library for Kafka Streams is built only if the wheel has no jar.

    \b
    Examples:
      headwater toolchain
      headwater toolchain pulumi
      eval "$(headwater toolchain env)"
    """
    if part == "env":
        for line in shell_exports():
            print_line(line)
        return
    prepare_parts(PARTS if part == "all" else (part,))
    print_line("Complete.")
    if part in ("pulumi", "all") and needs_exports():
        print_line(_IN_A_SHELL)


@click.command("streams-library")
@click.option(
    "-o",
    "--output",
    type=NamedPath(path_type=Path, file_okay=False),
    default=Path("libs"),
    show_default=True,
    help="The folder that gets the jar.",
)
def streams_library(output: Path) -> None:
    """Copy the library for Kafka Streams applications into a folder.

    With the jar on its class path and `default.client.supplier=io.headwater.streams.HeadwaterClientSupplier`,
    an application obeys KIP-698 and KIP-878. The jar is in the wheel; in a checkout, Maven builds it on first
    use.

    \b
    Examples:
      headwater streams-library
      headwater streams-library -o orders/libs/
    """
    jar = ensure_streams_library()
    try:
        output.mkdir(parents=True, exist_ok=True)
        shutil.copy2(jar, output)
    except OSError as error:
        raise click.ClickException(
            f"{output} cannot be written: {error.strerror}.\n  Choose another folder by --output."
        ) from None
    print_line(str(output / jar.name))
