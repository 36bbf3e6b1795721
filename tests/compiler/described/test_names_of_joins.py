"""Imported texts with names that joins and cogroups have, and other operators can have."""

import pytest

from headwater.model.topology import StoreDetail
from tests.compiler.applications import compiled, topic
from tests.compiler.imported_texts import compile_described, imported, missing_details

STORES_LIKE_THOSE_OF_JOINS = ("s-this-join-store", "s-outer-other-join-store", "s-left-shared-join-store")
COUNT = "topology: [{{stream: {{topic: in}}}}, {{groupByKey: }}, {{count: {{materialized: {store}}}}}]"


@pytest.mark.parametrize("store", STORES_LIKE_THOSE_OF_JOINS)
def test_the_kind_of_a_count_whose_store_is_named_like_that_of_a_join_is_missing(store: str) -> None:
    [problem] = missing_details(imported(COUNT.format(store=store)))
    assert problem.found == "no kind"


@pytest.mark.parametrize("store", STORES_LIKE_THOSE_OF_JOINS)
def test_the_changelog_of_such_a_count_has_the_config_of_the_given_kind(store: str) -> None:
    text = COUNT.format(store=store)
    application = compile_described(imported(text, stores={store: StoreDetail()}), {"in": 3})
    expected = topic(compiled(text, {"in": 3}), f"{store}-changelog")
    assert topic(application, f"{store}-changelog").config == expected.config
    assert application.problems == ()


def test_the_kind_of_a_count_whose_store_is_named_like_a_buffer_is_missing() -> None:
    text = """
topology: [{stream: {topic: in}}, {groupByKey: }, {count: {name: orders, materialized: orders-Buffer}}]
"""
    [problem] = missing_details(imported(text))
    assert problem.found == "no kind"


def test_the_kind_of_a_windowed_count_named_like_a_node_of_a_join_is_missing() -> None:
    text = """
topology:
  - stream: {topic: in}
  - groupByKey:
  - count: {name: orders-this-windowed, materialized: counts}
"""
    [problem] = missing_details(imported(text))
    assert problem.found == "no kind"


SELF_JOIN = """
application: {id: app, config: {topology.optimization: single.store.self.join}}
topology:
  - stream: {topic: in, as: in}
  - join: {from: in, with: in, window: {difference: 1h}, storeName: s, name: twice}
"""


@pytest.mark.parametrize("text", [SELF_JOIN, SELF_JOIN.replace(", name: twice", "")])
def test_a_self_join_with_one_store_is_recognized(text: str) -> None:
    detail = StoreDetail(None, 3_600_000)
    application = compile_described(imported(text, stores={"s-this-join-store": detail}), {"in": 3})
    assert topic(application, "s-this-join-store-changelog").config["cleanup.policy"] == "delete"
    assert application.problems == ()


@pytest.mark.parametrize(
    "name",
    [
        "total-this-join",
        "total-outer-other-join",
        "total-join-this",
        "KSTREAM-JOINTHIS-0000000004",
        "KSTREAM-OUTEROTHER-0000000004",
        "KSTREAM-LEFTJOIN-0000000004",
    ],
)
def test_a_reduction_named_like_a_join_copartitions_nothing(name: str) -> None:
    text = f"""
topology:
  - stream: {{topics: [a, b]}}
  - groupByKey:
  - reduce: {{name: {name}, materialized: total}}
"""
    application = compile_described(imported(text, stores={"total": StoreDetail()}), {"a": 3, "b": 5})
    assert application.copartition_groups == ()
    assert application.problems == ()


def test_a_reduction_named_like_a_part_of_a_cogroup_copartitions_nothing() -> None:
    text = """
topology:
  - stream: {topics: [a, b], as: in}
  - groupByKey: {from: in, as: grouped}
  - reduce: {from: grouped, name: total-cogroup-agg-0, materialized: total}
"""
    application = compile_described(imported(text, stores={"total": StoreDetail()}), {"a": 3, "b": 5})
    assert application.copartition_groups == ()
    assert application.problems == ()
