"""Reshards on a standalone cluster of Spark: killed drivers and workers, and no secret on disk."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import attrs
import pyspark
import pytest

import reshard_main
from headwater.toolchain.broker import Broker, SaslUser, Settings
from headwater.toolchain.broker.readiness import until
from tests.runtime.reshard.stopped_application import StoppedApplication
from tests.runtime.spark.kafka_topics import Topics
from tests.runtime.spark.processes import descendants
from tests.runtime.spark.standalone_cluster import StandaloneCluster, standalone_cluster

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.soak,
    pytest.mark.timeout(900),
]
_SECONDS = 300
_USER = SaslUser("resharding", "quail-57ea-reshard")
_SUBMIT = Path(pyspark.__file__).parent / "bin" / "spark-submit"


@attrs.frozen
class _Commands:
    """Runs reshards of an application as commands; `folder` has all files that they write."""

    cluster: StandaloneCluster
    broker: Broker
    app: StoppedApplication
    folder: Path

    def start(self, name: str, *words: str) -> "subprocess.Popen[bytes]":
        file = self.folder / "app.yaml"
        file.write_text(self.app.text())
        with (self.folder / f"{name}.log").open("wb") as log:
            return subprocess.Popen(
                [*words, str(file), f"--partitions={self.app.source}=5"],
                cwd=self.folder,
                stdout=log,
                stderr=log,
                env={
                    **os.environ,
                    "HEADWATER_BOOTSTRAP_SERVERS": self.broker.address("SASL_PLAINTEXT"),
                    "HEADWATER_SECURITY_PROTOCOL": "SASL_PLAINTEXT",
                    "HEADWATER_SASL_MECHANISM": "SCRAM-SHA-512",
                    "HEADWATER_SASL_USERNAME": _USER.name,
                    "HEADWATER_SASL_PASSWORD": _USER.password,
                    "SPARK_LOCAL_DIRS": str(self.folder / "local"),
                    "PYSPARK_PYTHON": sys.executable,
                },
            )

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def spark(self) -> Sequence[str]:
        """Return the options of Spark, with an event log."""
        events = self.folder / "events"
        events.mkdir(exist_ok=True)
        settings = {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.executor.memory": "600m",
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": events.as_uri(),
        }
        return [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]

    def finish(self, name: str, process: "subprocess.Popen[bytes]") -> None:
        assert process.wait(_SECONDS) == 0, self.log(name)


@pytest.fixture
def commands(
    own_broker: Callable[..., Broker], tmp_path: Path, unique: Callable[[str], str]
) -> Iterator[_Commands]:
    with (
        own_broker(Settings(sasl_users=(_USER,))) as broker,
        standalone_cluster(tmp_path / "spark") as cluster,
    ):
        servers = broker.bootstrap_servers
        app = StoppedApplication(servers, Topics(servers), unique("cluster"))
        app.create()
        yield _Commands(cluster, broker, app, tmp_path)


def _headwater() -> str:
    return str(Path(sys.executable).with_name("headwater"))


def _kill(process: "subprocess.Popen[bytes]") -> None:
    for pid in (*descendants(process.pid), process.pid):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def test_a_submitted_reshard_hides_its_secrets(commands: _Commands) -> None:
    app = commands.app
    before, waiting = {store: app.entries(store) for store in ("kept", "totals")}, app.unprocessed()
    submit = [str(_SUBMIT), "--master", commands.cluster.url, *commands.spark(), reshard_main.__file__]
    commands.finish("submitted", commands.start("submitted", *submit))
    app.check(before, waiting)
    assert ", tasks" in commands.log("submitted")
    events = [each for each in (commands.folder / "events").rglob("*") if each.is_file()]
    assert any("SparkListenerJobStart" in each.read_text(errors="replace") for each in events)
    written = [each for each in commands.folder.rglob("*") if each.is_file() and not each.is_symlink()]
    assert [each for each in written if b"quail" in each.read_bytes()] == []


@pytest.mark.parametrize("step", ["reading", "copying entries", "checking entries", "deleting copied"])
def test_a_killed_driver_is_continued_without_spark(commands: _Commands, step: str) -> None:
    app = commands.app
    before, waiting = {store: app.entries(store) for store in ("kept", "totals")}, app.unprocessed()
    options = ("--spark", "--master", commands.cluster.url, "--tasks", "7", *commands.spark())
    first = commands.start("first", _headwater(), "reshard", *options)
    assert until(lambda: step in commands.log("first"), _SECONDS), commands.log("first")
    _kill(first)
    first.wait(_SECONDS)
    commands.finish("second", commands.start("second", _headwater(), "reshard"))
    app.check(before, waiting)


def test_tasks_of_a_killed_worker_are_executed_elsewhere(commands: _Commands) -> None:
    app = commands.app
    before, waiting = {store: app.entries(store) for store in ("kept", "totals")}, app.unprocessed()
    options = ("--spark", "--master", commands.cluster.url, "--tasks", "5", *commands.spark())
    process = commands.start("first", _headwater(), "reshard", *options)
    assert until(lambda: "copying entries" in commands.log("first"), _SECONDS), commands.log("first")
    _kill(commands.cluster.processes[-1])
    commands.finish("first", process)
    app.check(before, waiting)
