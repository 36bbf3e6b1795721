"""The driver's process ends when Spark's JVM dies, and ends within its time limit when the JVM hangs."""

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from subprocess import Popen

import pytest

from headwater.toolchain.broker import local
from headwater.toolchain.broker.readiness import until
from tests.runtime.spark.kafka_topics import Topics
from tests.runtime.spark.processes import all_ended, descendants, is_running, jvm, python_driver
from tests.runtime.spark.programs import Application

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

_START_SECONDS = 240.0
_END_SECONDS = 120.0
_RESTART = 75


@pytest.fixture
def application(
    kafka: local.LocalBroker, spark_jars: tuple[str, ...], tmp_path: Path, unique: Callable[[str], str]
) -> Application:
    servers = kafka.bootstrap_servers
    found = Application(Topics(servers), servers, ",".join(spark_jars), tmp_path, unique("app"))
    found.prepare("automatic")
    return found


def _await_running(application: Application, process: Popen[bytes], times: int = 1) -> None:
    def is_ready() -> bool:
        log = application.log("one")
        return log.count("new=RUNNING") + log.count('"new": "RUNNING"') >= times or process.poll() is not None

    assert until(is_ready, _START_SECONDS), application.log("one")
    assert process.poll() is None, application.log("one")


@pytest.mark.soak
@pytest.mark.parametrize("records", [0, 40_000])
def test_process_ends_with_a_problem_when_its_jvm_dies(application: Application, records: int) -> None:
    with application.process([*application.headwater_run(), "--max-records", "500"], "one") as process:
        _await_running(application, process)
        if records:
            application.put(records)
            assert until(lambda: application.topics.written(f"out-{application.id}") > 0, _START_SECONDS)
        started = [process.pid, *descendants(process.pid)]
        os.kill(jvm(process.pid), signal.SIGKILL)
        assert process.wait(_END_SECONDS) == _RESTART
        assert until(lambda: all_ended(started), _END_SECONDS)
    log = application.log("one")
    assert "error[SparkEnded] Spark's JVM has ended." in log
    assert "killed by SIGKILL" in log
    assert "Traceback" not in log


@pytest.mark.soak
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGHUP], ids=["SIGKILL", "SIGHUP"])
def test_jvm_and_workers_end_when_a_signal_ends_their_driver(
    application: Application, number: signal.Signals
) -> None:
    """The JVM has a session of its own, so it gets no signal; its standard input is closed.

    In `make test`, `test_expansion_kills` kills the driver alone.
    """
    with application.process(application.headwater_run(), "one") as process:
        _await_running(application, process)
        application.put(120)
        assert until(lambda: application.topics.written(f"out-{application.id}") > 0, _START_SECONDS)
        started = list(descendants(process.pid))
        assert jvm(process.pid) in started
        process.send_signal(number)
        assert process.wait(_END_SECONDS) == -number
        assert until(lambda: all_ended(started), _END_SECONDS)


def test_a_jvm_that_cannot_start_is_a_problem(application: Application) -> None:
    command = [*application.headwater_run(), "--conf", "spark.driver.memory=1m"]
    with application.process(command, "one") as process:
        assert process.wait(_START_SECONDS) == 1, application.log("one")
    assert "error[NotRunnable] Spark did not start." in application.log("one")
    assert "Traceback" not in application.log("one")


@pytest.mark.soak  # without Spark: `runtime/driver/test_jvm_start`
@pytest.mark.parametrize("hangs", [False, True])
def test_sigterm_while_spark_starts_ends_process_and_jvm(application: Application, hangs: bool) -> None:  # noqa: FBT001 - parameter of a test
    with application.process(application.headwater_run(), "one") as process:
        assert until(lambda: any(descendants(process.pid)), _START_SECONDS), application.log("one")
        started = list(descendants(process.pid))
        if hangs:
            for pid in started:
                with suppress(ProcessLookupError):  # a script of spark-submit has ended meanwhile
                    os.kill(pid, signal.SIGSTOP)
        process.send_signal(signal.SIGTERM)
        assert process.wait(_END_SECONDS) == 0, application.log("one")
        assert until(lambda: all_ended(started), _END_SECONDS)


@pytest.mark.parametrize(
    "master",
    [
        "local[1]",
        # In `make test`, `runtime/hosts/test_hosts` has executors.
        pytest.param("local-cluster[1,1,1024]", marks=pytest.mark.soak),
    ],
)
def test_spark_submit_runs_it_and_its_driver_ends_on_sigterm_while_its_jvm_hangs(
    application: Application, master: str
) -> None:
    """If its JVM dies, the driver ends as an agent does (below)."""
    application.put(120)
    command = [*application.spark_submit(master=master), "--stop-timeout-ms", "3000"]
    with application.process(command, "one") as submit:
        expected = dict.fromkeys((b"0", b"1", b"2"), 40)
        until(lambda: submit.poll() is not None or _counts(application) == expected, _START_SECONDS)
        assert _counts(application) == expected, application.log("one")[-4000:]
        driver = python_driver(submit.pid)
        submit.send_signal(signal.SIGSTOP)
        os.kill(driver, signal.SIGTERM)
        assert until(lambda: not is_running(driver), _END_SECONDS), application.log("one")
        submit.send_signal(signal.SIGCONT)
        assert submit.wait(_END_SECONDS) == _RESTART


def _counts(application: Application) -> dict[bytes | None, int]:
    """Return the last count of each key."""
    records = application.topics.get(f"out-{application.id}")
    return {record[4]: int.from_bytes(record[5] or b"", "big") for record in records}


@pytest.mark.soak  # without Spark: `agent/test_command`
def test_agent_of_spark_submit_ends_when_its_jvm_dies(application: Application) -> None:
    agent = ["--group", application.id, "--client-id", "agent-1"]
    with application.submitted_agent(agent, "one") as submit:
        assert until(lambda: "agent started" in application.log("one"), _START_SECONDS), application.log(
            "one"
        )
        driver = python_driver(submit.pid)
        submit.kill()
        assert until(lambda: not is_running(driver), _END_SECONDS), application.log("one")
