"""Which topics belong to which application on clusters that Headwater did not set up."""

from collections.abc import Mapping

import pytest

from headwater.model.cluster import GroupFacts, GroupType, LiveTopic, Survey
from headwater.model.topology import Unknown
from headwater.planner.adoption import Recognized, recognize_applications

STREAMS_CONFIG = {"cleanup.policy": "compact", "message.timestamp.type": "CreateTime"}


def topic(name: str, partitions: int = 3, config: Mapping[str, str] | None = STREAMS_CONFIG) -> LiveTopic:
    return LiveTopic(name, "", partitions, 1, config or {})


def streams(id_: str, *subscribed: str) -> GroupFacts:
    """Return the group of a running application."""
    return GroupFacts(
        id=id_,
        state="Stable",
        protocol_type="consumer",
        assignor="stream",
        members=1,
        subscribed=frozenset(subscribed),
    )


def stopped(id_: str, *committed: str) -> GroupFacts:
    return GroupFacts(id=id_, protocol_type="consumer", committed=frozenset(committed))


def survey(*parts: LiveTopic | GroupFacts) -> Survey:
    return Survey(
        "cluster",
        {part.name: part for part in parts if isinstance(part, LiveTopic)},
        {part.id: part for part in parts if isinstance(part, GroupFacts)},
    )


def owners(found: Recognized) -> dict[str, list[str]]:
    return {each.id: [topic.name for topic in each.topics] for each in found.applications}


def reasons(found: Recognized) -> dict[str, str]:
    return {each.topic: each.text for each in found.skipped}


def test_a_running_application_is_found_with_its_sources() -> None:
    (found,) = recognize_applications(
        survey(
            topic("in", 4, {}),
            topic("app-by-x-repartition"),
            topic("app-counts-changelog"),
            streams("app", "in", "app-by-x-repartition", "deleted"),
        )
    ).applications
    assert [each.name for each in found.topics] == ["app-by-x-repartition", "app-counts-changelog"]
    assert (found.sources, found.missing_sources) == ({"in": 4}, ("deleted",))
    assert found.unknown == (Unknown.SUBTOPOLOGIES,)


def test_a_topic_belongs_to_the_longest_known_id_that_it_begins_with() -> None:
    names = ("a-x-changelog", "a-b-x-changelog", "a-b-c-x-changelog", "a-b-c-r-repartition")
    found = recognize_applications(survey(*map(topic, names), streams("a"), streams("a-b"), stopped("a-b-c")))
    assert owners(found) == {
        "a": ["a-x-changelog"],
        "a-b": ["a-b-c-r-repartition", "a-b-c-x-changelog", "a-b-x-changelog"],
    }
    # The stopped group has offsets of its own repartition topic: it is an application, too.
    found = recognize_applications(
        survey(
            *map(topic, names), streams("a"), streams("a-b"), stopped("a-b-c", "in", "a-b-c-r-repartition")
        )
    )
    assert owners(found)["a-b-c"] == ["a-b-c-r-repartition", "a-b-c-x-changelog"]
    assert [each.prefix_ids for each in found.applications] == [(), ("a",), ("a", "a-b")]


def test_a_repartition_topic_belongs_to_the_group_that_reads_it() -> None:
    """The name begins with two ids: the shorter id and an operator's name look like the longer id."""
    found = recognize_applications(
        survey(
            topic("a-b-c-repartition"),
            topic("a-b-s-changelog"),
            streams("a", "a-b-c-repartition"),
            streams("a-b"),
        )
    )
    assert owners(found) == {"a": ["a-b-c-repartition"], "a-b": ["a-b-s-changelog"]}
    assert found.applications[1].ambiguities == ("a-b-s-changelog could also belong to a.",)


def test_foreign_key_topics_and_generated_names_are_recognized() -> None:
    names = (
        "app-KSTREAM-AGGREGATE-STATE-STORE-0000000002-changelog",
        "app-KTABLE-FK-JOIN-SUBSCRIPTION-REGISTRATION-0000000004-topic",
        "app-joined-subscription-response-topic",
    )
    assert owners(recognize_applications(survey(*map(topic, names), streams("app")))) == {"app": list(names)}


@pytest.mark.parametrize(
    ("name", "group", "reason"),
    [
        ("users-changelog", None, "no group has the id of its application"),
        ("app-changelog", streams("app"), None),
        (
            "gone-KTABLE-REDUCE-STATE-STORE-0000000007-changelog",
            None,
            "no group has the id of its application; according to its name, it belongs to gone",
        ),
        (
            "cdc-a-changelog",
            GroupFacts(id="cdc", state="Stable", protocol_type="consumer", assignor="range", members=1),
            "group cdc uses the assignor range, which Kafka Streams does not use",
        ),
        (
            "new-a-changelog",
            GroupFacts(id="new", type=GroupType.CONSUMER),
            "group new uses the consumer protocol, which Kafka Streams does not use",
        ),
        (
            "connect-a-changelog",
            GroupFacts(id="connect", protocol_type="connect"),
            "group connect has the protocol type connect",
        ),
        (
            "_confluent-ksql-default_query_1-Aggregate-changelog",
            streams("_confluent-ksql-default_query_1"),
            "group _confluent-ksql-default_query_1 belongs to ksqlDB, which manages its own topics",
        ),
    ],
)
def test_topics_of_other_systems_are_skipped_with_a_reason(
    name: str, group: GroupFacts | None, reason: str | None
) -> None:
    found = recognize_applications(survey(topic(name), *([group] if group else ())))
    assert found.applications == ()
    assert reasons(found) == {name: reason or "no group has the id of its application"}


@pytest.mark.parametrize("name", ["_schemas", "connect-offsets", "__consumer_offsets", "app-orders"])
def test_topics_without_an_internal_name_are_ignored(name: str) -> None:
    found = recognize_applications(survey(topic(name), streams("app"), stopped("connect")))
    assert found.skipped == ()


@pytest.mark.parametrize("config", [{}, {"cleanup.policy": "compact"}])
def test_a_users_topic_whose_name_begins_with_an_application_id_is_skipped(config: Mapping[str, str]) -> None:
    found = recognize_applications(
        survey(topic("app-cdc-changelog", config=config), topic("app-s-changelog"), streams("app"))
    )
    assert owners(found) == {"app": ["app-s-changelog"]}
    assert reasons(found) == {
        "app-cdc-changelog": "it does not have the settings of Kafka Streams (since 2.5), "
        "so it may not belong to app"
    }


def test_topics_of_kafka_streams_before_2_5_need_a_generated_name_or_confirmation() -> None:
    """KAFKA-6614: Kafka Streams sets `message.timestamp.type` since 2.5."""
    generated = "app-KSTREAM-AGGREGATE-STATE-STORE-0000000002-changelog"
    table = "app-facts-STATE-STORE-0000000000-changelog"
    old = survey(
        topic("app-s-changelog", config={"cleanup.policy": "compact"}),
        topic(generated, config={"cleanup.policy": "compact"}),
        topic(table, config={"cleanup.policy": "compact"}),
        streams("app"),
    )
    assert owners(recognize_applications(old)) == {"app": [generated, table]}
    confirmed = recognize_applications(old, confirmed=["app-s-changelog"])
    assert owners(confirmed) == {"app": [generated, table, "app-s-changelog"]}


def test_a_topic_that_the_group_reads_belongs_to_it_with_any_settings() -> None:
    found = recognize_applications(
        survey(topic("app-r-repartition", config={}), stopped("app", "in", "app-r-repartition"))
    )
    assert owners(found) == {"app": ["app-r-repartition"]}


def test_an_application_without_a_group_is_found_by_a_given_id() -> None:
    (found,) = recognize_applications(survey(topic("gone-x-changelog")), ["gone"]).applications
    assert found.group is None
    assert found.unknown == (Unknown.SUBTOPOLOGIES, Unknown.SOURCES, Unknown.PROTOCOL)


def test_applications_without_internal_topics_need_no_document() -> None:
    found = recognize_applications(survey(topic("in"), streams("stateless", "in"), stopped("plain", "in")))
    assert (found.applications, found.stateless) == ((), ("stateless",))


def test_ten_thousand_topics_are_assigned_without_ambiguity() -> None:
    ids = [f"team-{number % 40}-app-{number}" for number in range(200)]
    names = [f"{id_}-store-{number}-changelog" for id_ in ids for number in range(50)]
    found = recognize_applications(survey(*map(topic, names), *map(streams, ids)))
    assert [len(each.topics) for each in found.applications] == [50] * 200
    assert [len(each.ambiguities) for each in found.applications] == [0] * 200
