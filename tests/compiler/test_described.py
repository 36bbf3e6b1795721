"""Imported texts: derived details, missing details, and details of the document."""

import time

import attrs
import pytest

from headwater.compiler import build_nodes, compile_document
from headwater.describe import read_description, write_description
from headwater.model.compiled import CompiledApplication, InternalTopic
from headwater.model.nodes import ChangelogKind, Node, NodeTopology, ProcessorNode, SourceNode
from headwater.model.problems import ProblemCode, Severity
from headwater.model.topology import (
    Application,
    DescribedTopology,
    Protocol,
    StoreDetail,
    TopologyDocument,
    UnknownDetails,
)
from headwater.spec import parse_document
from tests.compiler.applications import codes, compiled, counts, document, topic
from tests.compiler.imported_texts import AGGREGATION, AT, compile_described, imported, missing_details

JOINS = """
topology:
  - stream: {topic: a}
  - selectKey: {key: x, as: a}
  - stream: {topic: b, as: b}
  - join: {from: a, with: b, window: {difference: 1h}, name: ab, storeName: s, as: ab}
  - table: {topic: c, as: c}
  - leftJoin: {from: ab, with: c, name: abc}
"""


def test_copartitioning_follows_from_the_stores_that_joins_share() -> None:
    described = imported(JOINS, stores={name: StoreDetail("window", 1) for name in STORES})
    application = compile_described(described, {"a": 3, "b": 5, "c": 5})
    assert application.copartition_groups == (("app-ab-left-repartition", "b", "c"),)
    assert counts(application) == counts(compiled(JOINS, {"a": 3, "b": 5, "c": 5}))
    assert application.problems == ()


STORES = ("s-this-join-store", "s-other-join-store")


def test_missing_retention_of_join_stores_is_reported_by_name() -> None:
    problems = missing_details(imported(JOINS))
    assert sorted(problem.node or "" for problem in problems) == sorted(STORES)
    assert {problem.found for problem in problems} == {"no retention"}
    assert all(f"`describe.stores.{problem.node}`" in problem.fix for problem in problems)


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


def test_the_missing_kind_of_an_aggregations_store_is_reported() -> None:
    described = imported(AGGREGATION)
    problems = missing_details(described)
    assert [(p.node, p.found, p.severity) for p in problems] == [("counts", "no kind", Severity.ERROR)]
    application = compile_described(described, {"in": 4})
    assert counts(application) == {"by-repartition": 4, "counts-changelog": 4}


def test_details_of_the_document_are_used() -> None:
    described = imported(
        AGGREGATION,
        stores={"counts": StoreDetail("timestampedWindow", 3_600_000)},
        repartition_partitions={"by-repartition": 6},
    )
    application = compile_described(described, {"in": 4})
    assert counts(application) == {"by-repartition": 6, "counts-changelog": 6}
    assert topic(application, "counts-changelog").config["retention.ms"] == "90000000"
    assert application.problems == ()


def test_names_that_are_not_in_the_text_are_errors() -> None:
    unknown = UnknownDetails(stores={"gone": ("logging",)}, repartitions=("left-repartition",))
    described = imported(AGGREGATION, stores={"counts": StoreDetail()}, unknown=unknown)
    application = compile_described(described, {"in": 4})
    assert [each.found for each in application.problems if each.severity is Severity.ERROR] == [
        "left-repartition",
        "gone",
    ]
    described = imported(
        AGGREGATION,
        stores={"counts": StoreDetail(), "count": StoreDetail()},
        repartition_partitions={"app-by-repartition": 6},
        copartitioned=(("in", "out"),),
    )
    application = compile_described(described, {"in": 4})
    assert [problem.found for problem in application.problems] == ["app-by-repartition", "count", "out"]


CERTAIN = {
    "table": ("topology: [{table: {topic: in, materialized: t}}]", "t", ChangelogKind.KEY_VALUE),
    "toTable": (
        "topology: [{stream: {topic: in}}, {toTable: {materialized: t}}]",
        "t",
        ChangelogKind.KEY_VALUE,
    ),
    "table aggregation": (
        "topology: [{table: {topic: in}}, {groupBy: {name: by}}, {count: {materialized: t}}]",
        "t",
        ChangelogKind.KEY_VALUE,
    ),
}


@pytest.mark.parametrize(("text", "store", "kind"), CERTAIN.values(), ids=CERTAIN.keys())
def test_kinds_that_names_show_are_not_missing(text: str, store: str, kind: ChangelogKind) -> None:
    described = imported(text)
    assert missing_details(described) == ()
    found = topic(compile_described(described, {"in": 1}), f"{store}-changelog")
    assert found.changelog_kind is kind


GRACE = """
topology:
  - stream: {topic: a, as: a}
  - table:
      topic: b
      materialized: {supplier: {name: v, kind: versionedKeyValue, retention: 1h}}
      as: b
  - join: {from: a, with: b, grace: 5m}
"""


def test_a_detail_without_a_kind_keeps_the_kind_that_the_text_shows() -> None:
    text = write_description(build_nodes(document(GRACE)))
    stores = {"v": {"retention": "1h"}}
    content = {"application": {"id": "app"}, "describe": {"text": text, "stores": stores}}
    loaded = parse_document(content)
    assert loaded.problems == ()
    application = compile_document(loaded.documents[0], {"a": 3, "b": 3})
    expected = topic(compiled(GRACE, {"a": 3, "b": 3}), "v-changelog")
    assert topic(application, "v-changelog").config == expected.config
    assert "min.compaction.lag.ms" in expected.config


def test_the_kind_of_a_store_that_transform_values_uses_is_missing() -> None:
    text = """
topology:
  - addStateStore: {name: seen, kind: window, retention: 1h, windowSize: 30s}
  - table: {topic: in}
  - transformValues: {stores: [seen]}
"""
    [problem] = missing_details(imported(text))
    assert (problem.node, problem.found) == ("seen", "no kind")


@pytest.mark.parametrize(
    "text",
    [
        "topology: [{stream: {topic: in}}, {groupBy: }, {count: }]",
        "topology: [{stream: {topic: in}}, {repartition: {name: by}}, {to: {topic: out}}]",
        "topology: [{table: {topic: t, as: t}}, {table: {topic: in}}, {join: {with: t, foreignKey: true}}]",
    ],
)
def test_a_text_that_ends_before_the_reader_of_a_repartition_topic_is_reported(text: str) -> None:
    whole = write_description(build_nodes(document(text)))
    nodes, problems = read_description(whole[: whole.index("  Sub-topology: 1")])
    assert problems == ()
    application = compile_described(DescribedTopology(nodes, AT), {"in": 3, "t": 3})
    assert ProblemCode.UNREADABLE_DESCRIBE in codes(application.problems)


def test_reused_source_topics_follow_from_the_configuration() -> None:
    described = imported("topology: [{table: {topic: in, materialized: t}}]")
    config = {"topology.optimization": "all"}
    assert compile_described(described, {"in": 1}, config).internal_topics == ()


FOREIGN_KEY = """
topology:
  - table: {topic: t1, as: one}
  - table: {topic: t2, as: two}
  - join: {from: one, with: two, foreignKey: true}
"""


def test_foreign_key_topics_are_recognized() -> None:
    application = compile_described(imported(FOREIGN_KEY), {"t1": 3, "t2": 5})
    assert counts(application) == counts(compiled(FOREIGN_KEY, {"t1": 3, "t2": 5}))
    assert application.problems == ()


def test_a_suppressed_table_is_not_copartitioned_as_in_kafka_streams() -> None:
    text = """
    topology:
      - stream: {topic: a, as: a}
      - table: {topic: b}
      - suppress: {until: timeLimit, timeLimit: 1s, name: late, as: late}
      - join: {from: a, with: late, name: j}
    """
    assert compile_described(imported(text), {"a": 2, "b": 2}).copartition_groups == ()


USERS_TOPIC = """
topology:
  - stream: {topic: in}
  - to: {topic: my-repartition}
  - stream: {topic: my-repartition}
  - to: {topic: out}
"""


def test_a_topic_with_the_name_of_an_internal_one_is_reported() -> None:
    application = compile_described(imported(USERS_TOPIC), {"in": 3})
    assert [(p.code, p.severity, p.topic) for p in application.problems] == [
        (ProblemCode.MISSING_DETAIL, Severity.WARNING, "my-repartition")
    ]
    assert counts(application) == {"my-repartition": 3}


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


@pytest.mark.parametrize("names", [("by-one", ""), ("", "by-two"), ("by-one", "by-two"), ("", "")])
def test_a_cogroup_of_named_and_unnamed_groups_is_imported_without_a_problem(names: tuple[str, str]) -> None:
    one, two = (f"name: {name}, " if name else "" for name in names)
    text = f"""
topology:
  - stream: {{topic: orders, as: orders}}
  - groupBy: {{{one}from: orders, as: one}}
  - groupBy: {{{two}from: orders, as: two}}
  - cogroup: {{from: one, as: both}}
  - cogroup: {{from: both, with: two, as: all}}
  - aggregate: {{from: all, materialized: counts}}
"""
    described = imported(text, stores={"counts": StoreDetail("timestampedKeyValue")})

    with_streams_protocol = Application("app", AT, Protocol.STREAMS)
    application = compile_document(
        TopologyDocument(with_streams_protocol, described=described), {"orders": 3}
    )

    assert application.problems == ()
    assert set(counts(application).values()) == {3}


MIMIC = """
Topologies:
   Sub-topology: 0
    Source: {source} (topics: [in])
      --> {node}
    Processor: {node} (stores: [seen])
      --> none
      <-- {source}

"""


@pytest.mark.parametrize(
    ("source", "node", "is_table"),
    [
        ("KSTREAM-SOURCE-0000000001", "KTABLE-SOURCE-0000000002", True),
        ("users-source", "users", True),
        ("in", "KTABLE-SOURCE-0000000002", False),
        ("KSTREAM-SOURCE-0000000000", "KTABLE-SOURCE-0000000002", False),
        ("KSTREAM-SOURCE-0000000001", "KTABLE-SOURCE-copy", False),
    ],
)
def test_only_a_source_table_has_its_topic_as_changelog(source: str, node: str, *, is_table: bool) -> None:
    nodes, problems = read_description(MIMIC.format(source=source, node=node))
    assert problems == ()
    stores = {} if is_table else {"seen": StoreDetail("keyValue")}
    config = {"topology.optimization": "all"}
    application = compile_described(DescribedTopology(nodes, AT, stores=stores), {"in": 3}, config)
    assert counts(application) == ({} if is_table else {"seen-changelog": 3})
    own = {"seen": StoreDetail("keyValue", has_own_changelog=True)}
    application = compile_described(DescribedTopology(nodes, AT, stores=own), {"in": 3}, config)
    assert counts(application) == {"seen-changelog": 3}
