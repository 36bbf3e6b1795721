"""`headwater run` as processes: exit codes, standard error, the table on a terminal."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headwater.kafka import Connection
from headwater.model.problems import ProblemCode, ProblemsError
from headwater.spec import load_documents
from headwater.toolchain.broker import local
from headwater.toolchain.broker.readiness import until
from headwater_spark.driver.application import StreamsApplication
from headwater_spark.driver.preflight import check_runnable
from headwater_spark.driver.run_settings import RunSettings
from tests.cli.screen import lines_on_screen, output_on_terminal
from tests.listening_sockets import is_loopback, listening_addresses
from tests.runtime.spark.kafka_topics import Topics
from tests.runtime.spark.programs import Application

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1800)]

_TIMEOUT_SECONDS = 540.0


@pytest.fixture
def application(
    kafka: local.LocalBroker, spark_jars: tuple[str, ...], tmp_path: Path, unique: Callable[[str], str]
) -> Application:
    servers = kafka.bootstrap_servers
    return Application(Topics(servers), servers, ",".join(spark_jars), tmp_path, unique("app"))


def test_each_client_stops_with_the_same_problem(application: Application, spark: SparkSession) -> None:
    """One of the clients is active, a process. The other one, in the test's process, waits until it ends."""
    application.prepare("manual")
    command = [*application.headwater_run(), "--web-ui"]
    with application.process(command, "one") as one, ThreadPoolExecutor(1) as threads:
        assert until(
            lambda: "new=RUNNING" in application.log("one") or one.poll() is not None, _TIMEOUT_SECONDS
        )
        addresses = listening_addresses(one.pid)
        assert addresses, application.log("one")
        assert all(map(is_loopback, addresses)), addresses
        other = _client(application, spark)
        starting = threads.submit(other.start)
        try:
            assert until(lambda: "waiting until this client ends" in other.starting, _TIMEOUT_SECONDS)
            lost = f"{application.id}-counts-changelog"
            application.topics.delete(lost)
            assert one.wait(_TIMEOUT_SECONDS) == 1
            with pytest.raises(ProblemsError) as raised:
                starting.result(_TIMEOUT_SECONDS)
        finally:
            other.close()
    _, _, report = application.log("one").rpartition(f"\n{application.id}\n")
    missing = f"Internal topic {lost} "
    assert f"error[MissingInternalTopics] {missing}" in " ".join(report.split())
    assert "Traceback" not in application.log("one")
    assert {problem.code for problem in raised.value.problems} == {ProblemCode.MISSING_INTERNAL_TOPICS}
    assert all(missing in problem.summary for problem in raised.value.problems)


def _client(application: Application, spark: SparkSession) -> StreamsApplication:
    """Return a client in the process of the test, with its own checkpoint and state."""
    [document] = load_documents([application.folder / "document.yaml"]).documents
    return StreamsApplication(
        spark,
        document,
        check_runnable(document).programs,
        RunSettings(
            connection=Connection(bootstrap_servers=(application.servers,)),
            checkpoint=str(application.folder / "other" / "checkpoint"),
            state_folder=application.folder / "other" / "state",
        ),
    )


@pytest.mark.parametrize(
    "is_interrupted",
    [pytest.param(True, id="by Ctrl-C"), pytest.param(False, id="when idle", marks=pytest.mark.soak)],
)
def test_live_table_is_not_disturbed_by_spark_and_ends_without_an_error(
    application: Application,
    is_interrupted: bool,  # noqa: FBT001 - parameter of a test
) -> None:
    """Spark's JVM writes warnings to the same terminal. It ends when all is processed, or by Ctrl-C."""
    application.prepare("automatic")
    application.put(120)
    command = application.on_document([*application.headwater_run(), "--live"], "one")
    if is_interrupted:
        output = output_on_terminal(command, interrupt_when=lambda: _has_results(application))
    else:
        output = output_on_terminal([*command, "--until-idle"])
    _check_table(application, output)


def _check_table(application: Application, output: str) -> None:
    assert "Failed to cancel" not in output
    assert "starting Spark, for" in output
    shown = lines_on_screen(output)
    assert any("WARNING: Using incubator modules" in line for line in shown)
    # On a busy machine, the table also names a sub-topology that made no progress for a while.
    heads = [line for line in shown if line.startswith("sub-topology") and "no progress" not in line]
    assert len(heads) == 1
    assert sum(line.startswith(application.id) for line in shown) == 1
    assert not any("for 0 s" in line for line in shown)


def _has_results(application: Application) -> bool:
    return application.topics.written(f"out-{application.id}") > 0
