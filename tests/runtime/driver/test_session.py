"""The Spark session: redaction, and the process from which Python workers are forked."""

import subprocess
import sys
from pathlib import Path

import pytest

from headwater_spark.driver.spark_session.session import SessionSettings, write_packages


def test_spark_redacts_secrets() -> None:
    settings = SessionSettings(application="a").spark()
    for name in ("spark.redaction.regex", "spark.sql.redaction.options.regex"):
        for word in ("password", "jaas", "keystore", "ssl[.]key", "secret"):
            assert word in settings[name]


def test_no_stage_is_repeated_while_tasks_of_its_first_attempt_run() -> None:
    assert SessionSettings(application="a").spark()["spark.stage.maxConsecutiveAttempts"] == "1"


@pytest.mark.parametrize(
    ("master", "has_daemon"),
    [("local[4]", True), ("local-cluster[2,1,1024]", False), ("spark://host:7077", False), (None, False)],
)
def test_only_a_local_session_forks_workers_from_our_daemon(master: str | None, *, has_daemon: bool) -> None:
    settings = SessionSettings(application="a", master=master).spark()
    assert ("spark.python.daemon.module" in settings) is has_daemon


@pytest.mark.parametrize(
    ("master", "is_set"),
    [("local[4]", False), ("local-cluster[2,1,1024]", True), ("spark://host:7077", True), (None, True)],
)
def test_executors_of_a_lost_driver_end_soon(master: str | None, *, is_set: bool) -> None:
    names = ("spark.executor.heartbeatInterval", "spark.executor.heartbeat.maxFailures")
    settings = SessionSettings(application="a", master=master).spark()
    assert [name in settings for name in names] == [is_set] * 2
    chosen = SessionSettings(application="a", master=master, conf={names[0]: "20s"}).spark()
    assert chosen[names[0]] == "20s"


def test_the_daemon_has_no_threads_when_it_forks() -> None:
    """Threads do not survive a fork, and their locks may stay locked in the workers."""
    program = (
        "import os, sys\n"
        "from headwater_spark.spark_internals import worker_daemon\n"
        "worker_daemon.import_modules()\n"
        "names = 'numpy', 'pyarrow', 'sqlglot'\n"
        "print(len(os.listdir('/proc/self/task')), [name in sys.modules for name in names])\n"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "1 [False, False, True]", result.stderr


@pytest.mark.parametrize("master", ["spark://host:7077", "local-cluster[2,1,1024]", "yarn", None])
def test_a_silent_executor_is_lost_before_its_records_could_be_written_late(master: str | None) -> None:
    settings = SessionSettings(application="a", master=master).spark()
    assert settings["spark.storage.blockManagerHeartbeatTimeoutMs"] == "45s"
    assert settings["spark.locality.wait"] == "30s"


@pytest.mark.parametrize("master", ["local", "local[2]", "local[*]"])
def test_a_session_without_executors_has_no_settings_for_them(master: str) -> None:
    assert "spark.locality.wait" not in SessionSettings(application="a", master=master).spark()


@pytest.mark.slow  # it writes all modules into an archive
def test_executors_can_load_classes_from_the_packages_that_are_sent(tmp_path: Path) -> None:
    """In a clone, the JSON Schemas that `headwater` reads when it is imported are not in its folder."""
    archive = tmp_path / "headwater.zip"
    write_packages(archive)
    program = (
        f"import sys; sys.path.insert(0, {str(archive)!r}); "
        "import headwater; from headwater_spark.driver.preflight import class_failures; "
        "print(headwater.__file__)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(archive))
