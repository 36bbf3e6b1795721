"""The options of `headwater reshard --spark`, and sessions that a reshard does not run on."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka import KafkaException

import reshard_main
from headwater.cli.main import main
from headwater.kafka import Connection
from headwater.model.problems import ProblemCode, ProblemsError
from headwater.toolchain.broker.readiness import until
from headwater_spark.commands import console
from headwater_spark.commands.reshard import reshard
from headwater_spark.driver.processor_move.entry_copy import report_no_progress
from headwater_spark.driver.reshard import spark_job
from headwater_spark.driver.reshard.plan import MOST_WRITERS, Reshard
from headwater_spark.driver.reshard.spark_job import SparkSettings, job_runner, open_spark, useful_tasks
from headwater_spark.driver.reshard.spark_passes import SparkPasses
from headwater_spark.engine.scaling.transfers import Transfer
from tests.runtime.driver.memory_move import MemoryCluster, MemoryProducer
from tests.runtime.reshard.memory_reshard import OneRound
from tests.runtime.spark.processes import all_ended, descendants

_CONNECTION = Connection(bootstrap_servers=("localhost:1",))
_RESHARD = Reshard("app", (Transfer("t", "t", 3, 150),), (), {})
_OPENS_SPARK = """
from headwater.kafka import Connection
from headwater_spark.commands.console import interrupted_by_sigterm
from headwater_spark.driver.processor_move.entry_copy import report_no_progress
from headwater_spark.driver.reshard.plan import Reshard
from headwater_spark.driver.reshard.spark_job import SparkSettings, open_spark
connection = Connection(bootstrap_servers=("localhost:1",))
with interrupted_by_sigterm():
    settings, reshard = SparkSettings(master="local[1]"), Reshard("app", (), (), {})
    with open_spark(settings, reshard, connection, report_no_progress):
        pass
"""


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--master", "local[2]"], "--master requires --spark"),
        (["--conf", "spark.cores.max=2"], "--conf requires --spark"),
        (["--tasks", "2"], "--tasks requires --spark"),
        (["--spark", "--processes", "2"], "--processes cannot be combined with --spark"),
        (["--spark", "--tasks", "1001"], "1001 is not in the range"),
        (["--spark", "--conf", "spark.cores.max"], "is not of the form KEY=VALUE"),
        (["--spark", "--conf", "spark.submit.pyFiles=http://example.com/a.py"], "Use https://"),
        (
            ["--spark", "--jar", "app.jar", "--partitioner", "orders=com.acme.Region"],
            "executors do not run classes of Java",
        ),
    ],
)
def test_options_that_cannot_be_combined_are_refused(tmp_path: Path, options: list[str], text: str) -> None:
    file, jar = tmp_path / "orders.yaml", tmp_path / "app.jar"
    jar.touch()
    file.write_text(
        "application: {id: orders}\ntopology:\n- stream: {topic: orders}\n- to: {topic: copies}\n"
    )
    words = [str(jar) if each == "app.jar" else each for each in options]
    done = CliRunner().invoke(main, ["reshard", str(file), *words, "--bootstrap-server", "localhost:1"])
    assert done.exit_code == 64
    assert text in re.sub(r"\s+", " ", done.output)


def test_the_program_has_the_options_of_the_command_that_spark_submit_does_not_have() -> None:
    names = {each.name for each in reshard.params}
    assert {each.name for each in reshard_main.command.params} == names - {
        "on_spark",
        "master",
        "conf",
        "processes",
    }
    assert reshard_main.main(["--help"]) == 0
    assert reshard_main.main(["absent.yaml", "--master", "local[2]"]) == 64


@pytest.mark.spark
def test_sigterm_while_spark_starts_leaves_no_jvm_behind() -> None:
    """The JVM has a session of its own: no signal from a terminal or to a process group ends it."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("PYSPARK_GATEWAY")
    }
    command = [sys.executable, "-c", _OPENS_SPARK]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, env=environment) as process:
        found: list[int] = []
        try:
            assert until(lambda: bool(list(descendants(process.pid))) or process.poll() is not None, 120)
            found += descendants(process.pid)
            process.send_signal(signal.SIGTERM)
            assert process.wait(120) != 0
        finally:
            process.kill()
    assert found
    assert until(lambda: all_ended(found), 60)


def _refused(settings: SparkSettings) -> str:
    with (
        pytest.raises(ProblemsError) as raised,
        open_spark(settings, _RESHARD, _CONNECTION, report_no_progress),
    ):
        pass
    [problem] = raised.value.problems
    assert problem.code is ProblemCode.NOT_RUNNABLE
    assert "queries" not in problem.why
    assert "processed" not in problem.why
    return f"{problem.summary} {problem.found} {problem.why} {problem.fix}"


class _Session:
    """A session of Spark with these settings."""

    def __init__(self, **conf: str) -> None:
        pairs = [(name.replace("_", "."), value) for name, value in conf.items()]
        self.sparkContext = SimpleNamespace(
            master="local[3]", defaultParallelism=3, getConf=lambda: SimpleNamespace(getAll=lambda: pairs)
        )
        self.is_stopped = False

    def stop(self) -> None:
        self.is_stopped = True


def test_sessions_that_repeat_tasks_at_the_same_time_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_job, "launch_jvm", lambda _: None)
    session = _Session(spark_speculation="true")
    monkeypatch.setattr(spark_job, "start_session", lambda _: session)
    text = _refused(SparkSettings(master="local[3]"))
    assert "spark.speculation = true" in text
    assert "A copy moves the same entries" in text
    assert session.is_stopped


def test_a_jvm_that_ends_before_the_first_job_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    class _Ended(_Session):
        @property
        def sparkContext(self) -> Any:  # noqa: ANN401, N802 - as in PySpark
            return _EndedContext(has_ended=True)

        @sparkContext.setter
        def sparkContext(self, _: object) -> None: ...  # noqa: N802

    session = _Ended()
    monkeypatch.setattr(spark_job, "launch_jvm", lambda _: None)
    monkeypatch.setattr(spark_job, "start_session", lambda _: session)
    text = _refused(SparkSettings(master="local[3]"))
    assert "Spark has ended before it moved the state of app." in text
    assert "Run the command again. Without `--spark`, this machine moves the state." in text
    assert session.is_stopped


@pytest.mark.parametrize(("conf", "expected"), [({}, "8"), ({"spark.task.maxFailures": "6"}, "6")])
def test_spark_repeats_tasks_more_often_than_by_default(
    monkeypatch: pytest.MonkeyPatch, conf: dict[str, str], expected: str
) -> None:
    found: list[str] = []

    def start(settings: Any) -> _Session:  # noqa: ANN401 - same as in `_Session`
        found.append(settings.spark()["spark.task.maxFailures"])
        return _Session(spark_speculation="true")

    monkeypatch.setattr(spark_job, "launch_jvm", lambda _: None)
    monkeypatch.setattr(spark_job, "start_session", start)
    _refused(SparkSettings(master="local[3]", conf=conf))
    assert found == [expected]


def test_a_master_that_cannot_be_reached_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: Any) -> None:  # noqa: ANN401 - the settings do not matter
        raise RuntimeError("All masters are unresponsive! Giving up.")

    monkeypatch.setattr(spark_job, "launch_jvm", fail)
    text = _refused(SparkSettings(master="spark://absent:7077"))
    assert "All masters are unresponsive" in text
    assert "Without `--spark`, this machine moves the state." in text


@pytest.mark.parametrize(
    "settings",
    [
        SparkSettings(master="sc://host:15002"),
        SparkSettings(master="spark://host:7077", conf={"spark.submit.deployMode": "cluster"}),
    ],
)
def test_masters_that_this_process_cannot_drive_are_refused(settings: SparkSettings) -> None:
    assert "run_main" not in _refused(settings)


@pytest.mark.parametrize(("master", "expected"), [("local[3]", 6), ("spark://host:7077", 100)])
def test_the_default_number_of_tasks_is_limited(master: str, expected: int) -> None:
    context: Any = SimpleNamespace(master=master, defaultParallelism=3)
    assert useful_tasks(context, _RESHARD) == expected
    few = Reshard("app", (Transfer("t", "t", 3, 5),), (), {})
    assert useful_tasks(context, few) == 5


def test_the_default_number_of_tasks_is_not_more_than_can_write() -> None:
    context: Any = SimpleNamespace(master="local[*]", defaultParallelism=800)
    many = Reshard("app", (Transfer("t", "t", 3, 5_000),), (), {})
    assert useful_tasks(context, many) == MOST_WRITERS


class _EndedContext:
    """The context of a session whose JVM has ended, or which cannot execute a job."""

    def __init__(self, *, has_ended: bool) -> None:
        self._has_ended = has_ended

    @property
    def defaultParallelism(self) -> int:  # noqa: N802 - as in PySpark
        if self._has_ended:
            raise ConnectionRefusedError
        return 2

    def setJobGroup(self, *_: str) -> None:  # noqa: N802 - same
        raise ConnectionRefusedError("no answer of the JVM")


def test_a_session_that_has_ended_ends_the_reshard_and_a_failed_job_is_repeated() -> None:
    def passes(*, has_ended: bool) -> SparkPasses:
        context: Any = _EndedContext(has_ended=has_ended)
        return SparkPasses(_CONNECTION, "app", 3, job_runner(context, "app", report_no_progress))

    with pytest.raises(KafkaException, match=r"a job of Spark failed: .*no answer of the JVM"):
        passes(has_ended=False).check_entries(_RESHARD)
    ended = passes(has_ended=True)
    with pytest.raises(ProblemsError) as raised:
        ended.check_entries(_RESHARD)
    [problem] = raised.value.problems
    assert (problem.code, problem.fix) == (
        ProblemCode.NOT_RUNNABLE,
        "Run the command again. Without `--spark`, this machine moves the state.",
    )
    with pytest.raises(ProblemsError) as raised:
        ended.move(_RESHARD.transfers[0], {0: 1}, None, OneRound()).copy(
            MemoryProducer(MemoryCluster({}), "app", 1)
        )
    [problem] = raised.value.problems
    assert problem.code is ProblemCode.RESHARD_INCOMPLETE
    assert problem.fix.startswith("Run the command again. It continues where it was interrupted.")


def test_no_time_is_printed_while_nothing_is_done(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seconds = iter((0.0, 10.0, 20.0))
    monkeypatch.setattr(console, "time", SimpleNamespace(monotonic=lambda: next(seconds)))
    reported = console.Progress("app")
    for done in (0, 0, 5):
        reported.report("copying", done, 10)
    assert capsys.readouterr().err.splitlines() == [
        "app: copying",
        "app: copying: 0 of 10",
        "app: copying: 5 of 10, 20 seconds left",
    ]
