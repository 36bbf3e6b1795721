"""Recorded cases with data on the real runtime, with Spark and a real broker.

`make test` runs one case or more with each operator that no other test runs on Spark, `make fuzz` all cases.
`runtime/engine/test_recorded_cases` runs all of them without Spark.

Input is written in runs of records of one topic, and each run is processed before the next one: within a run
the engine's order is that of Kafka Streams. Without a cache, batches merge no updates.
"""

import base64
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any
from uuid import uuid4

import attrs
import pytest
import yaml
from pyspark.sql import SparkSession

from headwater.kafka import Connection
from headwater.model.topology import TopologyDocument
from headwater.toolchain.broker import Broker
from headwater_spark.driver.application import StreamsApplication
from headwater_spark.driver.preflight import check_runnable
from headwater_spark.driver.run_settings import RunSettings
from headwater_spark.driver.states import ClientState
from tests.oracle.recorded import Case, Json, cases_with
from tests.runtime.recorded_data import encoded, formats, lines, shown
from tests.runtime.spark.kafka_topics import Topics

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.usefixtures("packed_batches"),
]

_CONFIG = {
    "processing.guarantee": "exactly_once_v2",
    "statestore.cache.max.bytes": "0",
    "__emit.interval.ms.kstreams.windowed.aggregation__": "0",
    "__emit.interval.ms.kstreams.outer.join.spurious.results.fix__": "0",
    "repartition.purge.interval.ms": "3600000",  # the records of repartition topics are compared
}
_OF_SIX_TASKS = (
    "<app>-paid-clicks-store-other-join-store-changelog",
    "<app>-paid-clicks-store-this-join-store-changelog",
)
"""Topics with six partitions, and one in the test driver: here each task numbers duplicates separately."""
_KINDS = {"foreignKey", "hopping", "pattern", "session", "sliding", "topics", "tumbling", "window"}
"""Options that name the kind of a join, a window or a source."""
_IN_SHORT = (
    "chained_repartitions",
    "cogroup_two",
    "global_table_inner",
    "hopping_count",
    "in_memory_stores",
    "multi_topic_source",
    "papi_unlogged",
    "pattern_source",
    "sliding_count",
    "split_branches",
    "stateless_chain",
    "stream_stream_outer_named_stores",
    "suppress_window_close",
    "to_table_repartition",
)
"""The cases of `make test`."""
_ELSEWHERE = {
    "foreignKey": "test_kip_878_test_plan",
    "leftJoin": "test_order_of_kafka_streams",
    "merge": "test_dropped_records",
    "process": "test_kip_878_test_plan",
    "table": "test_order_of_kafka_streams",
}
"""Operator → the module of `make test` that compares its results on Spark: each start takes CPU time."""
_CASES = [
    case
    for case in cases_with("input.jsonl", "output.jsonl")
    if case.json("case.json")["group"] != "third-party"
]
CASES = [
    pytest.param(case, id=case.name, marks=[] if case.name in _IN_SHORT else [pytest.mark.soak])
    for case in _CASES
]


def _operators(case: Case) -> set[str]:
    """Return the operators of the case, and the kinds of its joins, windows and sources."""
    steps = [step for each in yaml.safe_load(case.text("document.yaml"))["topology"] for step in each.items()]
    return {operator for call, options in steps for operator in (call, *(_KINDS & set(options or ())))}


def test_the_short_series_has_each_operator_that_no_other_module_has() -> None:
    every, short = set[str](), set[str]()
    for case in _CASES:
        every |= _operators(case)
        short |= _operators(case) if case.name in _IN_SHORT else set()
    assert short == every - _ELSEWHERE.keys()
    for operator, module in _ELSEWHERE.items():
        source = Path(__file__).with_name(f"{module}.py").read_text()
        assert re.search(rf"\b{operator}\b\W*:", source), (operator, module)


@pytest.fixture
def topics(keeping_broker: Broker) -> Iterator[Topics]:
    """Return the topics of a broker without topics: cases share names."""
    topics = Topics(keeping_broker.bootstrap_servers, keeps_producer=True)
    topics.delete_all()
    yield topics
    topics.delete_all()


@pytest.mark.parametrize("case", CASES)
def test_a_recorded_case(
    case: Case, spark: SparkSession, keeping_broker: Broker, topics: Topics, tmp_path: Path
) -> None:
    document = _uncached(case.document())
    sources, sinks = formats(case, "sources"), formats(case, "sinks")
    topics.create(dict.fromkeys({**sources, **sinks}, 1))
    application = StreamsApplication(
        spark,
        document,
        check_runnable(document).programs,
        RunSettings(
            connection=Connection(bootstrap_servers=(keeping_broker.bootstrap_servers,)),
            checkpoint=str(tmp_path / "checkpoint"),
            state_folder=tmp_path / "state",
        ),
    )
    application.start()
    try:
        for topic, run in groupby(_records(case), key=lambda each: each["topic"]):
            key, value = sources[topic]
            topics.put(
                topic,
                [(_data(key, each["key"]), _data(value, each["value"]), each["timestamp"]) for each in run],
            )
            application.wait_until_idle()
        assert application.state is ClientState.RUNNING, [q.failure for q in application.queries.values()]
    finally:
        application.close()
    outputs = {
        topic: [
            {
                "key": None if key is None else shown(sinks[topic][0].deserialize(key)),
                "value": None if value is None else shown(sinks[topic][1].deserialize(value)),
                "timestamp": timestamp,
            }
            for _, _, _, timestamp, key, value, _ in topics.get(topic)
        ]
        for topic in sinks
    }
    _check_outputs(case, outputs)
    _check_internal(case, document, topics)


def _check_outputs(case: Case, outputs: dict[str, list[Json]]) -> None:
    expected: dict[str, list[Json]] = defaultdict(list)
    for record in lines(case, "output.jsonl"):
        expected[record["topic"]].append({name: record[name] for name in ("key", "value", "timestamp")})
    for topic, found in outputs.items():
        assert _multiset(found) == _multiset(expected[topic]), topic
        assert _by_key(found) == _by_key(expected[topic]), topic
    if case.has("final_tables.json"):
        for topic, rows in case.json("final_tables.json").items():
            latest = {str(record["key"]): record for record in outputs.get(topic, [])}
            alive = [record for record in latest.values() if record["value"] is not None]
            expected_rows = [{name: row[name] for name in ("key", "value", "timestamp")} for row in rows]
            assert _multiset(alive) == _multiset(expected_rows), topic


def _check_internal(case: Case, document: TopologyDocument, topics: Topics) -> None:
    if not case.has("internal_records.jsonl"):
        return
    expected: dict[str, list[Json]] = defaultdict(list)
    for record in lines(case, "internal_records.jsonl"):
        expected[record["topic"]].append({
            name: record[name] for name in ("key_base64", "value_base64", "timestamp")
        })  # fmt: skip
    for topic, records in expected.items():
        found = [
            {"key_base64": encoded(key), "value_base64": encoded(value), "timestamp": timestamp}
            for _, _, _, timestamp, key, value, _ in topics.get(
                topic.replace("<app>", document.application.id, 1)
            )
        ]
        if topic in _OF_SIX_TASKS:
            assert _unnumbered(found) == _unnumbered(records), topic
        elif any(record["timestamp"] is None for record in records):
            # What a suppression buffers is written when Kafka Streams commits: there after each record.
            # Its values name topic and offset, which are others here.
            assert _alive(found) == _alive(records), topic
        else:
            assert _multiset(found) == _multiset(records), topic


def _unnumbered(records: list[Json]) -> Counter[tuple[bytes, str, int]]:
    """Return the records of a join's store, with keys without the number that distinguishes duplicates."""
    return Counter(
        (base64.b64decode(record["key_base64"])[:-4], record["value_base64"], record["timestamp"])
        for record in records
    )


def _alive(records: list[Json]) -> set[str]:
    latest = {record["key_base64"]: record["value_base64"] for record in records}
    return {key for key, value in latest.items() if value is not None}


def _uncached(document: TopologyDocument) -> TopologyDocument:
    """Return the document without a cache, and with an id of which the broker has no committed offsets."""
    id_ = f"{document.application.id}-{uuid4().hex[:10]}"
    config = {**document.application.config, **_CONFIG}
    application = attrs.evolve(document.application, id=id_, config=config)
    return attrs.evolve(document, application=application)


def _records(case: Case) -> Iterator[Json]:
    return (each for each in lines(case, "input.jsonl") if "topic" in each)


def _data(serde: Any, part: Any) -> bytes | None:  # noqa: ANN401 - JSON
    if part is None:
        return None
    data: bytes = serde.serialize(part)
    return data


def _multiset(records: list[Json]) -> Counter[str]:
    return Counter(map(str, records))


def _by_key(records: list[Json]) -> dict[str, list[Json]]:
    found: dict[str, list[Json]] = defaultdict(list)
    for record in records:
        found[str(record["key"])].append(record)
    return found
