"""Edits that give keys of internal topics other partitions, at the same partition count."""

import pytest

from headwater.planner.edits import TopicEdit
from tests.edits.sides import name, of_one

_REGIONS = """
application: {id: app}
topology:
  - stream: {topic: in, as: s}
  - repartition: {name: r, partitioner: "shop:ByRegion"}
  - groupByKey:
  - count: {materialized: counts}
  - stream: {topic: other, as: o}
  - groupByKey: {from: o}
  - reduce: {materialized: totals}
"""
_STATIC = """
application: {id: app, config: {static.partitioner.class: initial-hash}}
topology:
  - stream: {topic: in, as: s}
  - selectKey:
  - groupByKey: {name: g}
  - count: {materialized: counts}
"""


def _topics(before: str, old: str, new: str) -> dict[str, TopicEdit]:
    assert old in before
    return {name(topic): topic for topic in of_one(before, before.replace(old, new)).topics}


@pytest.mark.parametrize("new", [', partitioner: "shop:ByCountry"', ""])
def test_keys_leave_their_state_behind_another_partitioner(new: str) -> None:
    found = _topics(_REGIONS, ', partitioner: "shop:ByRegion"', new)

    assert {name: topic.verdict.value for name, topic in found.items()} == {
        "counts": "moved",
        "r-repartition": "moved",
        "totals": "kept",
    }
    assert found["counts"].loses_data
    assert "was shop:ByRegion and is" in found["counts"].why
    assert found["counts"].first == "Keep the partitioner, or reset the application."
    assert "processed all records" in found["r-repartition"].first


def test_instances_with_different_partitioners_do_not_run_together() -> None:
    found = of_one(_REGIONS, _REGIONS.replace("ByRegion", "ByCountry"))

    assert "keys get other partitions" in found.obstacle
    assert "lag of 0" in found.steps[0]


def test_partitions_of_a_static_partitioner_are_not_known_without_it() -> None:
    found = _topics(_STATIC, ", config: {static.partitioner.class: initial-hash}", "")

    assert {topic.verdict.value for topic in found.values()} == {"unknown"}
    assert all("first start" in topic.why for topic in found.values())


def test_the_first_static_partitioner_keeps_the_partitions() -> None:
    plain = _STATIC.replace(", config: {static.partitioner.class: initial-hash}", "")

    assert {
        topic.verdict.value
        for topic in _topics(
            plain, "id: app", "id: app, config: {static.partitioner.class: initial-hash}"
        ).values()
    } == {"kept"}


_NEW_TOPIC = '  - repartition: {name: q, partitioner: "shop:ByCountry"}'
_OLD_TOPIC = '  - repartition: {name: r, partitioner: "shop:ByRegion"}'


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (_OLD_TOPIC, _NEW_TOPIC),
        (_OLD_TOPIC, f"  - mapValues:\n{_NEW_TOPIC}"),
        (_OLD_TOPIC, _NEW_TOPIC.replace("name: q, ", "")),
        (_OLD_TOPIC, "  - mapValues:"),
        (_OLD_TOPIC, "  - mapValues:\n  - selectKey:"),
    ],
    ids=["renamed", "renamed and shifted", "without a name", "removed", "replaced"],
)
def test_another_partitioner_is_found_under_another_name(old: str, new: str) -> None:
    found = _topics(_REGIONS, old, new)

    assert found["counts"].verdict.value == "moved"
    assert found["totals"].verdict.value == "kept"


_GENERATED = """
application: {id: app}
topology:
  - stream: in
  - repartition: {partitioner: "shop:ByRegion"}
  - groupByKey:
  - count: {materialized: counts}
"""


def test_another_partitioner_is_found_if_numbers_shift() -> None:
    edited = _GENERATED.replace("ByRegion", "ByCountry").replace("  - rep", "  - filter:\n  - rep")

    assert {name(topic): topic.verdict.value for topic in of_one(_GENERATED, edited).topics} == {
        "counts": "moved",
        "KSTREAM-REPARTITION-0000000002-repartition": "renamed",
    }


@pytest.mark.parametrize("is_added", [True, False])
def test_a_repartition_topic_with_a_partitioner_moves_the_store_after_it(*, is_added: bool) -> None:
    without = _GENERATED.replace('  - repartition: {partitioner: "shop:ByRegion"}\n', "")
    found = of_one(*((without, _GENERATED) if is_added else (_GENERATED, without)))

    (counts,) = [topic for topic in found.topics if topic.store == "counts"]
    assert counts.verdict.value == "moved"
    assert "(partitioner: shop:ByRegion)" in counts.why


def test_a_repartition_topic_keeps_the_state_behind_it_only_with_the_partitioner_of_the_source() -> None:
    plain = _GENERATED.replace(': {partitioner: "shop:ByRegion"}', ":")
    found = of_one(plain.replace("  - repartition:\n", ""), plain)

    (counts,) = [topic for topic in found.topics if topic.store == "counts"]
    assert counts.verdict.value == "kept"
    assert "if what writes the source topics uses Kafka's default partitioner" in counts.why
    assert not counts.is_unchanged


def test_a_renamed_grouping_hides_no_static_partitioner() -> None:
    edited = _STATIC.replace(", config: {static.partitioner.class: initial-hash}", "")
    found = of_one(_STATIC, edited.replace("name: g", "name: h"))

    assert {name(topic): topic.verdict.value for topic in found.topics} == {
        "counts": "unknown",
        "h-repartition": "renamed",
    }
    assert not found.is_complete


_JOINED = """
application: {id: app}
topology:
  - table: {topic: table, as: t, materialized: t}
  - stream: in
  - repartition: {name: r, partitioner: "shop:ByRegion"}
  - join: {with: t, name: joined}
  - groupByKey:
  - count: {materialized: counts}
"""


@pytest.mark.parametrize("old", ["shop:ByRegion", '  - repartition: {name: r, partitioner: "shop:ByRegion"}'])
def test_a_table_that_is_only_read_does_not_move_and_its_join_is_named(old: str) -> None:
    before = _JOINED.replace(old, "  - mapValues:") if " " in old else _JOINED
    found = of_one(before, _JOINED.replace("shop:ByRegion", "shop:ByCountry"))

    assert {topic.store: topic.verdict.value for topic in found.topics if topic.store} == {
        "counts": "moved",
        "t": "kept",
    }
    (join,) = [each for each in found.operators if each.operator == "joined"]
    assert (join.aspect, join.after) == ("partitioner of its input", "shop:ByCountry")
    assert "t keeps its partitions" in join.why


_OUTER = """
application: {id: app}
topology:
  - stream: {topic: other, as: o}
  - repartition: {name: q, partitioner: "shop:ByRegion", as: right}
  - stream: in
  - repartition: {name: r, partitioner: "shop:ByRegion"}
  - outerJoin: {with: right, name: joined, window: {difference: 5m, grace: 1m}}
  - to: out
"""


def test_both_sides_of_a_join_move_together() -> None:
    both = of_one(_OUTER, _OUTER.replace("ByRegion", "ByCountry"))
    one = of_one(_OUTER, _OUTER.replace('name: q, partitioner: "shop:ByRegion"', "name: q"))

    assert {topic.verdict.value for topic in both.topics} == {"moved"}
    assert not [each for each in both.operators if each.aspect == "partitioner of its input"]
    assert [topic.store for topic in one.topics if topic.store and topic.verdict.value == "kept"] == [
        "KSTREAM-OUTERTHIS-0000000010-store"
    ]
    assert [each.operator for each in one.operators if each.aspect == "partitioner of its input"]
