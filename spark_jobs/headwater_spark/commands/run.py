"""`headwater run`: run the application of a document on Spark; and what `headwater validate --run` checks."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headwater.model.problems import Problem, ProblemsError
from headwater.model.topology import TopologyDocument
from headwater.toolchain import ToolchainError, ensure_spark_jars, fetched_spark_jars, spark_java_options
from headwater_spark.commands.console import conf_option, parse_conf
from headwater_spark.driver.run import runtime_installed
from headwater_spark.driver.run.command import run_application, runtime_options

if TYPE_CHECKING:
    from headwater_spark.driver.metrics import Instruments

_WITH_JARS = ("spark.jars", "spark.jars.packages")
_INSTALLED = "spark-sql-kafka-0-10_*.jar"


@click.command()
@runtime_options(log_format="console", master="local[*]")
@click.option(
    "--jars",
    multiple=True,
    metavar="JAR,...",
    help="Spark's Kafka connector; default: the jars of `headwater toolchain`, downloaded if necessary.",
)
@conf_option
@click.option(
    "--web-ui",
    is_flag=True,
    help="Serve Spark's web UI, with a local master at the loopback interface. It has no access control.",
)
@click.option("--live", is_flag=True, help="Show a table that is kept up to date instead of a log.")
@click.pass_context
def run(
    context: click.Context,
    /,
    *,
    jars: Sequence[str],
    conf: Sequence[str],
    web_ui: bool,
    live: bool,
    **options: object,
) -> None:
    """Run the application of a document on Spark.

    The application runs until it is stopped. Each sub-topology is a streaming query with a checkpoint of its
    own. If internal topics are missing or wrong, the application does not start (internal.topics.setup:
    manual), or creates and reconfigures them (automatic). Needs the extra `headwater[spark]` and Java. Exit
    code 0: it was stopped, or with --until-idle all records are processed; 1: it did not start, or stopped
    with an error; 75: Spark's JVM has ended, or it did not stop in time.

    \b
    Examples:
      headwater run orders.yaml --bootstrap-server localhost:9092 --live
      headwater run orders.yaml --command-config client.properties --master spark://host:7077
    """
    settings = parse_conf(conf)
    given = tuple(_parse_jar(path) for each in jars for path in each.split(","))
    if not given and settings.keys().isdisjoint(_WITH_JARS):
        given = _find_connector()
    more: dict[str, Any] = {"jars": given, "java_options": spark_java_options(), "conf": settings}
    more["web_ui"] = web_ui
    if live:
        more |= {"watch": _show_live}
        if options["log_level"] == "info":
            more["log_level"] = "error"
    context.exit(run_application(options, **more))


def _find_connector() -> tuple[str, ...]:
    """Return the jars of the connector, compared with the hashes of this version; none if Spark has them."""
    spark = find_spec("pyspark")
    homes = (os.environ.get("SPARK_HOME"), *(spark.submodule_search_locations or () if spark else ()))
    if any(home and any(Path(home, "jars").glob(_INSTALLED)) for home in homes):
        return ()
    try:
        return tuple(map(str, fetched_spark_jars() or ensure_spark_jars()))
    except ToolchainError as error:
        raise click.ClickException(
            f"{error}\n  Or name the jars of Spark's Kafka connector with --jars."
        ) from None


def _parse_jar(path: str) -> str:
    if path.lower().startswith("http://"):
        raise click.BadParameter(f"{path!r} is not an https:// address.", param_hint="--jars")
    if "://" not in path and not Path(path).is_file():
        raise click.BadParameter(f"There is no file {path!r}.", param_hint="--jars")
    return path


@contextmanager
def _show_live(instruments: "Instruments") -> Iterator[None]:
    from headwater.cli.live_table import live_table  # noqa: PLC0415 - only for --live

    with live_table(instruments.status):
        yield


def run_problems(documents: Sequence[TopologyDocument]) -> tuple[Problem, ...]:
    """Return what would prevent a start of the applications, without a cluster and without Spark's JVM.

    Raises:
        click.ClickException: The extra `headwater[spark]` is not installed.
    """
    with runtime_installed():
        return tuple(problem for document in documents for problem in _find_problems(document))


def _find_problems(document: TopologyDocument) -> Iterator[Problem]:
    # Imports PySpark.
    from headwater_spark.driver.preflight import (  # noqa: PLC0415
        check_runnable,
        class_failures,
        class_problems,
    )
    from headwater_spark.driver.threads.uncaught_exceptions import load_handler  # noqa: PLC0415

    application = document.application
    folder = Path(application.at.file).parent
    try:
        runnable = check_runnable(document, folder)
    except ProblemsError as error:
        yield from error.problems
        return
    yield from class_problems(runnable, class_failures)
    try:
        load_handler(application)
    except ProblemsError as error:
        yield from error.problems
