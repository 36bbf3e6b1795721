"""SIGKILL at random instants with exactly once: input and output are reconciled record by record."""

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
from tests.runtime.spark.processes import executors, python_workers
from toolchain.broker import Broker
from toolchain.broker.readiness import until

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(3000)]

_ROOT = Path(__file__).parents[3]
_RECORDS = 6_000
_KEYS = 50
_PARTITIONS = 2
_PATIENCE_SECONDS = 600.0
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
class Scene:
    """An application with more input than a few batches hold, and what a run of it needs."""

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
        """How much has come out, as far as the offsets tell."""
        return self.topics.written("counted")

    def finish(self, master: str = "local[2]") -> None:
        with self.run(master) as process:
            assert process.wait(_PATIENCE_SECONDS) == 0, self.log()

    def log(self) -> str:
        return (self.folder / "run.log").read_text(errors="replace")[-4000:]

    def reconcile(self) -> None:
        """Every record passed once, in order; every key counted from one up, without a gap."""
        wanted = [[] for _ in range(_PARTITIONS)]  # type: list[list[bytes | None]]
        for _, partition, _, _, _, value, _ in self.topics.get("in"):
            wanted[partition].append(value)
        passed = [record[5] for record in self.topics.get("passed")]
        assert sorted(map(str, passed)) == sorted(str(value) for values in wanted for value in values)
        found: dict[bytes | None, list[int]] = {}
        for _, _, _, _, key, value, _ in self.topics.get("counted"):
            found.setdefault(key, []).append(int.from_bytes(value or b"", "big"))
        assert len(found) == _KEYS
        for key, counts in found.items():
            assert counts == list(range(1, _RECORDS // _KEYS + 1)), key


@pytest.fixture
def scene(own_broker: Callable[[], Broker], spark_jars: tuple[str, ...], tmp_path: Path) -> Iterator[Scene]:
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
        yield Scene(broker, topics, tmp_path, spark_jars)


def kill_all(process: "subprocess.Popen[bytes]") -> None:
    """The driver, its JVM and whatever they started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _kill(pid: int) -> bool:
    """Return whether it was still there to be killed."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
        return True
    return False


def _until_counted(scene: Scene, least: int, process: "subprocess.Popen[bytes]") -> None:
    assert until(lambda: scene.counted() >= least or process.poll() is not None, _PATIENCE_SECONDS), (
        scene.log()
    )


def _instants(seed: int, number: int) -> list[int]:
    """How many records have come out when it strikes."""
    return sorted(random.Random(seed).sample(range(1, _RECORDS * 9 // 10), number))  # noqa: S311


@pytest.mark.parametrize("seed", [1, *(pytest.param(n, marks=pytest.mark.soak) for n in range(2, 11))])
def test_drivers_die(scene: Scene, seed: int) -> None:
    for least in _instants(seed, 3):
        with scene.run() as process:
            _until_counted(scene, least, process)
            kill_all(process)
    scene.finish()
    scene.reconcile()


def test_python_workers_die(scene: Scene) -> None:
    killed = 0
    with scene.run() as process:
        for least in _instants(11, 3):
            _until_counted(scene, least, process)
            killed += sum(_kill(worker) for worker in python_workers(process.pid)[:1])
        assert process.wait(_PATIENCE_SECONDS) == 0, scene.log()
    assert killed
    scene.reconcile()


def test_executors_die(scene: Scene) -> None:
    killed = 0
    with scene.run("local-cluster[2,1,1024]") as process:
        for least in _instants(12, 2):
            _until_counted(scene, least, process)
            killed += sum(_kill(executor) for executor in executors(process.pid)[:1])
        assert process.wait(_PATIENCE_SECONDS) == 0, scene.log()
    assert killed
    scene.reconcile()


def test_the_broker_is_restarted(scene: Scene) -> None:
    with scene.run() as process:
        for least in _instants(13, 2):
            _until_counted(scene, least, process)
            scene.broker.kill()
            scene.broker.start()
        assert process.wait(_PATIENCE_SECONDS) == 0, scene.log()
    scene.reconcile()


def test_checkpoints_and_state_are_lost(scene: Scene) -> None:
    """Offsets are where they were committed; state comes from the changelogs."""
    with scene.run() as process:
        _until_counted(scene, _RECORDS // 3, process)
        kill_all(process)
    for name in ("checkpoint", "state"):
        (scene.folder / name).rename(scene.folder / f"lost-{name}")
    scene.finish()
    scene.reconcile()
