"""`headwater run` and `spark-submit` as processes: exit codes, standard error, separate executors."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import attrs
import pyspark
import pytest

from tests.runtime.spark.kafka_topics import Topics
from toolchain.broker import local
from toolchain.broker.readiness import until

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1800)]

_ROOT = Path(__file__).parents[3]
_SUBMIT = Path(pyspark.__file__).parent / "bin" / "spark-submit"
_TIMEOUT_SECONDS = 540.0
_SETTINGS = {
    "changelog": {"cleanup.policy": "compact"},
    "repartition": {"cleanup.policy": "delete", "retention.ms": "-1"},
}
_DOCUMENT = """
application:
  id: ID
  config: {internal.topics.setup: SETUP, processing.guarantee: exactly_once_v2}
topology:
  - stream: {topic: in-ID, serdes: {key: string, value: string}}
  - selectKey: {key: value}
  - groupByKey:
  - count: {materialized: counts}
  - toStream:
  - to: {topic: out-ID, serdes: {key: string, value: long}}
"""


@attrs.frozen
class Application:
    """An application's topics and document, and the files of its processes."""

    topics: Topics
    servers: str
    jars: str
    folder: Path
    id: str

    def prepare(self, setup: str) -> None:
        text = _DOCUMENT.replace("ID", self.id).replace("SETUP", setup)
        (self.folder / "document.yaml").write_text(text)
        self.topics.create({f"in-{self.id}": 2, f"out-{self.id}": 2})
        if setup == "manual":
            for suffix, settings in _SETTINGS.items():
                self.topics.create({f"{self.id}-counts-{suffix}": 2})
                self.topics.configure_and_wait(f"{self.id}-counts-{suffix}", settings)

    @contextmanager
    def process(self, command: Sequence[str], name: str) -> Iterator["subprocess.Popen[bytes]"]:
        """Run `command` on the document, with its own checkpoint and state."""
        command = [*command, str(self.folder / "document.yaml"), "--bootstrap-server", self.servers]
        command += ["--checkpoint", str(self.folder / name / "checkpoint")]
        command += ["--state-dir", str(self.folder / name / "state")]
        environment = {**os.environ, "PYTHONPATH": str(_ROOT), "PYSPARK_PYTHON": sys.executable}
        with (self.folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                command, cwd=self.folder, stdout=log, stderr=log, env=environment, start_new_session=True
            )
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def headwater_run(self) -> list[str]:
        command = [sys.executable, "-m", "infra.cli", "run", "--master", "local[2]", "--jars", self.jars]
        return [*command, "--conf", "spark.ui.enabled=false", "--conf", "spark.driver.memory=512m"]


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
    for partition in range(2):
        records = [(b"k", b"%d" % (each % 3), 1_700_000_000_000) for each in range(60)]
        application.topics.put(f"in-{application.id}", records, partition)
    command = [str(_SUBMIT), "--master", "local-cluster[2,1,1024]", "--jars", application.jars]
    command += ["--conf", "spark.ui.enabled=false", "--conf", "spark.driver.memory=512m"]
    command += [str(_ROOT / "spark_jobs" / "run_main.py"), "--until-idle"]
    with application.process(command, "one") as process:
        assert process.wait(_TIMEOUT_SECONDS) == 0, application.log("one")[-4000:]
    counts = {
        record[4]: int.from_bytes(record[5] or b"", "big")
        for record in application.topics.get(f"out-{application.id}")
    }
    assert counts == {b"0": 40, b"1": 40, b"2": 40}
