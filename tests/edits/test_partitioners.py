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
