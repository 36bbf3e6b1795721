"""`headwater run` as processes: exit codes, standard error, the table on a terminal."""

from collections.abc import Callable
from pathlib import Path

import pytest

from headwater.toolchain.broker import local
from headwater.toolchain.broker.readiness import until
from tests.cli.screen import lines_on_screen, output_on_terminal
from tests.listening_sockets import is_loopback, listening_addresses
from tests.runtime.spark.kafka_topics import Topics
from tests.runtime.spark.programs import Application

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1800)]

_TIMEOUT_SECONDS = 540.0
_STATES = ("new=RUNNING", "waiting: another client is active")


@pytest.fixture
def application(
    kafka: local.LocalBroker, spark_jars: tuple[str, ...], tmp_path: Path, unique: Callable[[str], str]
) -> Application:
    servers = kafka.bootstrap_servers
    return Application(Topics(servers), servers, ",".join(spark_jars), tmp_path, unique("app"))


def test_each_client_stops_with_the_same_problem(application: Application) -> None:
    """One of the clients is active, and the other one waits until it ends."""
    application.prepare("manual")
    names = ("one", "other")
    with (
        application.process([*application.headwater_run(), "--web-ui"], "one") as one,
        application.process(application.headwater_run(), "other") as other,
    ):
        for name, process in (("one", one), ("other", other)):
            assert until(
                lambda name=name, process=process: (  # type: ignore[misc]
                    any(state in application.log(name) for state in _STATES) or process.poll() is not None
                ),
                _TIMEOUT_SECONDS,
            )
            addresses = listening_addresses(process.pid)
            assert addresses
            assert all(map(is_loopback, addresses)), addresses
        logs = [application.log(name) for name in names]
        assert sorted(state for log in logs for state in _STATES if state in log) == sorted(_STATES)
        lost = f"{application.id}-counts-changelog"
        application.topics.delete(lost)
        assert (one.wait(_TIMEOUT_SECONDS), other.wait(_TIMEOUT_SECONDS)) == (1, 1)
    for name in names:
        _, _, report = application.log(name).rpartition(f"\n{application.id}\n")
        assert f"error[MissingInternalTopics] Internal topic {lost} " in " ".join(report.split())
        assert "Traceback" not in application.log(name)


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
