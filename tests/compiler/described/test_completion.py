"""Imported texts: details that follow from the text, and details of the document."""

import pytest

from headwater.compiler import build_nodes, compile_document
from headwater.describe import read_description, write_description
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
from tests.compiler.imported_texts import AGGREGATION, AT, compile_described, imported


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
