"""Which store or repartition topic of a topology continues which one of the topology before an edit."""

from headwater.planner.edits.matching import TopologyItems, match_items
from tests.edits.sides import COUNT, GENERATED, REDUCE, side

HEAD = 'application: {id: app, kafkaStreams: "4.3"}\ntopology:\n'
NAMED = f"{HEAD}  - stream: {{topic: in}}\n  - groupByKey:\n  - count: {{materialized: totals}}\n"


def continued(before: str, after: str) -> dict[str, str]:
    """Return store, or repartition topic, before → its name after the edit."""
    (old,), (new,) = side(before).by_id.values(), side(after).by_id.values()
    return {name: now for (_, name), now in match_items(TopologyItems(old), TopologyItems(new)).items()}


def test_the_same_topology_continues_everything() -> None:
    assert continued(GENERATED, GENERATED) == {name: name for name in (COUNT, REDUCE, f"{COUNT}-repartition")}


def test_a_store_with_the_name_of_a_user_continues_whatever_writes_to_it() -> None:
    after = NAMED.replace("groupByKey:", "filter: {where: value is not null}\n  - groupByKey:").replace(
        "count:", "reduce:"
    )
    assert continued(NAMED, after) == {"totals": "totals"}


def test_a_generated_name_is_no_identity() -> None:
    """The new operator takes the index of the count, and all later indices shift."""
    after = GENERATED.replace("  - selectKey:\n", "  - selectKey:\n  - filter: {where: value > 0}\n")
    found = continued(GENERATED, after)
    assert found.keys() == {COUNT, REDUCE, f"{COUNT}-repartition"}
    assert COUNT not in found.values()
    assert found[COUNT].startswith("KSTREAM-AGGREGATE-STATE-STORE-")
    assert found[REDUCE].startswith("KSTREAM-REDUCE-STATE-STORE-")


def test_a_renamed_store_continues_because_its_operators_are_the_same() -> None:
    assert continued(NAMED, NAMED.replace("totals", "sums")) == {"totals": "sums"}


def test_of_two_equal_stores_the_more_similar_one_continues() -> None:
    before = (
        f"{HEAD}  - stream: {{topic: in, as: s}}\n"
        "  - filter: {where: value = 'a'}\n  - groupByKey:\n  - count:\n"
        "  - filter: {from: s, where: value = 'b'}\n  - groupByKey:\n  - count:\n"
    )
    first, second = sorted(continued(before, before))
    only_second = (
        f"{HEAD}  - stream: {{topic: in, as: s}}\n"
        "  - filter: {where: value = 'b'}\n  - groupByKey:\n  - count:\n"
    )
    assert list(continued(before, only_second)) == [second]
    assert list(continued(only_second, before).values()) == [second]
    assert first != second


def test_a_store_of_another_input_continues_only_under_its_name() -> None:
    plain = f"{HEAD}  - stream: {{topic: in}}\n  - groupByKey:\n  - count:\n"
    moved = plain.replace("topic: in", "topic: other")
    shifted = moved.replace("  - groupByKey", "  - filter: {where: value > 0}\n  - groupByKey")
    assert len(continued(plain, moved)) == 1
    assert continued(plain, shifted) == {}
