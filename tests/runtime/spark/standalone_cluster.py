"""A standalone cluster of Spark on this machine: a master, and workers that may be added and removed."""

import json
import os
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any, Self

import attrs
import pyspark

from headwater.toolchain.broker.readiness import free_ports, until
from tests.runtime.spark.processes import descendants

_SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
_DEPLOY = "org.apache.spark.deploy"
_START_SECONDS = 60.0
_DECOMMISSIONED = "-Dspark.decommission.enabled=true"
"""Without this setting, SIGPWR ends a worker at once."""
_ADDRESS = "127.0.0.1"


@attrs.define
class StandaloneCluster:
    """`processes` are the master, and the workers with one core each."""

    folder: Path
    port: int
    web_port: int
    processes: list["subprocess.Popen[bytes]"] = attrs.field(factory=list)

    @property
    def url(self) -> str:
        return f"spark://{_ADDRESS}:{self.port}"

    def add_worker(self) -> "subprocess.Popen[bytes]":
        """Start a worker with one core, and wait until the master has it."""
        number = len(self.processes)
        before = len(self.alive_workers())
        started = self._start(
            f"worker-{number}",
            *("worker.Worker", self.url, "--host", _ADDRESS, "--cores", "1", "--memory", "1500m"),
            *("--webui-port", "0", "--work-dir", str(self.folder / f"worker-{number}")),
        )
        assert until(lambda: len(self.alive_workers()) > before, _START_SECONDS)
        return started

    def log(self, worker: "subprocess.Popen[bytes]") -> str:
        """Return what a worker has logged."""
        name = f"worker-{self.processes.index(worker)}.log"
        return (self.folder / name).read_text(errors="replace")

    def alive_workers(self) -> list[Any]:
        return [each for each in self.status()["workers"] if each["state"] == "ALIVE"]

    def status(self) -> dict[str, Any]:
        """Return what the master's page says, as JSON."""
        with urllib.request.urlopen(f"http://{_ADDRESS}:{self.web_port}/json/", timeout=60) as answer:
            found: dict[str, Any] = json.load(answer)
        return found

    def _start(self, name: str, *command: str) -> "subprocess.Popen[bytes]":
        with (self.folder / f"{name}.log").open("wb") as log:
            started = subprocess.Popen(
                [str(_SPARK_CLASS), f"{_DEPLOY}.{command[0]}", *command[1:]],
                cwd=self.folder,
                stdout=log,
                stderr=log,
                env={**os.environ, "SPARK_DAEMON_MEMORY": "200m", "SPARK_WORKER_OPTS": _DECOMMISSIONED},
                start_new_session=True,
            )
        self.processes.append(started)
        return started

    def start_master(self) -> Self:
        command = ("--host", _ADDRESS, "--port", str(self.port), "--webui-port", str(self.web_port))
        self._start("master", "master.Master", *command)

        def answers() -> bool:
            # While the page is being started, it answers with something else, or with a part.
            with suppress(OSError, ValueError, HTTPException):
                return bool(self.status()["status"] == "ALIVE")
            return False

        assert until(answers, _START_SECONDS), (self.folder / "master.log").read_text()
        return self

    def close(self) -> None:
        """Kill all processes, and the executors that the workers have started."""
        for process in reversed(self.processes):
            for pid in (*descendants(process.pid), process.pid):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            process.wait()


@contextmanager
def standalone_cluster(folder: Path, workers: int = 2) -> Iterator[StandaloneCluster]:
    """Run a master and workers with one core each, until the end of the block."""
    folder.mkdir(parents=True, exist_ok=True)
    port, web_port = free_ports(2)
    cluster = StandaloneCluster(folder, port, web_port)
    try:
        cluster.start_master()
        for _ in range(workers):
            cluster.add_worker()
        yield cluster
    finally:
        cluster.close()
