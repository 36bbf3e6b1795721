"""The programs that `make bench` compares produce the same results and then end."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import attrs
import pytest
from pyspark.sql import SparkSession

from headwater.toolchain.broker.local import LocalBroker
from tests.bench.runtime.cases import FURTHER, STATEFUL
from tests.bench.runtime.ours import Headwater
from tests.bench.runtime.plain import PlainPySpark
from tests.bench.runtime.programs import Program
from tests.bench.runtime.streams import KafkaStreamsPeer
from tests.bench.runtime.topics import Topics
from tests.bench.runtime.workloads import Job, Keys, Workload
from tests.quick_java import QUICK_JAVA
from tests.runtime.spark.kafka_topics import Topics as WrittenTopics

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.oracle, pytest.mark.timeout(900)]

_RECORDS = 1_000
_WORKLOADS = [pytest.param(each, id=each.name) for each in (*STATEFUL, *FURTHER)]
"""Other tests compare each operator with Kafka Streams; these compare what `make bench` runs."""


@pytest.fixture(scope="module")
def topics(kafka: LocalBroker, unique: Callable[[str], str]) -> Topics:
    return Topics(kafka.bootstrap_servers, unique("bench"))


@pytest.fixture(scope="module")
def programs(
    spark: SparkSession, kafka: LocalBroker, topics: Topics, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[Program]]:
    servers, folder = kafka.bootstrap_servers, tmp_path_factory.mktemp("bench")
    with ExitStack() as stack:
        with pytest.MonkeyPatch.context() as patched:
            patched.setenv("JDK_JAVA_OPTIONS", " ".join(QUICK_JAVA))
            streams = stack.enter_context(KafkaStreamsPeer(servers, folder / "streams.log"))
        yield [PlainPySpark(spark, servers, folder, topics), streams, Headwater(spark, servers, folder)]


@pytest.mark.soak  # `test_all_programs_count_the_same` runs all programs, too
def test_all_programs_map_to_the_same_values(programs: list[Program], topics: Topics) -> None:
    workload = Workload(name="map", operator="map", chains=2)
    expected = sorted(b"VALUE-%d" % number for number in range(_RECORDS // 2))
    for program in programs:
        job = _done(program, topics, workload)
        for chain in job.chains:
            written = WrittenTopics(topics.servers).get(chain.sink)
            assert sorted(value or b"" for *_, value, _ in written) == expected, program.title


def test_all_programs_count_the_same(programs: list[Program], topics: Topics) -> None:
    workload = Workload(name="count", operator="count", keys=Keys.SKEWED)
    expected: dict[bytes, int] = {}
    for number in range(_RECORDS):
        key = Keys.SKEWED.key(number)
        expected[key] = expected.get(key, 0) + 1
    for program in programs:
        (chain,) = _done(program, topics, workload).chains
        written = WrittenTopics(topics.servers).get(chain.sink)
        counts = {key: _number(value or b"") for *_, key, value, _ in written}
        assert counts == expected, program.title


@pytest.mark.soak  # the same
@pytest.mark.parametrize("workload", _WORKLOADS)
def test_stateful_workloads_have_the_same_results(
    programs: list[Program], topics: Topics, workload: Workload
) -> None:
    results = []
    records = 30 * _RECORDS if workload.operator == "suppress" else _RECORDS  # some windows close
    keys = Keys.THOUSAND if workload.operator == "foreign-key join" else Keys.FEW  # each row has a partner
    for program in programs[1:]:  # plain PySpark does not run them
        (chain,) = _done(program, topics, attrs.evolve(workload, keys=keys), records).chains
        written = [(key, value) for *_, key, value, _ in WrittenTopics(topics.servers).get(chain.sink)]
        results.append(_without_order(workload, written))
    assert results[0]
    assert results[0] == results[1]


def _done(program: Program, topics: Topics, workload: Workload, records: int = _RECORDS) -> Job:
    job = topics.job(program.name, workload, records)
    with program.running(job, in_bulk=True) as running:
        running.await_end()
    return job


def _without_order(workload: Workload, written: list[tuple[bytes | None, bytes | None]]) -> object:
    """Return what the order of reading two topics and the times of commits do not change."""
    last = dict(written)
    if workload.operator in {"stream-stream join", "stream-global table join"}:
        return Counter(written)  # each pair is joined once; a global table is read before the stream
    if workload.operator in {"session", "eight operators"}:
        # A session that grew, or a count that a filter removes, has a tombstone only if a commit wrote it.
        return {key: value for key, value in last.items() if value is not None}
    if "table" in workload.name:
        return set(last)  # a joined row has the latest row of the other topic
    return last


def _number(value: bytes) -> int:
    """Return a count: plain PySpark writes digits, Kafka Streams and Headwater a Java long."""
    return int(value) if value.isdigit() else int.from_bytes(value, "big")
