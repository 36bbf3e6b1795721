"""SIGKILL at random moments with exactly once: output is compared with the input record by record."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import attrs
import pytest

from tests.runtime.spark.kafka_topics import Topics
from tests.runtime.spark.processes import executors, jvm, python_workers
from toolchain.broker import Broker
from toolchain.broker.readiness import until

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(3000)]

_ROOT = Path(__file__).parents[3]
_RECORDS = 6_000
_KEYS = 50
_RESTART = 75
_PARTITIONS = 2
_TIMEOUT_SECONDS = 600.0
_DOCUMENT = """
application:
  id: counted
  config: {processing.guarantee: exactly_once_v2, statestore.cache.max.bytes: 0}
topology:
  - stream: {topic: in, as: read, serdes: {key: string, value: string}}
  - to: {topic: passed}
  - selectKey: {from: read, key: "split(value, '-')[0]"}
  - groupByKey:
  - count: {materialized: counts}
  - toStream:
  - to: {topic: counted, serdes: {key: string, value: long}}
"""


@attrs.frozen
class Application:
    """An application with input for many batches, and the files of its processes."""

    broker: Broker
    topics: Topics
    folder: Path
    jars: tuple[str, ...]

    @contextmanager
    def run(self, master: str = "local[2]") -> Iterator["subprocess.Popen[bytes]"]:
        command = [sys.executable, "-m", "infra.cli", "run", str(self.folder / "document.yaml")]
        command += ["--bootstrap-server", self.broker.bootstrap_servers, "--master", master]
        command += ["--jars", ",".join(self.jars), "--conf", "spark.ui.enabled=false"]
        command += ["--conf", "spark.driver.memory=600m", "--max-records", "400", "--until-idle"]
        command += [
            "--checkpoint",
            str(self.folder / "checkpoint"),
            "--state-dir",
            str(self.folder / "state"),
        ]
        command += ["--restarts", "30"]
        with (self.folder / "run.log").open("ab") as log:
            process = subprocess.Popen(
                command,
                cwd=_ROOT,
                stdout=log,
                stderr=log,
                env={**os.environ, "PYTHONPATH": str(_ROOT)},
                start_new_session=True,
            )
        try:
            yield process
        finally:
            kill_all(process)

    def counted(self) -> int:
        """Return the number of offsets in the output topic."""
        return self.topics.written("counted")

    def finish(self, master: str = "local[2]") -> None:
        with self.run(master) as process:
            assert process.wait(_TIMEOUT_SECONDS) == 0, self.log()

    def log(self) -> str:
        return (self.folder / "run.log").read_text(errors="replace")[-4000:]

    def check_results(self) -> None:
        """Check that every record was forwarded once, and every key counted from one up without a gap."""
        expected = [[] for _ in range(_PARTITIONS)]  # type: list[list[bytes | None]]
        for _, partition, _, _, _, value, _ in self.topics.get("in"):
            expected[partition].append(value)
        passed = [record[5] for record in self.topics.get("passed")]
        assert sorted(map(str, passed)) == sorted(str(value) for values in expected for value in values)
        found: dict[bytes | None, list[int]] = {}
        for _, _, _, _, key, value, _ in self.topics.get("counted"):
            found.setdefault(key, []).append(int.from_bytes(value or b"", "big"))
        assert len(found) == _KEYS
        for key, counts in found.items():
            assert counts == list(range(1, _RECORDS // _KEYS + 1)), key


@pytest.fixture
def application(
    own_broker: Callable[[], Broker], spark_jars: tuple[str, ...], tmp_path: Path
) -> Iterator[Application]:
    (tmp_path / "document.yaml").write_text(_DOCUMENT)
    with own_broker() as broker:
        topics = Topics(broker.bootstrap_servers)
        topics.create({"in": _PARTITIONS, "passed": _PARTITIONS, "counted": _PARTITIONS})
        now = time.time_ns() // 1_000_000
        for partition in range(_PARTITIONS):
            own = range(partition, _RECORDS, _PARTITIONS)
            topics.put(
                "in", [(str(each).encode(), b"%d-%d" % (each % _KEYS, each), now) for each in own], partition
            )
        yield Application(broker, topics, tmp_path, spark_jars)


def kill_all(process: "subprocess.Popen[bytes]") -> None:
    """Kill the driver, its JVM and their child processes."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def kill(pid: int) -> bool:
    """Return whether the process existed."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
        return True
    return False


def _until_counted(application: Application, least: int, process: "subprocess.Popen[bytes]") -> None:
    assert until(lambda: application.counted() >= least or process.poll() is not None, _TIMEOUT_SECONDS), (
        application.log()
    )


def _kill_points(seed: int, number: int) -> list[int]:
    """Return the numbers of output records at which a process is killed."""
    return sorted(random.Random(seed).sample(range(1, _RECORDS * 9 // 10), number))  # noqa: S311


@pytest.mark.parametrize("seed", [1, *(pytest.param(n, marks=pytest.mark.soak) for n in range(2, 11))])
def test_results_are_exact_after_kills_of_the_driver(application: Application, seed: int) -> None:
    for least in _kill_points(seed, 3):
        with application.run() as process:
            _until_counted(application, least, process)
            kill_all(process)
    application.finish()
    application.check_results()


@pytest.mark.parametrize("seed", [21, *(pytest.param(n, marks=pytest.mark.soak) for n in range(22, 32))])
def test_results_are_exact_after_kills_of_the_jvm_alone(application: Application, seed: int) -> None:
    """The driver's process notices it and ends with exit code 75, so that it is started again."""
    for least in _kill_points(seed, 3):
        with application.run() as process:
            _until_counted(application, least, process)
            if process.poll() is None:
                kill(jvm(process.pid))
                assert process.wait(_TIMEOUT_SECONDS) == _RESTART, application.log()
    application.finish()
    application.check_results()


def test_results_are_exact_after_kills_of_python_workers(application: Application) -> None:
    killed = 0
    with application.run() as process:
        for least in _kill_points(11, 3):
            _until_counted(application, least, process)
            killed += sum(kill(worker) for worker in python_workers(process.pid)[:1])
        assert process.wait(_TIMEOUT_SECONDS) == 0, application.log()
    assert killed
    application.check_results()


def test_results_are_exact_after_kills_of_executors(application: Application) -> None:
    killed = 0
    with application.run("local-cluster[2,1,1024]") as process:
        for least in _kill_points(12, 2):
            _until_counted(application, least, process)
            killed += sum(kill(executor) for executor in executors(process.pid)[:1])
        assert process.wait(_TIMEOUT_SECONDS) == 0, application.log()
    assert killed
    application.check_results()


def test_results_are_exact_after_restarts_of_the_broker(application: Application) -> None:
    with application.run() as process:
        for least in _kill_points(13, 2):
            _until_counted(application, least, process)
            application.broker.kill()
            application.broker.start()
        assert process.wait(_TIMEOUT_SECONDS) == 0, application.log()
    application.check_results()


def test_results_are_exact_after_loss_of_checkpoint_and_state(application: Application) -> None:
    """Committed offsets are in Kafka; state is restored from the changelogs."""
    with application.run() as process:
        _until_counted(application, _RECORDS // 3, process)
        kill_all(process)
    for name in ("checkpoint", "state"):
        (application.folder / name).rename(application.folder / f"lost-{name}")
    application.finish()
    application.check_results()
