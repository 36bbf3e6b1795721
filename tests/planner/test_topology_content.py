"""Which documents declare the same topology, and digests that versions of Headwater have recorded."""

import attrs
import pytest

from headwater.model.compiled import CompiledApplication
from headwater.model.problems import Problem, ProblemCode
from headwater.model.records import SetupRecord
from headwater.planner.document_settings import (
    _EXPRESSIONS,
    CONTENT_VERSION,
    document_settings,
    setting_changes,
    topology_content,
)
from headwater.spec import build_operators
from tests.compiler.applications import compiled, document

_CALLS = """
application: {id: app}
topology:
  - stream: {topic: orders, timestamp: value.at, serdes: {key: string, value: json}, as: orders}
  - table: {topic: customers, materialized: customers, as: customers}
  - filter: {from: orders, where: value.amount > 0, name: positive}
  - leftJoin: {with: customers, value: "struct(left, right)", name: with-customers, as: joined}
  - split:
      branches:
        - {where: value.amount > 100, as: large}
        - {where: value.amount > 10, then: [{mapValues: {value: value.amount}}], as: medium}
      default: {then: [{to: small}]}
  - merge: {from: large, with: joined}
  - groupBy: {key: value.customer, name: by-customer}
  - windowedBy: {tumbling: {size: 5m, grace: 1m}}
  - aggregate: {init: 0.0, add: total + value.amount, materialized: {store: sums, retention: 1h}}
  - suppress: {until: windowCloses}
  - toStream:
  - to: {topic: sums, partitioner: "shop:ByRegion"}
"""
_MORE_CALLS = """
application: {id: app}
topology:
  - stream: {topic: clicks, as: clicks}
  - stream: {topic: views, offsetReset: earliest, as: views}
  - join: {from: clicks, with: views, window: {before: 1m, after: 2m, grace: 0s}, value: left}
  - processValues: {class: "shop:Score", stores: [seen]}
  - repartition: {name: by-user, partitions: 4}
  - groupByKey: {as: grouped}
  - cogroup: {add: total + value}
  - windowedBy: {session: {gap: 5m}}
  - aggregate: {init: 0, merge: left + right}
  - addStateStore: {name: seen, kind: keyValue, logging: false}
  - globalTable: {topic: regions, as: regions}
  - leftJoin: {from: views, with: regions, key: value.region, value: right}
  - to: {topicExpression: "concat('views-', value.region)"}
"""
_NODES = """
application: {id: app}
topology:
  - addSource: {name: orders, topic: orders, offsetReset: earliest, serdes: {key: string, value: json}}
  - addProcessor: {name: score, parents: [orders], class: "shop:Score", stores: [{name: seen}]}
  - addStateStore: {name: scores, kind: timestampedKeyValue, processors: [score]}
  - addSink: {name: by-reason, parents: [score], topicExpression: "concat('rejected-', value.reason)"}
"""
_DESCRIBED = """
application: {id: app}
describe:
  text: |
    Topologies:
       Sub-topology: 0
        Source: orders-source (topics: [orders])
          --> match
        Processor: match (stores: [matches])
          --> matched
          <-- orders-source
        Sink: matched (topic: paid-orders)
          <-- match

  stores:
    matches: {kind: keyValue}
"""
_EXPORTED = """
application: {id: app}
exported:
  application: {id: app, kafkaStreams: "4.1.1", protocol: classic, config: {replication.factor: "1"}}
  subtopologies:
    "0":
      nodes:
        KSTREAM-SOURCE-0000000000: {source: [sales]}
        by-customer-repartition-filter: {parents: [KSTREAM-SOURCE-0000000000]}
        by-customer-repartition-sink:
          {parents: [by-customer-repartition-filter], sink: by-customer-repartition}
    "1":
      nodes:
        by-customer-repartition-source: {source: [by-customer-repartition]}
        KSTREAM-AGGREGATE-0000000002: {parents: [by-customer-repartition-source], stores: [counts]}
        audit:
          {parents: [KSTREAM-AGGREGATE-0000000002], extractor: com.acme.Audit, partitioner: acme.ByRegion}
  repartitionTopics:
    by-customer-repartition: {partitions: 5}
  stores:
    counts: {kind: windowed, retention: 65m}
  copartitioned: []
"""

_PROBLEM = Problem(
    code=ProblemCode.SCHEMA_VIOLATION,
    summary="s",
    application="app",
    expected="e",
    found="f",
    why="w",
    fix="f",
)


def _record(of: CompiledApplication) -> SetupRecord:
    return SetupRecord(of.application.id, {}, settings=document_settings(of))


@pytest.mark.parametrize(
    ("text", "recorded"),
    [
        (_CALLS, "1:sha256:1aab108dccab321a"),
        (_MORE_CALLS, "1:sha256:71e0e7ce91f3ff52"),
        (_NODES, "1:sha256:d0a1e38a28ba0921"),
        (_DESCRIBED, "1:sha256:3d4bd72236af6fe6"),
        (_EXPORTED, "1:sha256:6ad9de5b9a88a59e"),
    ],
    ids=["calls", "more calls", "nodes", "described", "exported"],
)
def test_a_digest_is_the_one_that_earlier_versions_have_recorded(text: str, recorded: str) -> None:
    assert document_settings(compiled(text))["topology"] == recorded, (
        "Every stack of this topology would show `topology: changed`, although its document is the same. "
        "If the content changes on purpose, raise CONTENT_VERSION in planner/document_settings.py, and "
        f"replace the digests here.\n{topology_content(document(text))}"
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("as: orders", "as: all-orders"),  # with its uses
        ("value.amount > 0", "'value.amount>0 '"),
        ("total + value.amount", '"total\\n  + value.amount"'),
        ("{from: large, with: joined}", "{with: joined, from: large}   # a comment"),
        ("  - suppress: {until: windowCloses}\n", "  - suppress:\n      until: windowCloses\n"),
        ("name: with-customers, as: joined", "as: joined, name: with-customers"),
        ("as: joined}\n  - split:\n", "as: joined}\n  - split:\n      from: joined\n"),
        ("  - toStream:\n  - to: {", "  - toStream: {as: last}\n  - to: {from: last, "),
    ],
)
def test_another_way_to_write_the_same_is_no_change(old: str, new: str) -> None:
    assert old in _CALLS
    edited = _CALLS.replace(old, new)
    if old == "as: orders":
        edited = edited.replace("from: orders", "from: all-orders")
    assert topology_content(document(edited)) == topology_content(document(_CALLS))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("value.amount > 0", "value.amount > 1"),
        ("value.at", "value.time"),
        ("shop:ByRegion", "shop:ByCountry"),
        ("from: large,", "from: medium,"),
        ("with: joined", "with: medium"),
        ("{from: orders, ", "{from: customers, "),
        ("  - filter: {from: orders, where: value.amount > 0, name: positive}\n", ""),
        ("value.amount > 10,", "value.amount > 20,"),
        ("[{mapValues: {value: value.amount}}]", "[{peek: }]"),
        ("default: {then: [{to: small}]}", "default: true"),
        ("\n      default: {then: [{to: small}]}", ""),
        ("size: 5m", "size: 6m"),
        ("retention: 1h", "retention: 2h"),
    ],
)
def test_another_topology_is_a_change(old: str, new: str) -> None:
    assert old in _CALLS
    edited = compiled(_CALLS.replace(old, new))
    assert [change.text for change in setting_changes(edited, _record(compiled(_CALLS)))] == ["changed"]


@pytest.mark.parametrize("version", ["", "0:", f"{CONTENT_VERSION + 1}:"])
def test_a_digest_of_another_version_is_not_compared(version: str) -> None:
    of = compiled(_CALLS)
    settings = {**document_settings(of), "topology": f"{version}sha256:{'0' * 16}"}
    assert setting_changes(of, attrs.evolve(_record(of), settings=settings)) == ()


def test_problems_found_while_reading_have_no_part_in_it() -> None:
    read = document(_EXPORTED)
    assert read.exported is not None
    wrong = attrs.evolve(read.exported.nodes, problems=(_PROBLEM,))
    other = attrs.evolve(read, exported=attrs.evolve(read.exported, nodes=wrong))
    assert topology_content(other) == topology_content(read)


def test_all_expressions_of_the_schema_are_normalized() -> None:
    of_schema = build_operators._EXPRESSIONS
    assert of_schema - {"topicExpression"} | {"topic_expression"} <= _EXPRESSIONS
