"""Names of internal topics, and which consumer groups belong to applications of Kafka Streams."""

import pytest

from headwater.model.client_record import client_group
from headwater.model.cluster import GroupFacts, GroupType, LiveTopic
from headwater.model.topology import name_beginnings
from headwater.planner.evidence.names import (
    Certainty,
    exclusion_text,
    find_candidates,
    has_internal_name,
    internal_prefix,
    is_created_by_streams,
    is_internal_to,
)
from tests.planner.simulated_cluster import application


@pytest.mark.parametrize(
    ("id_", "topic", "expected"),
    [
        ("orders", "orders-counts-changelog", True),
        ("orders", "orders-by-repartition", True),
        ("orders", "orders-KTABLE-FK-JOIN-SUBSCRIPTION-REGISTRATION-0000000006-topic", True),
        ("orders", "orders-j-subscription-response-topic", True),
        ("orders-eu", "orders-counts-changelog", False),
        ("orders", "orders-counts", False),
        ("orders", "orders-changelog", False),
        ("orders", "counts-changelog", False),
    ],
)
def test_an_internal_topic_begins_with_the_id_and_ends_with_a_suffix(
    id_: str, topic: str, *, expected: bool
) -> None:
    assert is_internal_to(id_, topic) is expected


def test_names_of_foreign_key_topics_need_an_application_id() -> None:
    assert has_internal_name("a-KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-0000000014-topic")
    assert not has_internal_name("KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-0000000014-topic")


def test_each_part_before_a_hyphen_may_be_an_id() -> None:
    assert list(name_beginnings("a-b-c-changelog")) == ["a", "a-b", "a-b-c"]
    assert list(name_beginnings("-a")) == []


@pytest.mark.parametrize(
    ("name", "config", "expected"),
    [
        ("a-KSTREAM-REDUCE-STATE-STORE-0000000007-changelog", {}, True),
        ("a-counts-changelog", {}, False),
        ("a-counts-changelog", {"cleanup.policy": "compact"}, False),
        ("a-counts-changelog", {"cleanup.policy": "compact", "message.timestamp.type": "CreateTime"}, True),
    ],
)
def test_a_generated_name_or_both_settings_show_the_creator(
    name: str, config: dict[str, str], *, expected: bool
) -> None:
    assert is_created_by_streams(LiveTopic(name, "id", 1, 1, config)) is expected


GROUPS = {
    "streams protocol": (GroupFacts(id="g", type=GroupType.STREAMS), Certainty.CERTAIN),
    "streams assignor": (GroupFacts(id="g", assignor="stream"), Certainty.CERTAIN),
    "offsets of its own repartition topic": (
        GroupFacts(id="g", committed=frozenset({"g-by-repartition"})),
        Certainty.CERTAIN,
    ),
    "offsets of other topics": (GroupFacts(id="g", committed=frozenset({"orders"})), Certainty.POSSIBLE),
    "no members": (GroupFacts(id="g"), Certainty.POSSIBLE),
    "another assignor": (GroupFacts(id="g", assignor="range"), None),
    "consumer protocol": (GroupFacts(id="g", type=GroupType.CONSUMER, assignor="stream"), None),
    "connector": (GroupFacts(id="g", protocol_type="connect"), None),
    "ksqlDB": (GroupFacts(id="_confluent-ksql-q1", assignor="stream"), None),
    "record of a client": (GroupFacts(id=client_group("g")), None),
}


@pytest.mark.parametrize(("group", "certainty"), GROUPS.values(), ids=GROUPS.keys())
def test_a_group_shows_whether_it_belongs_to_an_application(
    group: GroupFacts, certainty: Certainty | None
) -> None:
    assert find_candidates({group.id: group}, ()).get(group.id) is certainty
    if certainty is None:
        assert group.id in exclusion_text(group)


def test_ids_of_the_user_are_certain() -> None:
    certain = Certainty.CERTAIN
    assert find_candidates({"g": GroupFacts(id="g")}, ["g", "h"]) == {"g": certain, "h": certain}


@pytest.mark.parametrize(
    ("config", "prefix"), [({}, "orders-"), ({"__internal.override.topic.prefix__": "shared"}, "shared-")]
)
def test_the_prefix_of_internal_topics_is_the_id_unless_it_is_configured(
    config: dict[str, str], prefix: str
) -> None:
    assert internal_prefix(application(config=config)) == prefix
