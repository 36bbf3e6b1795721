"""Reshards in jobs of Spark, on a broker: as one process does it, and with processes that are killed."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

import reshard_main
from headwater.cli.main import main
from headwater.kafka import Connection
from headwater.model.problems import ProblemCode, ProblemsError
from headwater.spec import load_text
from headwater.toolchain.broker.local import LocalBroker
from headwater_spark.driver.processor_move.entry_copy import Report, report_no_progress
from headwater_spark.driver.reshard import share_tasks, spark_job
from headwater_spark.driver.reshard.entry_move import Share
from headwater_spark.driver.reshard.plan import Reshard
from headwater_spark.driver.reshard.share_tasks import Answer, Pass
from headwater_spark.driver.reshard.spark_job import SparkSettings, passes_on
from headwater_spark.driver.reshard.spark_passes import RunJob, SparkPasses
from headwater_spark.driver.reshard.start import ReshardOptions, reshard_application
from tests.runtime.driver.dying_cluster import die_after
from tests.runtime.driver.memory_move import KilledError
from tests.runtime.reshard.stopped_application import StoppedApplication
from tests.runtime.spark.kafka_topics import Topics

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]
Create = Callable[[], StoppedApplication]


@pytest.fixture
def create(kafka: LocalBroker, unique: Callable[[str], str]) -> Create:
    def created() -> StoppedApplication:
        app = StoppedApplication(kafka.bootstrap_servers, Topics(kafka.bootstrap_servers), unique("jobs"))
        app.create()
        return app

    return created


@contextmanager
def _passes(
    spark: SparkSession,
    tasks: int,
    changed: Callable[[RunJob], RunJob],
    *opened: Any,  # noqa: ANN401
) -> Iterator[SparkPasses]:
    reshard, connection, report = opened
    run = changed(spark_job.job_runner(spark.sparkContext, reshard.application, report))
    yield SparkPasses(connection, reshard.application, tasks, run)


def _reshard(
    app: StoppedApplication,
    spark: SparkSession | None = None,
    tasks: int = 3,
    changed: Callable[[RunJob], RunJob] = lambda run: run,
    report: Report = report_no_progress,
) -> None:
    (document,) = load_text(app.text(), "app.yaml").documents
    options = ReshardOptions(
        partitions={app.source: 5},
        open_executor=None if spark is None else partial(_passes, spark, tasks, changed),
    )
    reshard_application(document, Connection(bootstrap_servers=(app.servers,)), options, report)


def _records(app: StoppedApplication, store: str) -> Mapping[tuple[int, bytes], tuple[bytes, int]]:
    """Return (partition, key) → value and timestamp of the entries of a store."""
    found: dict[tuple[int, bytes], tuple[bytes, int]] = {}
    for _, partition, _, timestamp, key, value, _ in app.topics.get(f"{app.id}-{store}-changelog"):
        found.pop((partition, key or b""), None)
        if value is not None:
            found[partition, key or b""] = value, timestamp
    return found


def test_jobs_move_the_same_entries_as_one_process(spark: SparkSession, create: Create) -> None:
    alone, app = create(), create()
    stores = ("kept", "totals")
    before, waiting = {store: app.entries(store) for store in stores}, app.unprocessed()
    steps: list[tuple[str, int, int]] = []
    _reshard(app, spark, tasks=2, report=lambda *step: steps.append(step))
    _reshard(alone)
    app.check(before, waiting)
    for store in stores:
        assert _records(app, store) == _records(alone, store)
    topic = app.internal["kept-changelog"]
    assert (f"copying entries of {topic}, tasks", 0, 2) in steps


@pytest.mark.parametrize("has_begun", [False, True])
def test_jobs_that_fail_again_and_again_are_no_problem_of_the_brokers(
    spark: SparkSession, create: Create, *, has_begun: bool
) -> None:
    app = create()

    def changed(run: RunJob) -> RunJob:
        def fail(what: str, request: Pass, shares: Sequence[int]) -> Mapping[int, Answer]:
            if has_begun and isinstance(request, share_tasks.CheckPass):
                return run(what, request, shares)
            return dict.fromkeys(shares, share_tasks.Failure("a job of Spark failed: No module named 'x'"))

        return fail

    with pytest.raises(ProblemsError) as raised:
        _reshard(app, spark, changed=changed)
    [problem] = raised.value.problems
    assert problem.code is (ProblemCode.RESHARD_INCOMPLETE if has_begun else ProblemCode.NOT_RUNNABLE)
    assert "No module named 'x'" in problem.summary
    assert "brokers" not in f"{problem.expected} {problem.fix}"
    assert "Without `--spark`, this machine moves the state." in problem.fix


def test_a_killed_driver_is_continued_with_other_writers(spark: SparkSession, create: Create) -> None:
    """The second execution has more tasks than the first one; the last one has no Spark."""
    app = create()
    before, waiting = {store: app.entries(store) for store in ("kept", "totals")}, app.unprocessed()

    def killed_in(text: str) -> Callable[[RunJob], RunJob]:
        """Kill the driver when half of the tasks of a job are complete."""

        def changed(run: RunJob) -> RunJob:
            def run_half(what: str, request: Pass, shares: Sequence[int]) -> Mapping[int, Answer]:
                if not what.startswith(text):
                    return run(what, request, shares)
                run(what, request, shares[: (len(shares) + 1) // 2])
                raise KilledError

            return run_half

        return changed

    for tasks, text in ((2, "copying"), (5, "deleting copied entries")):
        with pytest.raises(KilledError):
            _reshard(app, spark, tasks, killed_in(text))
    _reshard(app)
    app.check(before, waiting)


@attrs.frozen
class _DyingPass:
    """A pass whose task for one share is killed after its first transaction, the first time."""

    request: Pass
    mark: Path

    @property
    def writes(self) -> bool:
        return self.request.writes

    @property
    def shares(self) -> int:
        return self.request.shares

    def execute(self, share: Share) -> object:
        if share.number == 0 and not self.mark.exists():
            self.mark.touch()
            die_after(1, share_tasks)
        return self.request.execute(share)


@pytest.mark.soak
def test_a_python_worker_that_is_killed_is_replaced(
    spark: SparkSession, create: Create, tmp_path: Path
) -> None:
    app, jobs = create(), list[tuple[str, int]]()
    before, waiting = {store: app.entries(store) for store in ("kept", "totals")}, app.unprocessed()

    def changed(run: RunJob) -> RunJob:
        def run_dying(what: str, request: Pass, shares: Sequence[int]) -> Mapping[int, Answer]:
            jobs.append((what, len(shares)))
            if not what.startswith("copying"):
                return run(what, request, shares)
            dying: Pass = _DyingPass(request, tmp_path / what.replace("/", " "))  # type: ignore[assignment]
            return run(what, dying, shares)

        return run_dying

    _reshard(app, spark, changed=changed)
    app.check(before, waiting)
    topic = app.internal["kept-changelog"]
    assert [each for each in jobs if each[0] == f"copying entries of {topic}"] == [
        (f"copying entries of {topic}", 2)
    ] * 2
    assert [what for what, _ in jobs].count(f"deleting an interrupted copy of {topic}") == 2


@contextmanager
def _on_session(
    spark: SparkSession,
    settings: SparkSettings,
    reshard: Reshard,
    connection: Connection,
    report: Report,
) -> Iterator[SparkPasses]:
    """What `open_spark` does, on a session that exists."""
    yield passes_on(spark, reshard, connection, report, settings.tasks)


@pytest.mark.parametrize("is_submitted", [False, pytest.param(True, marks=pytest.mark.soak)])
def test_the_command_and_the_program_for_spark_submit(
    spark: SparkSession,
    create: Create,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    is_submitted: bool,  # noqa: FBT001
) -> None:
    app, masters = create(), list[str | None]()

    def opened(settings: SparkSettings, *others: object) -> object:
        masters.append(settings.master)
        return _on_session(spark, settings, *others)  # type: ignore[arg-type]

    monkeypatch.setattr(spark_job, "open_spark", opened)
    file = tmp_path / "orders.yaml"
    file.write_text(app.text())
    words = [str(file), f"--partitions={app.source}=5", f"--bootstrap-server={app.servers}"]
    if is_submitted:
        assert reshard_main.main(words) == 0
        assert masters == [None]
    else:
        done = CliRunner().invoke(main, ["reshard", *words, "--spark", "--tasks", "2"])
        assert done.exit_code == 0, done.output
        assert "the state has moved" in done.output
        assert masters == ["local[*,4]"]
    assert app.topics.partitions(app.source) == 5
