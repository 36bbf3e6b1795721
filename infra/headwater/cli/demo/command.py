"""The `headwater demo` command."""

import tempfile
from pathlib import Path

import click
from rich.console import Console

from headwater.cli.console import ExitCode
from headwater.cli.demo.environment import Jars
from headwater.cli.demo.run import run_demo
from headwater.toolchain import ToolchainError, ensure_kafka, ensure_pulumi, ensure_spark_jars
from headwater.toolchain.kafka_streams import ensure_kafka_streams
from headwater.toolchain.streams_library import ensure_streams_library

_WIDTH_OF_FILES = 120


@click.command()
@click.option(
    "--keep",
    type=click.Path(file_okay=False, path_type=Path),
    help="Run in this new folder and keep it, for inspection.",
)
@click.pass_context
def demo(context: click.Context, keep: Path | None) -> None:
    """Demonstrate Headwater on a real Kafka broker.

    Starts its own broker, runs the real Pulumi engine on the three example documents, changes and deletes
    topics, runs one of the topologies on Spark, runs a Kafka Streams application with and without the
    library, shows the results, and stops everything. Takes one to three minutes; the first run on a machine
    also downloads or builds the tools.

    \b
    Examples:
      headwater demo
      headwater demo --keep /tmp/shop
    """
    console = Console(width=None if Console().is_terminal else _WIDTH_OF_FILES)
    try:
        kafka, pulumi = ensure_kafka(), ensure_pulumi()
        spark = tuple(map(str, ensure_spark_jars()))
        jars = Jars(spark, (ensure_streams_library(), ensure_kafka_streams() / "*"))
        if keep is not None:
            keep.mkdir(parents=True)
            is_expected = run_demo(keep.absolute(), kafka, pulumi, jars, console)
        else:
            with tempfile.TemporaryDirectory(prefix="headwater-demo-") as folder:
                is_expected = run_demo(Path(folder), kafka, pulumi, jars, console)
    except ToolchainError as error:
        raise click.ClickException(str(error)) from error
    except FileExistsError:
        raise click.UsageError(f"{keep} exists. Choose a folder that does not exist.") from None
    context.exit(ExitCode.DONE if is_expected else ExitCode.PROBLEMS)
