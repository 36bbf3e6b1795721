"""`headwater run`: the application of a document, on Spark."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING

import click

from infra.cli import cluster
from infra.cli.console import ProblemsExit
from infra.cli.exit_codes import ExitCode
from infra.cli.options import application_cluster_options
from infra.model.problems import ProblemsError
from infra.observe import Connection
from toolchain import fetched_spark_jars

if TYPE_CHECKING:
    from spark_jobs.runtime.driver.metrics import Instruments

_CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"
_FORMATS = ("console", "json")
_LEVELS = ("debug", "info", "warning", "error")
_REFRESH_SECONDS = 0.5


@click.command()
@click.argument("document", type=click.Path(exists=True, path_type=Path))
@application_cluster_options
@click.option("--master", default="local[*]", show_default=True, help="Where Spark runs.")
@click.option(
    "--jars",
    multiple=True,
    metavar="JAR,...",
    help="Spark's Kafka connector; else what `make toolchain` fetched, else Spark fetches it by Ivy.",
)
@click.option("--conf", multiple=True, metavar="KEY=VALUE", help="A setting of Spark; may be repeated.")
@click.option("--checkpoint", metavar="DIR", help="A folder that driver and executors share; or a URL.")
@click.option(
    "--state-dir", type=click.Path(file_okay=False, path_type=Path), help="Local state; else state.dir."
)
@click.option("--max-records", type=click.IntRange(min=1), help="Records in a micro-batch, at most.")
@click.option(
    "--restarts",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    help="How often in a row a query that failed is started again.",
)
@click.option("--http", metavar="HOST:PORT", help="Serve metrics, health and status here.")
@click.option("--live", is_flag=True, help="Show what happens as a table instead of a log.")
@click.option("--log-format", type=click.Choice(_FORMATS), default="console", show_default=True)
@click.option("--log-level", type=click.Choice(_LEVELS), default="info", show_default=True)
@click.option("--until-idle", is_flag=True, help="End when everything that is there has been processed.")
@click.pass_context
def run(
    context: click.Context,
    document: Path,
    *,
    bootstrap_server: str | None,
    command_config: Path | None,
    master: str,
    jars: Sequence[str],
    conf: Sequence[str],
    checkpoint: str | None,
    state_dir: Path | None,
    max_records: int | None,
    restarts: int,
    http: str | None,
    live: bool,
    log_format: str,
    log_level: str,
    until_idle: bool,
) -> None:
    """Run the application of a document on Spark.

    It runs until it is stopped. Each sub-topology is a streaming query with a checkpoint of its own. Internal
    topics that are missing or wrong keep it from starting (internal.topics.setup: manual), or are set up
    (automatic). Needs the extra `headwater[spark]` and Java. Exit code 1: it could not start, or stopped with
    an error.

    \b
    Examples:
      headwater run orders.yaml --bootstrap-server localhost:9092 --live
      headwater run orders.yaml --command-config client.properties --master spark://host:7077
    """
    try:
        from spark_jobs.runtime.driver.sources import RECORDS_AT_ONCE  # noqa: PLC0415 - loads PySpark
        from spark_jobs.runtime.driver.start import RunOptions, start  # noqa: PLC0415 - likewise
    except ImportError as error:
        raise click.ClickException(
            f"{error.name} is not installed. The runtime is an extra: pip install 'headwater[spark]'"
        ) from None
    settings = dict(_setting(each) for each in conf)
    given = tuple(_jar(path) for each in jars for path in each.split(","))
    if not given and settings.keys().isdisjoint(("spark.jars", "spark.jars.packages")):
        given = tuple(map(str, fetched_spark_jars()))
        settings |= {} if given else {"spark.jars.packages": _CONNECTOR}
    if live:
        click.echo("Starting Spark; Ctrl-C ends it.", err=True)
    try:
        is_well = start(
            RunOptions(
                file=document,
                connection=cluster.connection(bootstrap_server, command_config)
                or Connection.from_environment(os.environ),
                master=master,
                jars=given,
                conf=settings,
                checkpoint=checkpoint,
                state_dir=state_dir,
                records_at_once=max_records or RECORDS_AT_ONCE,
                restarts=restarts,
                http=http,
                log_format="json" if log_format == "json" else "console",
                log_level="error" if live and log_level == "info" else log_level,
                until_idle=until_idle,
                **({"watch": _live} if live else {}),
            )
        )
    except ProblemsError as error:
        raise ProblemsExit(error) from None
    context.exit(ExitCode.DONE if is_well else ExitCode.PROBLEMS)


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise click.BadParameter(f"{text!r} is not of the form KEY=VALUE.", param_hint="--conf")
    return name, value


def _jar(path: str) -> str:
    if "://" not in path and not Path(path).is_file():
        raise click.BadParameter(f"There is no file {path!r}.", param_hint="--jars")
    return path


@contextmanager
def _live(instruments: "Instruments") -> Iterator[None]:
    """Keep a table up to date while the application runs."""
    from rich.console import Console  # noqa: PLC0415 - only for those who watch
    from rich.live import Live  # noqa: PLC0415 - likewise

    from infra.report.runtime_table import runtime_rich  # noqa: PLC0415 - likewise

    console = Console(highlight=False)
    ended = Event()
    with Live(console=console, auto_refresh=False, screen=False) as shown:

        def refresh() -> None:
            while not ended.wait(_REFRESH_SECONDS):
                shown.update(runtime_rich(instruments.status()), refresh=sys.stdout.isatty())
            shown.update(runtime_rich(instruments.status()), refresh=True)

        thread = Thread(target=refresh, name="live", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
