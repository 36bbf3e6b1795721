"""An application in processes of its own whose topics get more partitions, and its results."""

import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import attrs

from headwater.toolchain.broker.readiness import until
from tests.control.conftest import HttpClient
from tests.runtime.spark.process_application import TIMEOUT_SECONDS, ProcessApplication

if TYPE_CHECKING:
    import subprocess

_URL = re.compile(r"endpoint started.*?(http://[0-9.:]+)")
_COLORS = re.compile(r"\x1b\[[0-9;]*m")
_KEYS = 40
_REGIONS = 7
DOCUMENT = """
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
        (self.folder / "document.yaml").write_text(DOCUMENT)
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

    def endpoint(self, logged: int) -> HttpClient | None:
        """Return the endpoint that was started after so many bytes were logged."""
        text = (self.folder / "run.log").read_bytes()[logged:].decode(errors="replace")
        found = _URL.search(_COLORS.sub("", text))
        return None if found is None else HttpClient(found[1])

    def has_all_results(self) -> bool:
        """Return whether the results of all records are in the sinks."""
        sinks = ("passed", "counted", "regions")
        return all(self.topics.written(sink) >= self.fed for sink in sinks) and all(
            len(self.topics.get(sink)) >= self.fed for sink in sinks
        )

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


def processors_status(endpoint: HttpClient | None) -> dict[str, Any]:
    """Return the status of the processors; empty while the application does not answer."""
    try:
        return endpoint.get("/control/processors").json if endpoint is not None else {}
    except (OSError, ValueError):
        return {}


@contextmanager
def running(
    application: GrowingApplication, max_records: int = 1000, options: Sequence[str] = ()
) -> Iterator[tuple["subprocess.Popen[bytes]", int]]:
    """Run the application; yield its process, and the size of its log before."""
    log = application.folder / "run.log"
    logged = log.stat().st_size if log.exists() else 0
    options = ["--http", "127.0.0.1:0", *options]
    with application.run(until_idle=False, max_records=max_records, options=options) as process:
        yield process, logged


def await_running(application: GrowingApplication, logged: int) -> HttpClient:
    def is_running() -> bool:
        return processors_status(application.endpoint(logged)).get("state") == "RUNNING"

    assert until(is_running, TIMEOUT_SECONDS), application.log()
    endpoint = application.endpoint(logged)
    assert endpoint is not None
    return endpoint
