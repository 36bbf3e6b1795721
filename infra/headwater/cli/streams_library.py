"""`headwater streams-library`: the jar that Kafka Streams applications put on their class path."""

import shutil
from pathlib import Path

import click

from headwater.toolchain import ToolchainError
from headwater.toolchain.streams_library import ensure_streams_library


@click.command("streams-library")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
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
    try:
        jar = ensure_streams_library()
    except ToolchainError as error:
        raise click.ClickException(str(error)) from None
    output.mkdir(parents=True, exist_ok=True)
    shutil.copy2(jar, output)
    click.echo(output / jar.name)
