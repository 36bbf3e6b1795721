"""The sides that `make bench` compares produce the same results and then end."""

from collections.abc import Callable, Iterator

import pytest
from pyspark.sql import SparkSession

from tests.bench.runtime.ours import Headwater
from tests.bench.runtime.plain import PlainPySpark
from tests.bench.runtime.sides import Side
from tests.bench.runtime.streams import KafkaStreamsPeer
from tests.bench.runtime.topics import Topics
from tests.bench.runtime.workloads import Job, Keys, Workload
from tests.runtime.spark.kafka_topics import Topics as WrittenTopics
from toolchain.broker.local import LocalBroker

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.oracle, pytest.mark.timeout(900)]

_RECORDS = 1_000


@pytest.fixture(scope="module")
def topics(kafka: LocalBroker, unique: Callable[[str], str]) -> Topics:
    return Topics(kafka.bootstrap_servers, unique("bench"))


@pytest.fixture(scope="module")
def sides(
    spark: SparkSession, kafka: LocalBroker, topics: Topics, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[Side]]:
    servers, folder = kafka.bootstrap_servers, tmp_path_factory.mktemp("bench")
    with KafkaStreamsPeer(servers, folder / "streams.log") as streams:
        yield [PlainPySpark(spark, servers, folder, topics), streams, Headwater(spark, servers, folder)]


def test_all_sides_map_alike(sides: list[Side], topics: Topics) -> None:
    workload = Workload(name="map", operator="map", lanes=2)
    expected = sorted(b"VALUE-%d" % number for number in range(_RECORDS // 2))
    for side in sides:
        job = _done(side, topics, workload)
        for lane in job.lanes:
            written = WrittenTopics(topics.servers).get(lane.sink)
            assert sorted(value or b"" for *_, value, _ in written) == expected, side.title


def test_all_sides_count_alike(sides: list[Side], topics: Topics) -> None:
    workload = Workload(name="count", operator="count", keys=Keys.SKEWED)
    expected: dict[bytes, int] = {}
    for number in range(_RECORDS):
        key = Keys.SKEWED.key(number)
        expected[key] = expected.get(key, 0) + 1
    for side in sides:
        (lane,) = _done(side, topics, workload).lanes
        written = WrittenTopics(topics.servers).get(lane.sink)
        counts = {key: _number(value or b"") for *_, key, value, _ in written}
        assert counts == expected, side.title


def _done(side: Side, topics: Topics, workload: Workload) -> Job:
    job = topics.job(side.name, workload, _RECORDS)
    with side.running(job, in_bulk=True) as running:
        running.await_end()
    return job


def _number(value: bytes) -> int:
    """Return a count: plain PySpark writes digits, Kafka Streams and Headwater a Java long."""
    return int(value) if value.isdigit() else int.from_bytes(value, "big")
