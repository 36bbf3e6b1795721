"""What an application is on the topics of the moment."""

from collections.abc import Mapping

import pytest

from infra.compiler import build_nodes, compile_document
from infra.spec import load_text
from spark_jobs.runtime.driver.layout import Layout
from spark_jobs.runtime.driver.reset import Reset, ResetKind
from spark_jobs.runtime.engine.program import build_programs

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


def laid_out(before: Layout, counts: Mapping[str, int], ids: Mapping[str, str]) -> Layout:
    loaded = load_text(_DOCUMENT, "shop.yaml")
    assert not loaded.problems, loaded.problems
    document = loaded.documents[0]
    compiled = compile_document(document, counts)
    return before.next(compiled, build_programs(document, build_nodes(document), compiled), counts, ids)


COUNTS = {"countries": 1, "orders-eu": 2, "orders-us": 1, "clicks": 2, "shop-counts-repartition": 2, "x": 9}
IDS = {topic: f"id of {topic}" for topic in COUNTS}
LAYOUT = laid_out(Layout(), COUNTS, IDS)


def reading(topic: str, layout: Layout = LAYOUT) -> str:
    (name,) = (name for name in layout.queries if topic in layout.topics(name))
    return name


def test_a_pattern_means_the_topics_that_there_are() -> None:
    name = reading("orders-us")
    assert LAYOUT.topics(name) == ("orders-eu", "orders-us")
    after = laid_out(LAYOUT, {**COUNTS, "orders-asia": 1}, IDS)
    assert after.topics(name) == ("orders-asia", "orders-eu", "orders-us")
    assert (LAYOUT.edition, after.edition) == (1, 2)


def test_every_partition_has_the_policy_of_its_source() -> None:
    assert LAYOUT.resets(reading("clicks")) == {
        ("clicks", 0): Reset(ResetKind.LATEST),
        ("clicks", 1): Reset(ResetKind.LATEST),
    }
    assert set(LAYOUT.resets(reading("orders-eu")).values()) == {Reset(ResetKind.EARLIEST)}


def test_a_global_table_has_no_query_and_is_read_by_all() -> None:
    (globals_,) = LAYOUT.global_programs
    assert globals_.name not in LAYOUT.queries
    assert LAYOUT.task_counts(reading("clicks")) == {"clicks": 2, "countries": 1}


def test_topics_that_are_not_there_have_no_places() -> None:
    assert LAYOUT.repartitions == {"shop-counts-repartition"}
    assert LAYOUT.places({"shop-counts-repartition", "gone"}) == [
        ("shop-counts-repartition", 0),
        ("shop-counts-repartition", 1),
    ]


def test_a_topic_that_was_made_anew_changes_the_digest_of_its_reader_alone() -> None:
    after = laid_out(LAYOUT, COUNTS, {**IDS, "clicks": "another id"})
    changed = {name for name in LAYOUT.queries if LAYOUT.digest(name) != after.digest(name)}
    assert changed == {reading("clicks")}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("earliest", Reset(ResetKind.EARLIEST)),
        ("LATEST", Reset(ResetKind.LATEST)),
        ("none", Reset(ResetKind.NONE)),
        ("by_duration:PT1H", Reset(ResetKind.BY_DURATION, 3_600_000)),
        ("by_duration:P1DT1M0.5S", Reset(ResetKind.BY_DURATION, 86_460_500)),
    ],
)
def test_reset_policies(text: str, expected: Reset) -> None:
    assert Reset.of(text) == expected


@pytest.mark.parametrize("text", ["first", "by_duration:", "by_duration:P", "by_duration:1h"])
def test_invalid_reset_policies(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        Reset.of(text)
