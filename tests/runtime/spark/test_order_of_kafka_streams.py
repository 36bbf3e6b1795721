"""Backlogs of many shapes: the results are those of the real Kafka Streams on the same broker."""

import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition
from pyspark.sql import SparkSession

from headwater.toolchain.broker import Broker
from headwater.toolchain.broker.readiness import until
from tests.oracle.running_application import running_application
from tests.runtime.engine.fuzzing.draft import VALUE
from tests.runtime.engine.fuzzing.functions import PARTIAL
from tests.runtime.spark.kafka_topics import Topics
from tests.runtime.spark.random_runs import Conditions, Json, Runner

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.oracle, pytest.mark.timeout(900)]

_START_MS = 1_700_000_000_000
_ROWS, _EVENTS, _KEYS = 60, 450, 20
_RECORDS_AT_ONCE = 200
_SECONDS = 240.0
_UNCACHED = {
    "statestore.cache.max.bytes": "0",
    "__emit.interval.ms.kstreams.windowed.aggregation__": "0",
    "auto.offset.reset": "earliest",
}
_JOINER = {"value": PARTIAL.join, **VALUE}
"""The one joiner of the Java program: the left text and the end of both."""
_chance = random.Random(14)  # noqa: S311 - the same records in each run

Times = tuple[Sequence[int], Sequence[int]]
"""The times of one topic and of the other one, in the order of the offsets; no time occurs twice."""


def _alternating() -> Times:
    """Both topics advance together, the first one with fewer records."""
    step = _EVENTS // _ROWS + 1
    return [step * each for each in range(_ROWS)], [each for each in range(step * _ROWS) if each % step]


def _in_bursts() -> Times:
    """Now one topic has records and now the other, in runs of any length."""
    rows, events, time = list[int](), list[int](), 0
    while time < _ROWS + _EVENTS:
        run = range(time, time + _chance.choice([1, 10, 100]))
        (rows if _chance.random() < _ROWS / _EVENTS else events).extend(run)
        time = run.stop
    return rows, events


def _out_of_order() -> Times:
    """The times of each partition jump back and forth."""
    times = list(range(_ROWS + _EVENTS))
    chunks = [times[at : at + 70] for at in range(0, len(times), 70)]
    shuffled = [time for chunk in chunks for time in _chance.sample(chunk, len(chunk))]
    return shuffled[::8], [time for number, time in enumerate(shuffled) if number % 8]


_SHAPES: Mapping[str, Times] = {
    "behind": (range(_ROWS), range(_ROWS, _ROWS + _EVENTS)),
    "ahead": (range(_EVENTS, _EVENTS + _ROWS), range(_EVENTS)),
    "alternating": _alternating(),
    "bursts": _in_bursts(),
    "jumping": _out_of_order(),
    "empty": ((), range(_EVENTS)),
}
_WINDOWED: Mapping[str, Times] = {
    "streams": _alternating(),
    "sparse": (range(0, 40 * _ROWS, 40), [each for each in range(_EVENTS) if each % 40]),
}


def _document(id_: str, sink: str) -> Json:
    """Return a topology with a sub-topology for each shape; its sinks begin with `sink`."""
    steps: list[Json] = []
    for shape in _SHAPES:
        steps += [
            {"table": {"topic": f"rows-{shape}", "as": f"rows-{shape}"}},
            {"stream": {"topic": f"events-{shape}", "as": f"events-{shape}"}},
            {"leftJoin": {"from": f"events-{shape}", "with": f"rows-{shape}", **_JOINER}},
            {"to": {"topic": f"{sink}-{shape}"}},
        ]
    for shape in _WINDOWED:
        steps += [
            {"stream": {"topic": f"rows-{shape}", "as": f"rows-{shape}"}},
            {"stream": {"topic": f"events-{shape}", "as": f"events-{shape}"}},
            {
                "join": {
                    "from": f"events-{shape}",
                    "with": f"rows-{shape}",
                    "window": {"difference": 100, "grace": 0},
                    **_JOINER,
                }
            },
            {"to": {"topic": f"{sink}-{shape}"}},
        ]
    return {"application": {"id": id_, "config": _UNCACHED}, "topology": steps}


def test_backlogs_give_the_results_of_kafka_streams(
    spark: SparkSession,
    keeping_broker: Broker,
    tmp_path_factory: pytest.TempPathFactory,
    unique: Callable[[str], str],
) -> None:
    servers = keeping_broker.bootstrap_servers
    topics, id_ = Topics(servers), unique("streams")
    shapes = {**_SHAPES, **_WINDOWED}
    conditions = Conditions("exactly_once_v2", 1, _RECORDS_AT_ONCE, stops=False, lost=frozenset())
    runner = Runner(spark, topics, servers, tmp_path_factory.mktemp("order"), unique)
    document = _document("ours", "ours")
    with runner.application(document, _UNCACHED, {f"ours-{shape}" for shape in shapes}, conditions) as run:
        topics.create({f"theirs-{shape}": 1 for shape in shapes})
        for shape, (rows, events) in shapes.items():
            topics.put(f"rows-{shape}", [_record("r", time) for time in rows])
            topics.put(f"events-{shape}", [_record("e", time) for time in events])
        with running_application(servers, _document(id_, "theirs")):
            assert until(lambda: _is_processed(servers, id_, sorted(run.sources())), _SECONDS)
        run.start().wait_until_idle()
        different = {
            shape: (found, expected)
            for shape in shapes
            if (found := _values(topics, f"ours-{shape}")) != (expected := _values(topics, f"theirs-{shape}"))
        }
        assert len(_values(topics, "theirs-behind")) == _KEYS
    assert not different


def _record(kind: str, time: int) -> tuple[bytes, bytes, int]:
    return b"k%d" % (time % _KEYS), f"{time}{kind}".encode(), _START_MS + time


def _is_processed(servers: str, group: str, sources: Sequence[str]) -> bool:
    """Return whether the group has committed the end of each topic; false while no broker answers that."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": group})
    try:
        partitions = [TopicPartition(topic, 0) for topic in sources]
        ends = {each.topic: consumer.get_watermark_offsets(each, _SECONDS)[1] for each in partitions}
        found = consumer.committed(partitions, _SECONDS)
        return all(max(each.offset, 0) == ends[each.topic] for each in found)
    except KafkaException:
        return False
    finally:
        consumer.close()


def _values(topics: Topics, sink: str) -> dict[str, list[str]]:
    """Return key → values, in order."""
    values: dict[str, list[str]] = defaultdict(list)
    for _, _, _, _, key, value, _ in topics.get(sink):
        values[(key or b"").decode()].append((value or b"").decode())
    return values
