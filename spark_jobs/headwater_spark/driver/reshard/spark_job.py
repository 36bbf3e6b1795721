"""The Spark session of a reshard, and its jobs."""

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from uuid import uuid4

import attrs
from pyspark import SparkContext, TaskContext
from pyspark.sql import SparkSession

from headwater.kafka import Connection
from headwater.model.problems import ProblemsError
from headwater_spark.driver.captured_failures import failure_reason
from headwater_spark.driver.processor_move.entry_copy import Report
from headwater_spark.driver.reshard import problems
from headwater_spark.driver.reshard.plan import MOST_WRITERS, Reshard
from headwater_spark.driver.reshard.share_tasks import Answer, CheckPass, Failure, Pass, Refusal, run_share
from headwater_spark.driver.reshard.spark_passes import RunJob, SparkPasses
from headwater_spark.driver.spark_session.jvm import JvmStart
from headwater_spark.driver.spark_session.requirements import (
    RESHARD,
    is_local_master,
    session_problems,
    start_problems,
)
from headwater_spark.driver.spark_session.session import (
    SessionSettings,
    launch_jvm,
    ship_packages,
    start_session,
)

_POLL_SECONDS = 0.5
_TASKS_PER_CORE = 2
_MOST_TASKS = 100
"""So many tasks have a pass on a cluster by default: its number of cores is not known at the start."""
_FAILURES, _MOST_FAILURES = "spark.task.maxFailures", "8"
"""A job that Spark gives up loses the results of all of its tasks, so it is more than the default of Spark.

`run_share` limits how often a share is executed. But if an executor cannot import Headwater's dependencies,
its tasks fail before that: then the number limits how long it takes until the command says so.
"""


@attrs.frozen(kw_only=True)
class SparkSettings:
    """Where a reshard runs on Spark. `master` None: as spark-submit says. `tasks` None: `useful_tasks`."""

    master: str | None = None
    conf: Mapping[str, str] = attrs.field(factory=dict)
    java_options: tuple[str, ...] = ()
    tasks: int | None = None


@contextmanager
def open_spark(
    settings: SparkSettings, reshard: Reshard, connection: Connection, report: Report
) -> Iterator[SparkPasses]:
    """Start Spark for the passes of a reshard, and stop it at the end of the block.

    Raises `ProblemsError` if Spark does not start, ends at once, or has settings that a reshard cannot run
    with.
    """
    report("starting Spark", 0, 0)
    spark = _started_session(reshard.application, settings)
    try:
        yield _prepared_passes(spark, settings, reshard, connection, report)
    finally:
        with suppress(Exception):  # the JVM may have ended
            spark.stop()


def _prepared_passes(
    spark: SparkSession, settings: SparkSettings, reshard: Reshard, connection: Connection, report: Report
) -> SparkPasses:
    """Check the session, and send our packages to its executors; raises `ProblemsError`."""
    application = reshard.application
    try:
        wrong = session_problems(
            application,
            master=str(spark.sparkContext.master),
            conf=dict(spark.sparkContext.getConf().getAll()),
            command=RESHARD,
        )
        if not wrong:
            ship_packages(spark)
            return passes_on(spark, reshard, connection, report, settings.tasks)
    except Exception as error:  # of Java, its gateway or this disk: all that is known is a text
        failed = (
            problems.spark_ended_at_start if _has_ended(spark.sparkContext) else problems.spark_not_started
        )
        raise ProblemsError([failed(application, failure_reason(error))]) from error
    raise ProblemsError(wrong)


def passes_on(
    spark: SparkSession, reshard: Reshard, connection: Connection, report: Report, tasks: int | None = None
) -> SparkPasses:
    """Return the passes of a reshard on a session that runs."""
    context = spark.sparkContext
    number = tasks or useful_tasks(context, reshard)
    run_job = job_runner(context, reshard.application, report)
    return SparkPasses(connection, reshard.application, number, run_job, report)


def useful_tasks(context: SparkContext, reshard: Reshard) -> int:
    """Return how many tasks a pass has: as many as partitions, within limits."""
    partitions = max((each.after for each in reshard.transfers), default=1)
    is_local = is_local_master(str(context.master))
    most = context.defaultParallelism * _TASKS_PER_CORE if is_local else _MOST_TASKS
    return min(partitions, most, MOST_WRITERS)


def job_runner(context: SparkContext, application: str, report: Report) -> RunJob:
    """Return a function that executes a pass as a job. If the session has ended, no share can be repeated."""

    def run(what: str, request: Pass, shares: Sequence[int]) -> Mapping[int, Answer]:
        group = f"headwater-{uuid4()}"
        try:
            context.setJobGroup(group, f"{application}: {what}")
            with _progress_reported(context, group, f"{what}, tasks", len(shares), report):
                numbers = context.parallelize(list(shares), len(shares))
                return dict(numbers.mapPartitions(partial(_run_task, request)).collect())
        except Exception as error:  # noqa: BLE001 - of Java or Python: all that is known is a text
            reason = failure_reason(error)
            answer: Answer = Failure(f"a job of Spark failed: {reason}")
            if _has_ended(context):
                has_begun = not isinstance(request, CheckPass)
                answer = Refusal((problems.spark_ended(application, reason, has_begun=has_begun),))
            return dict.fromkeys(shares, answer)

    return run


def _has_ended(context: SparkContext) -> bool:
    """Return whether the session was stopped, or its JVM has ended: then this property cannot be read."""
    try:
        int(context.defaultParallelism)
    except Exception:  # noqa: BLE001 - of Java, its gateway or Python
        return True
    return False


def _run_task(request: Pass, shares: Iterator[int]) -> Iterator[tuple[int, Answer]]:
    context = TaskContext.get()
    attempt = 0 if context is None else context.attemptNumber()
    for share in shares:
        yield share, run_share(request, share, attempt)


@contextmanager
def _progress_reported(
    context: SparkContext, group: str, what: str, tasks: int, report: Report
) -> Iterator[None]:
    """Report how many tasks of a job are complete, while the block runs."""
    ended = threading.Event()
    tracker = context.statusTracker()

    def completed() -> int:
        jobs = [tracker.getJobInfo(each) for each in tracker.getJobIdsForGroup(group)]
        stages = [tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds]
        return sum(stage.numCompletedTasks for stage in stages if stage is not None)

    def watch() -> None:
        with suppress(Exception):  # the JVM has ended: the job fails, too
            while not ended.wait(_POLL_SECONDS):
                report(what, completed(), tasks)

    report(what, 0, tasks)
    watcher = threading.Thread(target=watch, name="reshard-progress", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()


def _started_session(application: str, settings: SparkSettings) -> SparkSession:
    found = start_problems(
        application, master=settings.master, conf=settings.conf, environment=os.environ, command=RESHARD
    )
    if found:
        raise ProblemsError(found)
    session = SessionSettings(
        application=f"headwater reshard {application}",
        master=settings.master,
        java_options=settings.java_options,
        conf={_FAILURES: _MOST_FAILURES, **settings.conf},
    )
    try:
        with JvmStart(partial(launch_jvm, session)) as jvm:  # it ends the JVM if a signal arrives meanwhile
            jvm.wait()
        return start_session(session)
    except Exception as error:  # of Java, its gateway or the master: all that is known is a text
        raise ProblemsError([problems.spark_not_started(application, failure_reason(error))]) from error
