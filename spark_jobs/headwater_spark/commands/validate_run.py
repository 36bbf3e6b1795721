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
    from headwater_spark.driver.preflight import check_runnable, class_not_loaded  # noqa: PLC0415
    from headwater_spark.driver.threads.uncaught_exceptions import load_handler  # noqa: PLC0415
    from headwater_spark.engine.program.classes import load_class, named_classes  # noqa: PLC0415

    application = document.application
    folder = Path(application.at.file).parent
    try:
        runnable = check_runnable(document, folder)
    except ProblemsError as error:
        yield from error.problems
        return
    for name, user, location in named_classes(runnable.nodes, application):
        try:
            load_class(name)
        except Exception as error:  # noqa: BLE001 - importing a user's module may raise anything
            failure = f"{type(error).__name__}: {error}"
            yield class_not_loaded(application.id, name, user, location, failure)
    try:
        load_handler(application)
    except ProblemsError as error:
        yield from error.problems
