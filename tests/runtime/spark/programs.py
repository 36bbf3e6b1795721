"""An application as a process of its own: `headwater run` or `spark-submit`."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import attrs
import pyspark

from tests.runtime.spark.kafka_topics import Topics
from tests.runtime.spark.processes import kill_groups

ROOT = Path(__file__).parents[3]
_SPARK = (
    *("--conf", "spark.driver.memory=512m"),
    # Idle queries ask the broker for new records ten times a second, not a hundred times.
    *("--conf", "spark.sql.streaming.pollingDelay=100ms"),
)
SUBMIT = Path(pyspark.__file__).parent / "bin" / "spark-submit"
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


def java_options() -> str:
    """Return the options of the test run for Java, without settings of Spark: executors refuse these."""
    options = os.environ["SPARK_SUBMIT_OPTS"].split()
    return " ".join(each for each in options if not each.startswith("-Dspark."))


@attrs.frozen
class Application:
    """An application's topics and document, and the files of its processes."""

    topics: Topics
    servers: str
    jars: str
    folder: Path
    id: str

    def prepare(self, setup: str, config: str = "") -> None:
        """Create topics and document; `config` are further settings of the application, as YAML."""
        text = _DOCUMENT.replace("ID", self.id).replace("SETUP", f"{setup}, {config}" if config else setup)
        (self.folder / "document.yaml").write_text(text)
        self.topics.create({f"in-{self.id}": 2, f"out-{self.id}": 2})
        if setup == "manual":
            for suffix, settings in _SETTINGS.items():
                self.topics.create({f"{self.id}-counts-{suffix}": 2})
                self.topics.configure_and_wait(f"{self.id}-counts-{suffix}", settings)

    @contextmanager
    def process(self, command: Sequence[str], name: str) -> Iterator["subprocess.Popen[bytes]"]:
        """Run `command` on the document, with its own checkpoint and state."""
        with self._started(self.on_document(command, name), name) as process:
            yield process

    def on_document(self, command: Sequence[str], name: str) -> list[str]:
        """Return `command` with the arguments that each client of the application has."""
        command = [*command, str(self.folder / "document.yaml"), "--bootstrap-server", self.servers]
        command += ["--checkpoint", str(self.folder / name / "checkpoint")]
        return [*command, "--state-dir", str(self.folder / name / "state")]

    @contextmanager
    def submitted_agent(self, options: Sequence[str], name: str) -> Iterator["subprocess.Popen[bytes]"]:
        """Run an agent for the document with `spark-submit`."""
        document = str(self.folder / "document.yaml")
        command = [
            *self.spark_submit("agent_main.py"),
            document,
            "--bootstrap-server",
            self.servers,
            *options,
        ]
        with self._started(command, name) as process:
            yield process

    @contextmanager
    def _started(self, command: Sequence[str], name: str) -> Iterator["subprocess.Popen[bytes]"]:
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "PYSPARK_PYTHON": sys.executable,
        }
        if command[0] == str(SUBMIT):
            environment["SPARK_SUBMIT_OPTS"] = java_options()  # with Spark's own settings, as at users
        with (self.folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                command, cwd=self.folder, stdout=log, stderr=log, env=environment, start_new_session=True
            )
        try:
            yield process
        finally:
            kill_groups(process.pid)
            process.wait()

    def put(self, records: int) -> None:
        """Write records to both partitions of the input topic."""
        for partition in range(2):
            values = [(b"k", b"%d" % (each % 3), 1_700_000_000_000) for each in range(records // 2)]
            self.topics.put(f"in-{self.id}", values, partition)

    def endpoint(self, name: str) -> str:
        """Return the URL of the endpoint of a process that logs JSON; empty until it is started."""
        lines = (line for line in self.log(name).splitlines() if '"endpoint started"' in line)
        return str(json.loads(next(lines, "{}")).get("url", ""))

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def headwater_run(self) -> list[str]:
        command = [sys.executable, "-m", "headwater.cli", "run", "--master", "local[2]"]
        return [*command, "--jars", self.jars, *_SPARK]

    def spark_submit(self, program: str = "run_main.py", master: str = "local[2]") -> list[str]:
        command = [str(SUBMIT), "--master", master, "--jars", self.jars, *_SPARK]
        command += ["--conf", "spark.ui.enabled=false"]
        command += ["--conf", f"spark.executor.extraJavaOptions={java_options()}"]
        return [*command, str(ROOT / "spark_jobs" / program)]
