"""What `headwater validate --run` checks in addition: whether the runtime can execute the documents."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from headwater.model.problems import Problem, ProblemsError
from headwater.model.topology import TopologyDocument
from headwater_spark.driver.run.installed import runtime_installed


def run_problems(documents: Sequence[TopologyDocument]) -> tuple[Problem, ...]:
    """Return what would prevent a start of the applications, without a cluster and without Spark's JVM.

    Raises:
        click.ClickException: The extra `headwater[spark]` is not installed.
    """
    with runtime_installed():
        return tuple(problem for document in documents for problem in _problems(document))


def _problems(document: TopologyDocument) -> Iterator[Problem]:
    # Imports PySpark.
    from headwater_spark.driver.preflight import (  # noqa: PLC0415
        check_runnable,
        class_problems,
        load_failures,
    )
    from headwater_spark.driver.threads.uncaught_exceptions import load_handler  # noqa: PLC0415

    application = document.application
    folder = Path(application.at.file).parent
    try:
        runnable = check_runnable(document, folder)
    except ProblemsError as error:
        yield from error.problems
        return
    yield from class_problems(runnable, load_failures)
    try:
        load_handler(application)
    except ProblemsError as error:
        yield from error.problems
