"""Offsets of records that no task receives are committed: Kafka's tools show no lag.

Spark SQL drops records in filters, and records of aborted transactions reach no reader.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING

import attrs
import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession
from structlog.testing import capture_logs

from headwater.kafka import Connection
from headwater.toolchain.broker.readiness import until
from headwater_spark.driver.offsets import GroupOffsets
from headwater_spark.driver.queries import task_function
from tests.runtime.spark.applications import COUNT, TIMEOUT_SECONDS, Cluster, RunningApplication

if TYPE_CHECKING:
    from headwater_spark.driver.queries.task_function import ArrowFunction
    from headwater_spark.engine.records import TopicPartition
    from headwater_spark.worker.messages import BatchRequest

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(900)]

_FILTER = """
  - stream: {topic: IN, serdes: {key: string, value: string}}
  - filter: {where: "value = 'kept'"}
  - to: {topic: OUT}
"""
_MERGE = """
  - stream: {topic: IN, as: left, serdes: {key: string, value: string}}
  - stream: {topic: OTHER, as: right, serdes: {key: string, value: string}}
  - merge: {from: left, with: right}
  - process: {class: "tests.runtime.spark.test_dropped_records:pass_on"}
  - to: {topic: OUT, serdes: {key: string, value: string}}
"""
_EXACTLY_ONCE = {"processing.guarantee": "exactly_once_v2"}
_AT_LEAST_ONCE = {"processing.guarantee": "at_least_once"}
_PARTITIONS = 3


def pass_on(record: object) -> object:
    return record


@attrs.frozen
class _Committed:
    """The end offsets of the input of an application, and what it has committed."""

    offsets: GroupOffsets

    def reaches_the_end(self, *topics: str) -> bool:
        """Return whether there is no lag; the coordinator shows a transaction's offsets after its end."""
        return until(lambda: self._lag(*topics) == 0, TIMEOUT_SECONDS)

    def _lag(self, *topics: str) -> int:
        partitions: list[TopicPartition] = [(topic, each) for topic in topics for each in range(_PARTITIONS)]
        committed = self.offsets.last_committed(partitions)
        ends = self.offsets.written_end_offsets(partitions)
        return sum(ends[each] - committed.get(each, 0) for each in partitions)


@contextmanager
def _committed(running: RunningApplication) -> Iterator[_Committed]:
    offsets = GroupOffsets(Connection(bootstrap_servers=(running.cluster.servers,)), running.id)
    try:
        yield _Committed(offsets)
    finally:
        offsets.close()


def test_a_query_that_reads_in_steps_commits_offsets_of_records_that_were_deleted_before_its_start(
    cluster: Cluster,
) -> None:
    """With a remote checkpoint, all batches of several topics are read in steps. Here is nothing to read."""
    _mount(cluster.spark, "steps", str(cluster.folder))
    remote = attrs.evolve(cluster, checkpoint="viewfs://steps/mounted/checkpoint")
    other = cluster.unique("other")
    cluster.topics.create({other: _PARTITIONS})
    topology = _MERGE.replace("OTHER", other)
    with (
        remote.application(topology, _EXACTLY_ONCE, _PARTITIONS) as running,
        _committed(running) as committed,
    ):
        cluster.topics.commit(running.id, {running.source: 0, other: 0})
        running.feed(b"a", b"b", partition=0)
        cluster.topics.delete_records(running.source, 2)
        running.application.start()
        running.application.wait_until_idle()
        assert committed.reaches_the_end(running.source, other), "no record is left"
        running.feed(b"c", partition=0)
        running.application.wait_until_idle()
        assert running.values() == [b"c"]


@attrs.define
class _Prepared:
    """The functions that were prepared: (whether rows are shuffled, packed), and the request."""

    found: list[tuple[tuple[bool, bool], "BatchRequest"]] = attrs.field(factory=list)

    def check_that_each_is_prepared_once(self) -> None:
        """A function is prepared again only if the request has changed."""
        kinds = {kind for kind, _ in self.found}
        assert {is_shuffled for is_shuffled, _ in kinds} == {False, True}, "rows, and ticks"
        for kind in kinds:
            requests = [request for of_kind, request in self.found if of_kind == kind]
            assert all(first != second for first, second in pairwise(requests))


@pytest.fixture
def prepared(monkeypatch: pytest.MonkeyPatch) -> _Prepared:
    noted, create = _Prepared(), task_function._arrow_function

    def create_function(constant: "BatchRequest", *, shuffled: bool, packed: bool) -> "ArrowFunction":
        noted.found.append(((shuffled, packed), constant))
        return create(constant, shuffled=shuffled, packed=packed)

    monkeypatch.setattr(task_function, "_arrow_function", create_function)
    return noted


@pytest.mark.usefixtures("generated_code")
@pytest.mark.parametrize(
    ("is_packed", "config"),
    [
        pytest.param(False, _EXACTLY_ONCE, id="rows, exactly once"),
        pytest.param(True, _AT_LEAST_ONCE, id="packed, at least once"),
        pytest.param(False, _AT_LEAST_ONCE, id="rows, at least once", marks=pytest.mark.soak),
        pytest.param(True, _EXACTLY_ONCE, id="packed, exactly once", marks=pytest.mark.soak),
    ],
)
def test_records_that_were_deleted_dropped_by_a_filter_or_aborted_are_committed(
    cluster: Cluster,
    request: pytest.FixtureRequest,
    prepared: _Prepared,
    config: Mapping[str, str],
    is_packed: bool,  # noqa: FBT001 - parameter of a test
) -> None:
    """Records are deleted before the start, and dropped while the application runs and before a restart.

    A batch of rows and a commit without rows are Spark jobs with different functions. To prepare one takes
    longer than a small batch, so both are kept.
    """
    if is_packed:
        request.getfixturevalue("packed_batches")
    with cluster.application(_FILTER, config, _PARTITIONS) as running, _committed(running) as committed:
        cluster.topics.commit(running.id, {running.source: 0})
        running.feed(b"kept", b"kept", partition=0)
        cluster.topics.delete_records(running.source, 2)
        running.application.start()
        running.application.wait_until_idle()
        assert committed.reaches_the_end(running.source), "no record is left"
        for partition in range(_PARTITIONS):
            running.feed(b"dropped", b"dropped", partition=partition)
        running.application.wait_until_idle()
        assert committed.reaches_the_end(running.source), "no record is kept"
        _abort_records(cluster.servers, running.source)
        assert committed.reaches_the_end(running.source), "no record is committed"
        running.feed(b"dropped", b"dropped", partition=0)
        running.feed(b"kept", b"dropped", partition=1)
        running.application.wait_until_idle()
        assert committed.reaches_the_end(running.source), "one task has a record"
        running.application.close()
        prepared.check_that_each_is_prepared_once()
        running.feed(b"kept", b"dropped", partition=0)
        running.feed(b"dropped", partition=2)
        running.restart()
        running.application.wait_until_idle()
        assert committed.reaches_the_end(running.source)
        assert running.values() == [b"kept", b"kept"]
        assert running.application.state.name == "RUNNING"


@pytest.mark.parametrize(
    "topology",
    [
        # In `make test`, the test above aborts records of one topic.
        pytest.param(COUNT, id="one topic", marks=pytest.mark.soak),
        pytest.param(_MERGE, id="two topics"),
    ],
)
def test_aborted_records_are_committed(cluster: Cluster, topology: str) -> None:
    """With two topics, a task may have records of one of them only. Records are processed by tasks."""
    other = cluster.unique("other")
    cluster.topics.create({other: _PARTITIONS})
    topology = topology.replace("OTHER", other)
    with (
        cluster.application(topology, _EXACTLY_ONCE, _PARTITIONS) as running,
        _committed(running) as committed,
    ):
        topics = [running.source, *([other] if other in topology else [])]
        running.application.start()
        for topic in topics:
            _abort_records(cluster.servers, topic)
        assert committed.reaches_the_end(*topics), "no record is committed"
        running.feed(b"a", partition=1)
        _abort_records(cluster.servers, topics[-1])
        assert committed.reaches_the_end(*topics)
        running.application.wait_until_idle()
        assert len(running.values()) == 1


def _abort_records(servers: str, topic: str) -> None:
    producer = Producer({"bootstrap.servers": servers, "transactional.id": topic, "log_level": 0})
    producer.init_transactions(TIMEOUT_SECONDS)
    producer.begin_transaction()
    for partition in range(_PARTITIONS):
        producer.produce(topic, b"aborted", b"k", partition)
    assert producer.flush(TIMEOUT_SECONDS) == 0
    producer.abort_transaction(TIMEOUT_SECONDS)


@pytest.mark.usefixtures("generated_code", "packed_batches")
def test_batches_of_a_remote_checkpoint_are_packed_and_committed(cluster: Cluster) -> None:
    """The driver cannot read the offsets in such a checkpoint. Hadoop mounts a folder at a URL."""
    _mount(cluster.spark, "remote", str(cluster.folder))
    remote = attrs.evolve(cluster, checkpoint="viewfs://remote/mounted/checkpoint")
    with capture_logs() as logs, remote.application(_FILTER, _EXACTLY_ONCE, _PARTITIONS) as running:
        for partition in range(_PARTITIONS):
            running.feed(b"kept", b"dropped", partition=partition)
        running.application.start()
        running.application.wait_until_idle()
        running.feed(b"dropped", b"dropped", partition=2)
        running.application.wait_until_idle()
        with _committed(running) as committed:
            assert committed.reaches_the_end(running.source)
        assert running.values() == [b"kept"] * _PARTITIONS
    assert [log for log in logs if log["event"] == "records packed"]
    assert (cluster.folder / "checkpoint" / running.id / "0").is_dir()


def _mount(spark: SparkSession, name: str, folder: str) -> None:
    configuration = spark.sparkContext._jsc.hadoopConfiguration()
    configuration.set(f"fs.viewfs.mounttable.{name}.link./mounted", f"file://{folder}")
