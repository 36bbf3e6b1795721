"""A broker, a standalone Spark cluster and an application, each on a host of its own."""

import json
import os
import shutil
import signal
import sys
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark

from headwater.toolchain import spark_java_options
from headwater.toolchain.broker import Broker, Settings
from headwater.toolchain.broker.readiness import until
from headwater.toolchain.kafka import KafkaDistribution
from tests.quick_java import QUICK_JAVA
from tests.runtime.hosts.clock import build_library, clock_environment, create_clock
from tests.runtime.hosts.cpu_limit import CpuLimit
from tests.runtime.hosts.network import Host, Network
from tests.runtime.spark.kafka_topics import Topics
from tests.runtime.spark.process_application import ProcessApplication

if TYPE_CHECKING:
    import subprocess

START_SECONDS = 300.0
_ROOT = Path(__file__).parents[3]
_JARS = Path(pyspark.__file__).parent / "jars"
_BROKER_PORT, _CONTROLLER_PORT, _MASTER_PORT, _HTTP_PORT = 9092, 9093, 7077, 8090


class SparkHosts:
    """The hosts of a cluster. The test uses the broker's network, so it keeps its connection to the broker.

    `application` has its topics; its checkpoints and state are on the disks of the hosts.
    """

    def __init__(
        self,
        network: Network,
        distribution: KafkaDistribution,
        folder: Path,
        jars: tuple[str, ...],
        *,
        broker_session_ms: int = 60_000,
    ) -> None:
        self.network, self.folder, self.jars = network, folder, jars
        self.broker_host, self.master_host = network.add("broker"), network.add("master")
        self.workers: list[Host] = []
        address = self.broker_host.address
        listeners = f"PLAINTEXT://0.0.0.0:{_BROKER_PORT},CONTROLLER://127.0.0.1:{_CONTROLLER_PORT}"
        settings = Settings(
            overrides={
                "listeners": listeners,
                "advertised.listeners": f"PLAINTEXT://{address}:{_BROKER_PORT}",
                "controller.quorum.voters": f"1@127.0.0.1:{_CONTROLLER_PORT}",
                # No heartbeat that a busy machine delays takes the partitions from the broker.
                "broker.session.timeout.ms": str(broker_session_ms),
            }
        )
        self.broker = Broker(distribution, folder / "kafka", settings, port=_BROKER_PORT)
        self.servers = f"{address}:{_BROKER_PORT}"
        self._clock_library: Path | None = None
        self.limits_cpu: ExitStack | None = None

    @property
    def has_clocks(self) -> bool:
        return self._clock_library is not None

    def use_clocks(self) -> None:
        """Let programs that start from now on read the clock of their host; not without a compiler of C."""
        self._clock_library = build_library(self.folder)

    @property
    def master(self) -> str:
        return f"spark://{self.master_host.address}:{_MASTER_PORT}"

    def start_master(self) -> None:
        main = "org.apache.spark.deploy.master.Master"
        address = self.master_host.address
        self._java(
            self.master_host, main, "--host", address, "--port", str(_MASTER_PORT), "--webui-port", "8080"
        )
        assert until(lambda: "Starting Spark master" in self.log(self.master_host), START_SECONDS)

    def add_worker(self, name: str, *, cores: int = 1) -> Host:
        """Start a host with a worker of the cluster, whose executor has `cores` cores.

        Its processes are in a group of `limits_cpu`.
        """
        host = self.network.add(name)
        if self.limits_cpu is not None:
            host.cpu = self.limits_cpu.enter_context(CpuLimit(name))
        self.workers.append(host)
        self.start_worker(host, cores=cores)
        return host

    def start_worker(self, host: Host, *, cores: int = 1) -> None:
        """Start the worker of a host, again after a fault; return when the master has registered it."""
        before = self.log(host).count("Successfully registered")
        main = "org.apache.spark.deploy.worker.Worker"
        sizes = ("--cores", str(cores), "--memory", "2g", "--work-dir", str(host.disk / "work"))
        self._java(host, main, "--host", host.address, "--webui-port", "8081", *sizes, self.master)
        assert until(lambda: self.log(host).count("Successfully registered") > before, START_SECONDS)

    def log(self, host: Host) -> str:
        """Return what the processes of a host have logged, except executors."""
        with suppress(FileNotFoundError):
            return self._log_file(host).read_text(errors="replace")
        return ""

    @contextmanager
    def driver(
        self, application: ProcessApplication, host: Host, *, max_records: int, options: Sequence[str] = ()
    ) -> Iterator["Driver"]:
        """Run a driver of the application on a host until the context ends."""
        command = [sys.executable, "-m", "headwater.cli", "run", "--master", self.master]
        command += ["--jars", ",".join(self.jars), str(application.folder / "document.yaml")]
        command += [*self.spark_options(host), "--conf", "spark.sql.streaming.pollingDelay=50ms"]
        command += ["--bootstrap-server", self.servers, "--max-records", str(max_records)]
        command += ["--checkpoint", str(host.disk / "checkpoint"), "--state-dir", str(host.disk / "state")]
        command += ["--http", f"{host.address}:{_HTTP_PORT}", "--restarts", "30", *options]
        process = self.start_program(host, command)
        try:
            yield Driver(host, process)
        finally:
            if host.is_on:
                host.kill()
            process.wait()

    @staticmethod
    def spark_options(host: Host) -> list[str]:
        """Return options of a command that is a driver on a host."""
        settings = {
            "spark.ui.enabled": "false",
            "spark.driver.host": host.address,
            "spark.driver.memory": "600m",
            "spark.executor.memory": "512m",
            "spark.executor.extraJavaOptions": " ".join(_java_options()),
        }
        return [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]

    def start_program(self, host: Host, command: Sequence[str]) -> "subprocess.Popen[bytes]":
        """Start a program on a host; its output is in the log of the host."""
        with self._log_file(host).open("ab") as log:
            return host.start(command, log, self._environment(host))

    def _java(self, host: Host, main: str, *arguments: str) -> None:
        java = shutil.which("java")
        assert java is not None
        self.start_program(
            host, [java, *_java_options(), "-Xmx192m", "-cp", str(_JARS / "*"), main, *arguments]
        )

    def _log_file(self, host: Host) -> Path:
        return self.folder / f"{host.name}.log"

    def _environment(self, host: Host) -> Mapping[str, str]:
        (host.files / "tmp").mkdir(exist_ok=True)
        create_clock(host.files)
        library = self._clock_library
        return {
            **({} if library is None else clock_environment(library, host.disk)),
            **{name: value for name, value in os.environ.items() if not name.startswith("SPARK_SUBMIT")},
            "PYTHONPATH": str(_ROOT),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_HOME": str(_JARS.parent),
            "SPARK_SCALA_VERSION": "2.13",
            "SPARK_LOCAL_IP": host.address,
            "SPARK_LOCAL_DIRS": str(host.disk / "tmp"),
            "SPARK_SUBMIT_OPTS": " ".join(_java_options()),
            "TMPDIR": str(host.disk / "tmp"),
        }


class Driver:
    """A running driver, and its status."""

    def __init__(self, host: Host, process: "subprocess.Popen[bytes]") -> None:
        self.host, self.process = host, process

    def status(self) -> Mapping[str, Any]:
        """Return the status of the client; empty while it does not answer. The test reaches its host."""
        url = f"http://{self.host.address}:{_HTTP_PORT}/status"
        with suppress(OSError, ValueError, HTTPException), urllib.request.urlopen(url, timeout=30) as answer:
            found: Mapping[str, Any] = json.load(answer)
            return found
        return {}

    def stop(self) -> int:
        """Stop the driver by SIGTERM, as service managers and Kubernetes do; return its exit code."""
        parent = self.process.pid  # `nsenter`, which does not forward signals and returns the exit code
        [program] = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
        os.kill(int(program), signal.SIGTERM)
        return self.process.wait(START_SECONDS)

    def counter(self, name: str) -> int:
        """Return the sum of a counter of all sub-topologies, as `recordsRestored`, once a client answers."""
        parts = until(lambda: self.status().get("runtime", {}).get("subtopologies", ()), START_SECONDS)
        return sum(part.get(name, 0) for part in parts)


@cache
def _java_options() -> tuple[str, ...]:
    """Return options for short programs, with the archive of Spark's classes: six of them start it."""
    return (*QUICK_JAVA, "-Xshare:auto", *spark_java_options())


@contextmanager
def spark_hosts(
    distribution: KafkaDistribution,
    folder: Path,
    jars: tuple[str, ...],
    workers: int = 2,
    *,
    with_clocks: bool = False,
    with_cpu_limits: bool = False,
    broker_session_ms: int = 60_000,
) -> Iterator[SparkHosts]:
    """Return a cluster whose broker, master and workers run. This thread is on the broker's host.

    Args:
        with_clocks: Each host has a clock of its own (`SparkHosts.use_clocks`).
        with_cpu_limits: The CPU time of each worker's host can be limited (`Host.cpu`).
        broker_session_ms: So long a broker that was killed cannot be started again.
    """
    with ExitStack() as stack:
        limits = stack.enter_context(ExitStack())  # it is closed after the hosts
        network = stack.enter_context(Network(folder / "hosts"))
        cluster = SparkHosts(network, distribution, folder, jars, broker_session_ms=broker_session_ms)
        cluster.limits_cpu = limits if with_cpu_limits else None
        stack.enter_context(cluster.broker_host.entered())
        stack.enter_context(cluster.broker)
        if with_clocks:
            cluster.use_clocks()
        cluster.start_master()
        for number in range(workers):
            cluster.add_worker(f"worker{number + 1}")
        yield cluster


def new_application(
    cluster: SparkHosts, guarantee: str, config: str = "", partitions: int = 2
) -> ProcessApplication:
    """Return an application with its topics and document."""
    topics = Topics(cluster.servers)
    application = ProcessApplication(
        cluster.broker,
        topics,
        cluster.folder,
        cluster.jars,
        guarantee,
        config=config,
        partitions=partitions,
        servers=cluster.servers,
    )
    application.set_up()
    return application
