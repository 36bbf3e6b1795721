"""KIP-287: partitions are added while an application with processors is killed again and again.

Each record of (topic, partition, offset) is processed once, in the order of its key, and counted once.
"""

import shutil
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import pytest

from tests.runtime.spark.kafka_topics import Topics
from tests.runtime.spark.process_application import ProcessApplication, kill, kill_all, kill_worker
from tests.runtime.spark.processes import python_workers
from toolchain.broker import Broker

if TYPE_CHECKING:
    import subprocess

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1800)]

_KEYS = 40
_REGIONS = 7
_DOCUMENT = """
application:
  id: counted
  processors: 2
  config:
    partition.autoscaling.enabled: true
    processing.guarantee: exactly_once_v2
    statestore.cache.max.bytes: 0
topology:
  - stream: {topic: in, as: read, serdes: {key: string, value: string}}
  - groupByKey:
  - count: {materialized: counts}
  - toStream:
  - to: {topic: counted, serdes: {key: string, value: long}}
  - mapValues: {from: read, value: "concat(string(partition), '/', string(offset), '/', value)"}
  - to: {topic: passed}
  - selectKey: {from: read, key: "split(value, '-')[0]"}
  - groupByKey:
  - count: {materialized: regions}
  - toStream:
  - to: {topic: regions, serdes: {key: string, value: long}}
"""


@attrs.define
class GrowingApplication(ProcessApplication):
    """Counts records per key in the sub-topology of the source, and per region behind a repartition topic."""

    def set_up(self) -> None:
        (self.folder / "document.yaml").write_text(_DOCUMENT)
        self.topics.create(dict.fromkeys(("in", "passed", "counted", "regions"), 2))

    def feed(self, records: int) -> None:
        """Append records as Kafka's producers do: by the hash of the key and the present partition count."""
        now = time.time_ns() // 1_000_000
        rows = [
            (b"k%d" % (each % _KEYS), b"r%d-%d" % (each % _REGIONS, each), now + each)
            for each in range(self.fed, self.fed + records)
        ]
        self.topics.put_by_key("in", rows)
        self.fed += records

    def expand(self, partitions: int) -> None:
        """Add partitions; `passed` keeps its own, so that it shows the order of the records of a key."""
        for topic in ("counted", "regions", "in"):
            self.topics.expand(topic, partitions)

    def await_progress(self, offsets: int, process: "subprocess.Popen[bytes]") -> None:
        """Wait until the output topic has so many offsets more than now."""
        self.await_counted(self.counted() + offsets, process)
        assert process.poll() is None, self.log()

    def check_results(self) -> None:
        passed: list[tuple[int, int]] = []
        numbers: dict[bytes | None, list[int]] = defaultdict(list)
        for record in self.topics.get("passed"):
            partition, offset, value = (record[5] or b"").split(b"/")
            passed.append((int(partition), int(offset)))
            numbers[record[4]].append(int(value.partition(b"-")[2]))
        assert sorted(passed) == sorted(record[1:3] for record in self.topics.get("in"))
        assert len(numbers) == _KEYS
        for key, found in numbers.items():
            assert found == sorted(found), f"the order of {key!r}"
        self._check_counts("counted", lambda each: b"k%d" % (each % _KEYS))
        self._check_counts("regions", lambda each: b"r%d" % (each % _REGIONS))

    def _check_counts(self, sink: str, key_of: Callable[[int], bytes]) -> None:
        expected: dict[bytes, int] = defaultdict(int)
        for each in range(self.fed):
            expected[key_of(each)] += 1
        counts: dict[bytes | None, list[int]] = defaultdict(list)
        for record in self.topics.get(sink):
            counts[record[4]].append(int.from_bytes(record[5] or b"", "big"))
        assert {key: sorted(found) for key, found in counts.items()} == {
            key: list(range(1, number + 1)) for key, number in expected.items()
        }


@pytest.fixture
def application(
    own_broker: Callable[[], Broker], spark_jars: tuple[str, ...], tmp_path: Path
) -> Iterator[GrowingApplication]:
    with own_broker() as broker:
        application = GrowingApplication(broker, Topics(broker.bootstrap_servers), tmp_path, spark_jars)
        application.set_up()
        yield application


def test_nothing_is_lost_or_repeated_by_kills_while_partitions_are_added(
    application: GrowingApplication,
) -> None:
    application.feed(800)
    with application.run(until_idle=False) as process:
        application.await_progress(400, process)
        application.expand(4)
        application.feed(800)
        application.await_progress(500, process)
        kill_all(process)
    application.feed(400)
    with application.run(until_idle=False) as process:
        application.await_progress(100, process)
        kill_worker(process)
        for worker in python_workers(process.pid):
            kill(worker)
        application.topics.expand("counted-regions-repartition", 4)
        application.feed(400)
        application.await_progress(300, process)
        kill_all(process)
    for folder in ("checkpoint", "state"):
        shutil.rmtree(application.folder / folder)
    application.expand(8)
    application.feed(800)
    with application.run(until_idle=False) as process:
        application.await_progress(500, process)
        kill_all(process)
    application.finish()
    application.check_results()
    assert application.topics.partitions("counted-counts-changelog") == 2
    assert application.topics.partitions("counted-regions-changelog") == 2
