"""The layout of an application on the topics that exist; reset policies."""

from collections.abc import Mapping

import pytest

from headwater.compiler import build_nodes, compile_document
from headwater.spec import load_text
from headwater_spark.driver.layout import Layout, OffsetReset, ResetKind
from headwater_spark.engine.program import build_programs

_DOCUMENT = """
application: {id: shop, config: {auto.offset.reset: latest}}
topology:
  - globalTable: {topic: countries, as: countries, serdes: {key: string, value: string}}
  - stream: {pattern: "orders-.*", as: orders, offsetReset: earliest, serdes: {key: string, value: string}}
  - to: {topic: all-orders}
  - stream: {topic: clicks, serdes: {key: string, value: string}}
  - selectKey: {key: value}
  - groupByKey:
  - count: {materialized: counts}
"""


def updated(
    before: Layout, counts: Mapping[str, int], ids: Mapping[str, str], text: str = _DOCUMENT
) -> Layout:
    loaded = load_text(text, "shop.yaml")
    assert not loaded.problems, loaded.problems
    document = loaded.documents[0]
    compiled = compile_document(document, counts)
    return before.updated(compiled, build_programs(document, build_nodes(document), compiled), counts, ids)


COUNTS = {"countries": 1, "orders-eu": 2, "orders-us": 1, "clicks": 2, "shop-counts-repartition": 2, "x": 9}
IDS = {topic: f"id of {topic}" for topic in COUNTS}
LAYOUT = updated(Layout(), COUNTS, IDS)


def reading(topic: str, layout: Layout = LAYOUT) -> str:
    (name,) = (name for name in layout.queries if topic in layout.topics(name))
    return name


def test_pattern_matches_the_existing_topics() -> None:
    name = reading("orders-us")
    assert LAYOUT.topics(name) == ("orders-eu", "orders-us")
    after = updated(LAYOUT, {**COUNTS, "orders-asia": 1}, IDS)
    assert after.topics(name) == ("orders-asia", "orders-eu", "orders-us")
    assert (LAYOUT.version, after.version) == (1, 2)


def test_pattern_does_not_match_the_topic_of_a_global_table() -> None:
    document = _DOCUMENT.replace('"orders-.*"', '"(orders-|countr).*s"')
    layout = updated(Layout(), COUNTS, IDS, document)
    assert layout.topics(reading("orders-us", layout)) == ("orders-us",)
    assert layout.parallelism(reading("orders-us", layout)) == 1


def test_every_partition_has_the_reset_policy_of_its_source() -> None:
    assert LAYOUT.offset_resets(reading("clicks")) == {
        ("clicks", 0): OffsetReset(ResetKind.LATEST),
        ("clicks", 1): OffsetReset(ResetKind.LATEST),
    }
    assert set(LAYOUT.offset_resets(reading("orders-eu")).values()) == {OffsetReset(ResetKind.EARLIEST)}


def test_own_partitions_are_those_that_tasks_write_and_queries_read() -> None:
    assert LAYOUT.own_partitions() == [("shop-counts-repartition", 0), ("shop-counts-repartition", 1)]


def test_global_table_has_no_query_and_all_tasks_read_it() -> None:
    (global_program,) = LAYOUT.global_programs
    assert global_program.name not in LAYOUT.queries
    assert LAYOUT.task_partition_counts(reading("clicks")) == {"clicks": 2, "countries": 1}


def test_missing_topics_have_no_partitions() -> None:
    assert LAYOUT.repartition_topics == {"shop-counts-repartition"}
    assert LAYOUT.topic_partitions({"shop-counts-repartition", "missing"}) == [
        ("shop-counts-repartition", 0),
        ("shop-counts-repartition", 1),
    ]


def test_re_created_topic_changes_the_digest_of_its_reader_only() -> None:
    after = updated(LAYOUT, COUNTS, {**IDS, "clicks": "another id"})
    changed = {name for name in LAYOUT.queries if LAYOUT.topic_digest(name) != after.topic_digest(name)}
    assert changed == {reading("clicks")}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("earliest", OffsetReset(ResetKind.EARLIEST)),
        ("LATEST", OffsetReset(ResetKind.LATEST)),
        ("none", OffsetReset(ResetKind.NONE)),
        ("by_duration:PT1H", OffsetReset(ResetKind.BY_DURATION, 3_600_000)),
        ("by_duration:P1DT1M0.5S", OffsetReset(ResetKind.BY_DURATION, 86_460_500)),
    ],
)
def test_reset_policies(text: str, expected: OffsetReset) -> None:
    assert OffsetReset.parse(text) == expected


@pytest.mark.parametrize("text", ["first", "by_duration:", "by_duration:P", "by_duration:1h"])
def test_invalid_reset_policies(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        OffsetReset.parse(text)
