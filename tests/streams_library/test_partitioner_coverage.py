"""Which topics the static partitioner covers: what the compiler decides, and a real application does."""

from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from headwater.compiler import compile_document
from headwater.model.problems import ProblemCode
from headwater.spec import load_text
from headwater.toolchain.broker.local import LocalBroker
from headwater_spark.engine.partitioners.hashing import default_partition
from tests.streams_library.application import TestedApplication
from tests.streams_library.applications import NEWEST, OLDEST, Applications

pytestmark = [pytest.mark.broker, pytest.mark.oracle]

_INITIAL, _PARTITIONS = 2, 3
_CONFIG = {
    "producer_partitioner_class": "io.headwater.streams.partitioning.StaticPartitioner",
    "producer_static_partitioner_class": "initial-hash",
    "producer_static_partitioner_initial_partitions": str(_INITIAL),
}
_OWN = {"class-repartition", "-class", "-windowed"}


@pytest.mark.parametrize("version", [NEWEST, pytest.param(OLDEST, marks=pytest.mark.soak)])
def test_exactly_the_topics_that_the_document_names_are_not_covered(
    applications_of: Callable[[str], Applications],
    kafka: LocalBroker,
    unique: Callable[[str], str],
    tmp_path: Path,
    version: str,
) -> None:
    java = applications_of(version)
    application = TestedApplication(unique("shop"), kafka.bootstrap_servers, kind="partitioned")
    sinks = [f"{application.sink}{kind}" for kind in ("-plain", "-class", "-windowed")]
    for topic in (application.source, *sinks):
        application.create(topic, _PARTITIONS)
    configs = application.configs(**_CONFIG)
    file = tmp_path / "shop.yaml"
    java.export(application.id, application.topology, configs, file)
    loaded = load_text(file.read_text(encoding="utf-8"), "shop.yaml")
    assert not loaded.problems, loaded.problems
    compiled = compile_document(loaded.documents[0], dict.fromkeys((application.source, *sinks), _PARTITIONS))
    written = {sink for part in compiled.subtopologies for sink in part.sinks}
    assert written == {
        *sinks,
        *(t.name for t in compiled.internal_topics if not t.name.endswith("-changelog")),
    }
    assert compiled.partitioned_sinks is not None
    named = {sink.topic for sink in compiled.partitioned_sinks}
    assert {str(topic).removeprefix(f"{application.id}-").removeprefix("totals") for topic in named} == _OWN
    # One is about the topics between sub-topologies, one about sinks.
    codes = [problem.code for problem in compiled.problems]
    assert codes == [ProblemCode.STATIC_PARTITIONING_INCOMPLETE] * 2

    application.produce_static(200, initial=_INITIAL)
    java.start(application.id, application.topology, configs)
    java.running(application.id)
    observed = {topic for topic in sorted(written) if not _is_covered(application, topic)}
    java.close(application.id)
    assert observed == named


def _is_covered(application: TestedApplication, topic: str) -> bool:
    """Return whether each record is on the partition that `initial-hash` chooses; waits for records."""
    application.await_true(lambda: application.end_offsets(topic) > 0, topic)
    consumer = Consumer(
        {
            "bootstrap.servers": application.bootstrap_servers,
            "group.id": "coverage",
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, number, 0) for number in range(_PARTITIONS)])
    ended, keys, is_covered = 0, set[bytes](), True
    # Until enough keys are there: a single key may be on its partition by chance.
    while ended < _PARTITIONS or len(keys) < _INITIAL * _PARTITIONS:
        message = consumer.poll(30)
        assert message is not None
        if message.error() is not None:
            ended += 1
            continue
        key = message.key()
        assert key is not None
        keys.add(key)
        is_covered &= message.partition() == default_partition(key, _INITIAL)
    consumer.close()
    return is_covered
