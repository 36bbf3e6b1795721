"""Imported texts: the kind and the changelog topic of each store, and which of them are missing."""

import pytest

from headwater.describe import read_description
from headwater.model.nodes import ChangelogKind
from headwater.model.problems import Problem, ProblemCode, Severity
from headwater.model.topology import (
    DescribedTopology,
    StoreDetail,
)
from tests.compiler.applications import counts, topic
from tests.compiler.imported_texts import (
    AGGREGATION,
    AT,
    JOINS,
    STORES,
    compile_described,
    imported,
    missing_details,
)


def test_missing_retention_of_join_stores_is_reported_by_name() -> None:
    problems = missing_details(imported(JOINS))
    assert sorted(problem.node or "" for problem in problems) == sorted(STORES)
    assert {problem.found for problem in problems} == {"no retention"}
    assert all(f"`describe.stores.{problem.node}`" in problem.fix for problem in problems)


def test_the_missing_kind_of_an_aggregations_store_is_reported() -> None:
    described = imported(AGGREGATION)
    problems = missing_details(described)
    assert [(p.node, p.found, p.severity) for p in problems] == [("counts", "no kind", Severity.ERROR)]
    application = compile_described(described, {"in": 4})
    assert counts(application) == {"by-repartition": 4, "counts-changelog": 4}


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


def test_the_kind_of_a_store_that_transform_values_uses_is_missing() -> None:
    text = """
topology:
  - addStateStore: {name: seen, kind: window, retention: 1h, windowSize: 30s}
  - table: {topic: in}
  - transformValues: {stores: [seen]}
"""
    [problem] = missing_details(imported(text))
    assert (problem.node, problem.found) == ("seen", "no kind")


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


@pytest.mark.parametrize("followed", [StoreDetail("keyValue"), StoreDetail("windowed", 3_600_000)])
def test_a_retention_without_its_kind_is_reported(followed: StoreDetail) -> None:
    nodes, _ = read_description(MIMIC.format(source="in", node="KTABLE-SOURCE-0000000002"))

    def problems_of(detail: StoreDetail) -> list[Problem]:
        described = DescribedTopology(nodes, AT, stores={"seen": detail})
        found = compile_described(described, {"in": 3}).problems
        return [each for each in found if each.code is ProblemCode.CONFIG_HAS_NO_EFFECT]

    for kind in (None, "keyValue"):
        [problem] = problems_of(StoreDetail(kind, 3_600_000))
        assert "The `retention` of store seen has no effect." in problem.summary
        assert "set its `kind`: windowed, or versionedKeyValue" in problem.fix
    assert problems_of(followed) == []
