"""Whether the classes that a document names are there where its tasks run."""

from collections.abc import Iterator

from pyspark.sql import SparkSession

from infra.model.problems import Location, Problem, ProblemCode, ProblemsError
from spark_jobs.runtime.driver.loading import Runnable
from spark_jobs.runtime.engine.program.classes import load_class, named_classes


def check_classes(spark: SparkSession, runnable: Runnable) -> None:
    """Load them on an executor, if there are any; raises `ProblemsError` with all that cannot be."""
    application = runnable.document.application
    wanted = tuple(named_classes(runnable.nodes, application))
    if not wanted:
        return
    names = tuple(dict.fromkeys(name for name, _, _ in wanted))
    spark.sparkContext.setJobDescription(f"{application.id}: classes of the document")
    faults = dict(spark.sparkContext.parallelize([names], 1).flatMap(_faults).collect())
    problems = [_not_there(application.id, *use, faults[use[0]]) for use in wanted if use[0] in faults]
    if problems:
        raise ProblemsError(problems)


def _faults(names: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for name in names:
        try:
            load_class(name)
        except Exception as error:  # noqa: BLE001 - a module of the user's may raise anything while it is imported
            yield name, f"{type(error).__name__}: {error}"


def _not_there(application: str, name: str, user: str, at: Location | None, fault: str) -> Problem:
    return Problem(
        code=ProblemCode.NOT_RUNNABLE,
        application=application,
        summary=f"The class {name} of {user} cannot be loaded.",
        node=user,
        expected="a class that Python finds where the tasks run",
        found=fault,
        why="The first record would fail, and every attempt after it.",
        fix="Correct the name, or bring the module there: by PYTHONPATH on this machine, on a cluster by "
        "--py-files of spark-submit or `--conf spark.submit.pyFiles=...`.",
        location=at,
    )
