"""An application in processes of its own, whose output is compared with its input record by record."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import attrs
from confluent_kafka import KafkaException

from headwater.kafka import Connection
from headwater.toolchain.broker import Broker
from headwater.toolchain.broker.readiness import until
from headwater_spark.driver.offsets import GroupOffsets
from headwater_spark.engine.records import InputRecord, OutputRecord
from tests.runtime.spark.kafka_topics import Topics
from tests.runtime.spark.processes import (
    all_ended,
    descendants,
    is_running,
    jvm,
    kill_groups,
    python_workers,
)
from tests.runtime.spark.programs import SUBMIT, java_options

TIMEOUT_SECONDS = 600.0
_END_SECONDS = 120.0
_ROOT = Path(__file__).parents[3]
KEYS = 50
_PARTITIONS = 2
_INPUTS = ("in", "counted-counts-repartition")
_DOCUMENT = """
application:
  id: counted
  config:
    processing.guarantee: GUARANTEE
    statestore.cache.max.bytes: 0
    repartition.purge.interval.ms: 200
    CONFIG
topology:
  - stream: {topic: in, as: read, serdes: {key: string, value: string}}
  - to: {topic: passed}
  - selectKey: {from: read, key: "split(value, '-')[0]"}
  - groupByKey:
  - count: {materialized: counts}
  - toStream:
  - to: {topic: counted, serdes: {key: string, value: long}}
"""


@attrs.define
class ProcessApplication:
    """Forwards each record and counts the records of each key. `folder` has the files of its processes.

    `fed` is the number of records in its source topic, which has `partitions` partitions.
    """

    broker: Broker
    topics: Topics
    folder: Path
    jars: tuple[str, ...]
    guarantee: str = "exactly_once_v2"
    fed: int = 0
    config: str = ""
    """One more line of the application's config."""
    partitions: int = _PARTITIONS
    state_folder: Path | None = None
    """None: in `folder`."""
    servers: str = ""
    """The bootstrap servers, if they are not the servers of `broker`."""
    document: str = _DOCUMENT

    def set_up(self) -> None:
        """Write the document and create the topics."""
        document = self.document.replace("GUARANTEE", self.guarantee).replace("CONFIG", self.config)
        (self.folder / "document.yaml").write_text(document)
        self.topics.create(dict.fromkeys(("in", "passed", "counted"), self.partitions))

    def feed(self, records: int) -> None:
        """Append records to the source topic: the keys of the counts take turns, and values ascend."""
        self.topics.send(self._next_records(records))
        self.fed += records

    def feed_at_once(self, records: int) -> None:
        """Append the same records in one transaction."""
        self.topics.send_at_once(self._next_records(records))
        self.fed += records

    def _next_records(self, records: int) -> Iterator[OutputRecord]:
        now = time.time_ns() // 1_000_000
        for each in range(self.fed, self.fed + records):
            value = b"%d-%d" % (each % KEYS, each)
            yield "in", each % self.partitions, str(each).encode(), value, now, ()

    @contextmanager
    def run(
        self,
        master: str = "local[2]",
        *,
        until_idle: bool = True,
        max_records: int = 400,
        options: Sequence[str] = (),
        submitted: bool = False,
    ) -> Iterator["subprocess.Popen[bytes]"]:
        """Run it as a process: with `headwater run`, or `submitted` by `spark-submit`."""
        spark = ["--master", master, "--jars", ",".join(self.jars), "--conf", "spark.ui.enabled=false"]
        spark += ["--conf", "spark.driver.memory=600m"]
        spark += ["--conf", f"spark.executor.extraJavaOptions={java_options()}"]
        spark += ["--conf", "spark.sql.streaming.pollingDelay=100ms"]
        if submitted:
            command = [str(SUBMIT), *spark, str(_ROOT / "spark_jobs" / "run_main.py")]
        else:
            command = [sys.executable, "-m", "headwater.cli", "run", *spark]
        command += [str(self.folder / "document.yaml"), "--max-records", str(max_records)]
        command += ["--bootstrap-server", self.servers or self.broker.bootstrap_servers]
        command += ["--checkpoint", str(self.folder / "checkpoint")]
        command += ["--state-dir", str(self.state_folder or self.folder / "state"), "--restarts", "30"]
        command += ["--until-idle"] if until_idle else []
        command += options
        with (self.folder / "run.log").open("ab") as log:
            process = subprocess.Popen(
                command,
                cwd=_ROOT if self.state_folder is None else self.folder,
                stdout=log,
                stderr=log,
                env={**os.environ, "PYTHONPATH": str(_ROOT), "PYSPARK_PYTHON": sys.executable},
                start_new_session=True,
            )
        try:
            yield process
        finally:
            kill_all(process)

    def counted(self) -> int:
        """Return the number of offsets in the output topic, transaction markers included."""
        found = -1

        def is_answered() -> bool:
            nonlocal found
            found = self.topics.written("counted")
            return found >= 0

        assert until(is_answered, TIMEOUT_SECONDS), "no broker answers"
        return found

    def await_counted(self, least: int, process: "subprocess.Popen[bytes]") -> None:
        """Wait until the output topic has `least` offsets, or the process has ended."""
        found = until(
            lambda: self.topics.written("counted") >= least or process.poll() is not None, TIMEOUT_SECONDS
        )
        assert found, self.log()

    def is_processed(self) -> bool:
        """Return whether all records are forwarded and counted, and their offsets are committed.

        False while no broker answers.
        """
        if min(self.topics.written("passed"), self.topics.written("counted")) < self.fed:
            return False  # without a new client, which takes more CPU time
        partitions = [(topic, each) for topic in _INPUTS for each in range(self.partitions)]
        # The last offset of a partition may be the offset of a transaction marker.
        most = len(partitions) if self.guarantee == "exactly_once_v2" else 0
        connection = Connection(bootstrap_servers=(self.servers or self.broker.bootstrap_servers,))
        # A client that was created before the repartition topic keeps not finding it.
        with closing(GroupOffsets(connection, "counted")) as offsets, suppress(KafkaException):
            lag = offsets.read_backlogs({"all": partitions}, {})["all"].lag
            return lag is not None and lag <= most
        return False

    def has_all_results(self) -> bool:
        """Return whether the results of all records are in the sinks, with exactly once."""
        sinks = ("passed", "counted")
        return all(self.topics.written(sink) >= self.fed for sink in sinks) and all(
            len(self.topics.get(sink)) >= self.fed for sink in sinks
        )

    def await_results(self, process: "subprocess.Popen[bytes]") -> None:
        """Wait until all records are forwarded and counted; fail if the application ends before."""
        until(lambda: process.poll() is not None or self.has_all_results(), TIMEOUT_SECONDS)
        assert process.poll() is None, self.log()

    def stop(self, process: "subprocess.Popen[bytes]") -> None:
        """Stop the process with SIGTERM, in order."""
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT_SECONDS) == os.EX_OK, self.log()

    def finish(self, master: str = "local[2]", *, submitted: bool = False) -> None:
        """Process the rest of the records."""
        with self.run(master, submitted=submitted) as process:
            assert process.wait(TIMEOUT_SECONDS) == 0, self.log()

    def log_size(self) -> int:
        return (self.folder / "run.log").stat().st_size

    def log(self, begin: int = 0) -> str:
        """Return the end of what was logged after so many bytes."""
        return (self.folder / "run.log").read_bytes()[begin:].decode(errors="replace")[-4000:]

    def has_logged(self, text: str, begin: int = 0) -> bool:
        """Return whether a text was logged after so many bytes, however much was logged since."""
        return text in (self.folder / "run.log").read_bytes()[begin:].decode(errors="replace")

    def check_results(self) -> None:
        """Check that every record was forwarded once and in order, and counted once, without a gap."""
        self.check_passed()
        self.check_counts("counted")

    def check_passed(self) -> None:
        """Check that every record was forwarded once and in order."""
        passed = self.passed()
        assert sorted(passed) == self._expected()
        for partition in range(self.partitions):
            written = [record for record in self.topics.get("passed") if record[1] == partition]
            for source in range(self.partitions):
                numbers = [number for number in map(_number, written) if number % self.partitions == source]
                assert numbers == sorted(numbers), (partition, source)

    def check_counts(self, topic: str) -> None:
        """Check that a topic has each count of each key, in order."""
        found: dict[bytes | None, list[int]] = {}
        for _, _, _, _, key, value, _ in self.topics.get(topic):
            found.setdefault(key, []).append(int.from_bytes(value or b"", "big"))
        assert len(found) == KEYS
        for key, counts in found.items():
            assert counts == list(range(1, self.fed // KEYS + 1)), key

    def check_at_least_once(self, faults: int, max_records: int, *, most: int | None = None) -> int:
        """Check that no record is lost, and that only the last batches before faults were processed again.

        `most` limits how many records may be forwarded again, by default one batch for each fault and for
        each failure of a query. Return how many were.

        A task writes first and commits its offsets afterwards. So after a fault the records of its last batch
        are forwarded again and counted again; after each failure of a query, too. The changelog topic has the
        last count of each key.
        """
        failures = (self.folder / "run.log").read_text(errors="replace").count("query failed")
        repeated = (faults + failures) * max_records if most is None else most
        passed, counted = self.passed(), self.last_counts("counted")
        assert sorted(set(passed)) == self._expected()
        assert len(passed) - self.fed <= repeated
        assert len(counted) == KEYS
        more = {key: count - self.fed // KEYS for key, count in counted.items()}
        assert min(more.values()) >= 0, more
        # A record that is written again to the repartition topic may be counted again behind it, too.
        assert sum(more.values()) <= 2 * repeated, more
        self.check_changelog()
        return len(passed) - self.fed

    def check_changelog(self) -> None:
        """Check that the changelog topic has the last count of each key."""
        assert self.last_counts("counted-counts-changelog") == self.last_counts("counted")

    def check_log(self) -> None:
        """Check that Spark did not warn of lost data."""
        assert not [line for line in self.log_lines() if "may have been lost" in line]

    def log_lines(self) -> list[str]:
        """Return all that was logged."""
        return (self.folder / "run.log").read_text(errors="replace").splitlines()

    def last_counts(self, topic: str) -> dict[bytes | None, int]:
        """Return key → the last count in a topic."""
        return {record[4]: int.from_bytes(record[5] or b"", "big") for record in self.topics.get(topic)}

    def passed(self) -> list[int]:
        return [_number(record) for record in self.topics.get("passed")]

    def _expected(self) -> list[int]:
        return list(range(self.fed))


def _number(record: InputRecord) -> int:
    return int((record[5] or b"").partition(b"-")[2])


def kill_all(process: "subprocess.Popen[bytes]") -> None:
    """Kill the driver, its JVM and their child processes, and wait until they have ended.

    Python workers end a moment after their JVM, and write files until then.
    """
    started = list(descendants(process.pid))
    kill_groups(process.pid)
    process.wait()
    assert until(lambda: not any(map(is_running, started)), _END_SECONDS)


def kill_driver(process: "subprocess.Popen[bytes]") -> None:
    """Kill the driver alone. Its JVM, whose standard input is closed then, and their child processes end."""
    started = list(descendants(process.pid))
    assert jvm(process.pid) in started
    process.kill()
    process.wait()
    assert until(lambda: all_ended(started), _END_SECONDS)


def kill_worker(process: "subprocess.Popen[bytes]") -> None:
    """Kill a Python worker; one that ends or starts at this moment may be missing."""
    found = until(lambda: any(map(kill, python_workers(process.pid)[:1])), _END_SECONDS)
    assert found, "no Python worker"


def kill(pid: int) -> bool:
    """Return whether the process existed."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
        return True
    return False
