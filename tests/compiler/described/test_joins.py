"""Imported texts: which nodes are joins, and which topics they co-partition."""

import time

import attrs
import pytest

from headwater.compiler import compile_document
from headwater.describe import read_description, write_description
from headwater.model.compiled import CompiledApplication, InternalTopic
from headwater.model.nodes import Node, NodeTopology, ProcessorNode, SourceNode
from headwater.model.problems import Severity
from headwater.model.topology import (
    Application,
    DescribedTopology,
    Protocol,
    StoreDetail,
    TopologyDocument,
)
from tests.compiler.applications import compiled, counts
from tests.compiler.imported_texts import (
    AT,
    JOINS,
    STORES,
    compile_described,
    imported,
)


def test_copartitioning_follows_from_the_stores_that_joins_share() -> None:
    described = imported(JOINS, stores={name: StoreDetail("window", 1) for name in STORES})
    application = compile_described(described, {"a": 3, "b": 5, "c": 5})
    assert application.copartition_groups == (("app-ab-left-repartition", "b", "c"),)
    assert counts(application) == counts(compiled(JOINS, {"a": 3, "b": 5, "c": 5}))
    assert application.problems == ()


def without_locations(application: CompiledApplication) -> list[InternalTopic]:
    return [attrs.evolve(topic, at=None) for topic in application.internal_topics]


@pytest.mark.parametrize("names", ["", ", name: ab", ", name: ab, storeName: s"])
@pytest.mark.parametrize("call", ["leftJoin", "outerJoin"])
def test_an_eager_join_is_imported_without_its_shared_store(call: str, names: str) -> None:
    join = f"{{{call}: {{from: a, with: b, window: {{difference: 1h, eager: true}}{names}}}}}"
    text = f"topology: [{{stream: {{topic: a, as: a}}}}, {{stream: {{topic: b, as: b}}}}, {join}]"
    original = compiled(text, {"a": 3, "b": 3})
    stores = [name.removesuffix("-changelog") for name in counts(original)]
    assert len(stores) == 2

    day_ms = 24 * 60 * 60 * 1000
    described = imported(text, stores={name: StoreDetail("window", day_ms) for name in stores})
    application = compile_described(described, {"a": 3, "b": 3})

    assert without_locations(application) == without_locations(original)
    assert application.copartition_groups == original.copartition_groups == (("a", "b"),)


def test_a_suppressed_table_is_not_copartitioned_as_in_kafka_streams() -> None:
    text = """
    topology:
      - stream: {topic: a, as: a}
      - table: {topic: b}
      - suppress: {until: timeLimit, timeLimit: 1s, name: late, as: late}
      - join: {from: a, with: late, name: j}
    """
    assert compile_described(imported(text), {"a": 2, "b": 2}).copartition_groups == ()


SHARED = """
topology:
  - addSource: {name: one, topic: a}
  - addSource: {name: two, topic: b}
  - addProcessor: {name: left, parents: [one]}
  - addProcessor: {name: right, parents: [two]}
  - addStateStore: {name: shared, kind: keyValue, processors: [left, right]}
"""


def test_custom_processors_that_share_a_store_are_reported_not_joined() -> None:
    application = compile_described(imported(SHARED, stores={"shared": StoreDetail()}), {"a": 1, "b": 2})
    assert application.copartition_groups == ()
    assert [p.severity for p in application.problems] == [Severity.WARNING]
    assert application.problems[0].expected == "a group in `copartitioned`, if their keys are joined: [a, b]"


def test_a_table_that_thousands_of_streams_join() -> None:
    nodes: list[Node] = [SourceNode("t-source", ("t",)), ProcessorNode("t", ("t-source",), ("store",))]
    for number in range(2500):
        nodes.append(SourceNode(f"source-{number}", (f"in-{number}",)))
        nodes.append(ProcessorNode(f"KSTREAM-JOIN-{number:010d}", (f"source-{number}",), ("store",)))
    read, problems = read_description(write_description(NodeTopology(tuple(nodes))))
    assert problems == ()
    partitions = {"t": 3} | {f"in-{number}": 3 for number in range(2500)}
    started = time.process_time()
    application = compile_described(DescribedTopology(read, AT), partitions)
    assert time.process_time() - started < 2
    assert len(application.copartition_groups[0]) == 2501
    assert counts(application) == {"store-changelog": 3}


SHARED_STORE = """
topology:
  - addStateStore: {name: seen, kind: KIND, retention: 1h, windowSize: 1m, shared: true}
  - table: {topic: orders, as: orders}
  - transformValues: {from: orders, stores: [seen], as: changed}
  - leftJoin: {from: changed, with: changed, name: KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-0000000003-topic}
"""
TABLE_BELOW_A_TABLE = """
  - table: {topic: rates, as: rates}
  - transformValues: {from: rates, name: marked, stores: [seen]}
"""
TABLE_BELOW_AN_AGGREGATION = """
  - stream: rates
  - groupByKey: {}
  - count: {as: rates}
  - transformValues: {from: rates, name: marked, stores: [seen]}
"""
TABLE_BELOW_A_NAMED_TABLE = """
  - table: {topic: rates, as: rates}
  - mapValues: {from: rates, name: rounded, materialized: rounded-rates, as: rounded}
  - transformValues: {from: rounded, name: marked, stores: [seen]}
"""
STREAM = """
  - stream: {topic: rates, as: rates}
  - processValues: {from: rates, name: marked, stores: [seen]}
"""


@pytest.mark.parametrize(
    ("kind", "reader"),
    [
        ("keyValue", TABLE_BELOW_A_TABLE),
        ("keyValue", TABLE_BELOW_AN_AGGREGATION),
        ("keyValue", TABLE_BELOW_A_NAMED_TABLE),
        ("window", TABLE_BELOW_A_TABLE),
        ("window", STREAM),
        ("session", STREAM),
    ],
)
def test_a_named_processor_that_shares_a_store_with_transform_values_is_no_join(
    kind: str, reader: str
) -> None:
    text = SHARED_STORE.replace("KIND", kind) + reader
    if kind == "keyValue":
        text = text.replace(", retention: 1h, windowSize: 1m", "")

    application = compile_described(
        imported(text, stores={"seen": StoreDetail(kind, 3_600_000)}), {"orders": 3, "rates": 1}
    )

    assert application.copartition_groups == (("orders",),)
    assert "seen-changelog" in counts(application)


def test_a_named_join_of_a_stream_with_a_transformed_table_is_a_join() -> None:
    text = """
topology:
  - table: {topic: orders, as: orders}
  - transformValues: {from: orders, materialized: seen, as: changed}
  - stream: rates
  - leftJoin: {with: changed, name: marked}
"""
    described = imported(text, stores={"seen": StoreDetail("timestampedKeyValue")})

    application = compile_described(described, {"orders": 3, "rates": 3})

    assert application.copartition_groups == (("orders", "rates"),)


@pytest.mark.parametrize("reduce", ["{from: grouped}", "{from: grouped, materialized: latest}"])
def test_a_cogroup_has_the_sources_above_a_repartition_that_was_merged(reduce: str) -> None:
    text = f"""
    application: {{id: app, config: {{topology.optimization: merge.repartition.topics}}}}
    topology:
      - stream: {{topic: a}}
      - selectKey: {{as: keyed}}
      - groupBy: {{from: keyed, as: grouped}}
      - reduce: {reduce}
      - mapValues: {{from: keyed}}
      - groupByKey: {{as: values}}
      - cogroup: {{from: grouped, as: both}}
      - cogroup: {{from: both, with: values}}
      - aggregate: {{from: both}}
    """
    application = compile_described(imported(text), {"a": 3})
    assert application.copartition_groups == compiled(text, {"a": 3}).copartition_groups == (("a",),)


def test_a_named_join_of_a_table_with_its_own_stream_is_a_group_of_one_topic() -> None:
    text = """
    application: {id: app, protocol: streams}
    topology:
      - stream: {topic: a}
      - repartition: {partitions: 1}
      - table: {topic: b}
      - groupBy: {}
      - reduce: {as: table}
      - toStream: {}
      - join: {with: table, name: named}
    """
    topics = {"a": 2, "b": 2}
    described = imported(text, repartition_partitions={"KSTREAM-REPARTITION-0000000001-repartition": 1})
    application = Application("app", AT, protocol=Protocol.STREAMS)
    found = compile_document(TopologyDocument(application, described=described), topics)
    assert counts(found) == counts(compiled(text, topics))
    assert counts(found)["KTABLE-AGGREGATE-STATE-STORE-0000000009-repartition"] == 1
