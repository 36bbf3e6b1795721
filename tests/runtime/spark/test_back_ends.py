"""One document on both back ends and a real broker: the sink gets the same records."""

import random
from collections import defaultdict
from collections.abc import Mapping

import pytest
from confluent_kafka import Producer
from structlog.testing import capture_logs

from headwater.compiler import compile_document
from headwater.model.compiled import Backend
from headwater.spec import load_text
from tests.runtime.engine.expressions.random_sql import random_bytes
from tests.runtime.spark.applications import Cluster

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(900)]

_CHAIN = """
  - stream: {topic: IN, serdes: {key: string, value: string}}
  - filter: {where: "value is not null and value not like 'a%'"}
  - mapValues: {value: "upper(trim(value)) || ':' || right(coalesce(key, ''), 2) || string(partition)"}
  - selectKey: {key: "if(length(value) % 3 = 0, topic, left(value, 2))"}
  - filterNot: {where: "key = '' or instr(value, 'C,') > 2"}
  - to: {topic: OUT}
"""
_ON_TASKS = {
    "processing.exception.handler": "org.apache.kafka.streams.errors.LogAndFailProcessingExceptionHandler"
}
"""The default value, set explicitly: then tasks execute the sub-topology."""
_PARTITIONS = 2
_RECORDS = 300


@pytest.fixture(params=[False, True], ids=["rows", "packed"])
def packed(request: pytest.FixtureRequest) -> bool:
    """Whether batches of any size are packed."""
    if request.param:
        request.getfixturevalue("packed_batches")
    return bool(request.param)


@pytest.mark.usefixtures("generated_code")
def test_both_back_ends_write_the_same_records(
    cluster: Cluster,
    packed: bool,  # noqa: FBT001 - a fixture
) -> None:
    source = cluster.unique("in")
    cluster.topics.create({source: _PARTITIONS})
    _feed(cluster.servers, source)
    config = {"processing.guarantee": "exactly_once_v2"}
    with capture_logs() as logs:
        native, tasks = (_sink(cluster, source, each) for each in (config, config | _ON_TASKS))
    assert {log["evaluated"] for log in logs if log["event"] == "records packed"} == (
        {True, False} if packed else set()
    )
    assert sum(map(len, native.values())) > _RECORDS / 4
    assert native == tasks


def _sink(cluster: Cluster, source: str, config: Mapping[str, str]) -> dict[tuple[int, bytes], list[object]]:
    """Return (partition, last byte of the value) → records in order: time, key, value, headers."""
    topology = _CHAIN.replace("IN", source)
    wanted = Backend.TASKS if "processing.exception.handler" in config else Backend.NATIVE
    loaded = load_text(f"application: {{id: a, config: {dict(config)}}}\ntopology:{topology}", "test.yaml")
    compiled = compile_document(loaded.documents[0], {source: _PARTITIONS, "OUT": _PARTITIONS})
    assert [part.backend for part in compiled.subtopologies] == [wanted]
    with cluster.application(topology, config, _PARTITIONS) as running:
        running.application.start()
        running.application.wait_until_idle()
        streams: dict[tuple[int, bytes], list[object]] = defaultdict(list)
        for _, partition, _, time, key, value, headers in cluster.topics.get(running.sink):
            assert value is not None
            streams[partition, value[-1:]].append((time, key, value, headers))
        return dict(streams)


def _feed(servers: str, topic: str) -> None:
    chance = random.Random(7)  # noqa: S311 - the same records in each run
    producer = Producer({"bootstrap.servers": servers, "log_level": 0})
    for number in range(_RECORDS):
        headers: list[tuple[str, str | bytes | None]] = [("n", str(number).encode()), ("empty", None)]
        producer.produce(
            topic,
            random_bytes(chance),
            random_bytes(chance),
            number % _PARTITIONS,
            timestamp=1_700_000_000_000 + chance.randrange(1_000_000),
            headers=headers[: number % 3],
        )
    assert producer.flush(60) == 0
