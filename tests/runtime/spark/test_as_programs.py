"""`headwater run` and `spark-submit` as processes: exit codes, standard error, separate executors."""

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.screen import lines_on_screen, output_on_terminal
from tests.runtime.spark.kafka_topics import Topics
from tests.runtime.spark.programs import Application
from toolchain.broker import local
from toolchain.broker.readiness import until

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1800)]

_TIMEOUT_SECONDS = 540.0


@pytest.fixture
def application(
    kafka: local.LocalBroker, spark_jars: tuple[str, ...], tmp_path: Path, unique: Callable[[str], str]
) -> Application:
    servers = kafka.bootstrap_servers
    return Application(Topics(servers), servers, ",".join(spark_jars), tmp_path, unique("app"))


def test_each_client_stops_with_the_same_problem(application: Application) -> None:
    application.prepare("manual")
    with (
        application.process(application.headwater_run(), "one") as one,
        application.process(application.headwater_run(), "other") as other,
    ):
        for name, process in (("one", one), ("other", other)):
            assert until(
                lambda name=name, process=process: (  # type: ignore[misc]
                    "new=RUNNING" in application.log(name) or process.poll() is not None
                ),
                _TIMEOUT_SECONDS,
            )
        lost = f"{application.id}-counts-changelog"
        application.topics.delete(lost)
        assert (one.wait(_TIMEOUT_SECONDS), other.wait(_TIMEOUT_SECONDS)) == (1, 1)
    for name in ("one", "other"):
        _, _, report = application.log(name).rpartition(f"\n{application.id}\n")
        assert (
            f"error[MissingInternalTopics] Internal topic {lost} was set up and no longer exists."
            in " ".join(report.split())
        )
        assert "Traceback" not in application.log(name)


def test_ctrl_c_stops_it_without_an_error(application: Application) -> None:
    application.prepare("automatic")
    with application.process(application.headwater_run(), "one") as process:
        assert until(lambda: "new=RUNNING" in application.log("one"), _TIMEOUT_SECONDS), application.log(
            "one"
        )
        process.send_signal(signal.SIGINT)
        assert process.wait(_TIMEOUT_SECONDS) == 0, application.log("one")
    assert "Failed to cancel" not in application.log("one")


def test_spark_submit_runs_it_on_executors(application: Application) -> None:
    application.prepare("automatic")
    application.put(120)
    command = [*application.spark_submit(master="local-cluster[1,1,1024]"), "--until-idle"]
    with application.process(command, "one") as process:
        assert process.wait(_TIMEOUT_SECONDS) == 0, application.log("one")[-4000:]
    counts = {
        record[4]: int.from_bytes(record[5] or b"", "big")
        for record in application.topics.get(f"out-{application.id}")
    }
    assert counts == {b"0": 40, b"1": 40, b"2": 40}


def test_live_table_shows_the_start_and_is_not_disturbed_by_spark(application: Application) -> None:
    """Spark's JVM writes warnings to the same terminal."""
    application.prepare("automatic")
    application.put(120)
    command = application.on_document([*application.headwater_run(), "--live", "--until-idle"], "one")
    output = output_on_terminal(command)
    assert "starting Spark, for" in output
    shown = lines_on_screen(output)
    assert any("WARNING: Using incubator modules" in line for line in shown)
    assert sum(line.startswith("sub-topology") for line in shown) == 1
    assert sum(line.startswith(application.id) for line in shown) == 1
    assert not any("for 0 s" in line for line in shown)
