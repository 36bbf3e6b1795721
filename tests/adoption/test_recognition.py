"""Which topics are taken for whose, on clusters that were not made for us."""

from collections.abc import Mapping

import pytest

from infra.model.cluster import LiveTopic
from infra.model.observed import Unknown
from infra.model.survey import GroupFacts, GroupType, Survey
from infra.planner.adoption import Recognized, recognize

MARKS = {"cleanup.policy": "compact", "message.timestamp.type": "CreateTime"}


def topic(name: str, partitions: int = 3, config: Mapping[str, str] | None = MARKS) -> LiveTopic:
    return LiveTopic(name, "", partitions, 1, config or {})


def streams(id_: str, *subscribed: str) -> GroupFacts:
    """A running application."""
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


def survey(*things: LiveTopic | GroupFacts) -> Survey:
    return Survey(
        "cluster",
        {thing.name: thing for thing in things if isinstance(thing, LiveTopic)},
        {thing.id: thing for thing in things if isinstance(thing, GroupFacts)},
    )


def owners(found: Recognized) -> dict[str, list[str]]:
    return {each.id: [topic.name for topic in each.topics] for each in found.applications}


def reasons(found: Recognized) -> dict[str, str]:
    return {each.topic: each.reason for each in found.passed_over}


def test_a_running_application_with_its_sources() -> None:
    (found,) = recognize(
        survey(
            topic("in", 4, {}),
            topic("app-by-x-repartition"),
            topic("app-counts-changelog"),
            streams("app", "in", "app-by-x-repartition", "deleted"),
        )
    ).applications
    assert [each.name for each in found.topics] == ["app-by-x-repartition", "app-counts-changelog"]
    assert (found.sources, found.vanished) == ({"in": 4}, ("deleted",))
    assert found.unknown == (Unknown.SUBTOPOLOGIES,)


def test_ids_with_hyphens_that_begin_with_each_other() -> None:
    names = ("a-x-changelog", "a-b-x-changelog", "a-b-c-x-changelog", "a-b-c-r-repartition")
    found = recognize(survey(*map(topic, names), streams("a"), streams("a-b"), stopped("a-b-c")))
    assert owners(found) == {
        "a": ["a-x-changelog"],
        "a-b": ["a-b-c-r-repartition", "a-b-c-x-changelog", "a-b-x-changelog"],
    }
    # With a repartition topic of its own among its offsets the stopped group is an application, too.
    found = recognize(
        survey(
            *map(topic, names), streams("a"), streams("a-b"), stopped("a-b-c", "in", "a-b-c-r-repartition")
        )
    )
    assert owners(found)["a-b-c"] == ["a-b-c-r-repartition", "a-b-c-x-changelog"]
    assert [each.shorter for each in found.applications] == [(), ("a",), ("a", "a-b")]


def test_a_group_that_reads_a_repartition_topic_owns_it_whatever_the_ids() -> None:
    """A shorter id and an operator's name may look like a longer id."""
    found = recognize(
        survey(
            topic("a-b-c-repartition"),
            topic("a-b-s-changelog"),
            streams("a", "a-b-c-repartition"),
            streams("a-b"),
        )
    )
    assert owners(found) == {"a": ["a-b-c-repartition"], "a-b": ["a-b-s-changelog"]}
    assert found.applications[1].doubts == ("a-b-s-changelog could also belong to a.",)


def test_foreign_key_topics_and_generated_names() -> None:
    names = (
        "app-KSTREAM-AGGREGATE-STATE-STORE-0000000002-changelog",
        "app-KTABLE-FK-JOIN-SUBSCRIPTION-REGISTRATION-0000000004-topic",
        "app-joined-subscription-response-topic",
    )
    assert owners(recognize(survey(*map(topic, names), streams("app")))) == {"app": list(names)}


@pytest.mark.parametrize(
    ("name", "group", "reason"),
    [
        ("users-changelog", None, "no group has the id of its application"),
        ("app-changelog", streams("app"), None),
        (
            "gone-KTABLE-REDUCE-STATE-STORE-0000000007-changelog",
            None,
            "no group has the id of its application; by its name it is one of gone",
        ),
        (
            "cdc-a-changelog",
            GroupFacts(id="cdc", state="Stable", protocol_type="consumer", assignor="range", members=1),
            "group cdc uses the assignor range, which Kafka Streams does not",
        ),
        (
            "new-a-changelog",
            GroupFacts(id="new", type=GroupType.CONSUMER),
            "group new is one of the consumer protocol, which Kafka Streams does not use",
        ),
        (
            "connect-a-changelog",
            GroupFacts(id="connect", protocol_type="connect"),
            "group connect is one of connect",
        ),
        (
            "_confluent-ksql-default_query_1-Aggregate-changelog",
            streams("_confluent-ksql-default_query_1"),
            "group _confluent-ksql-default_query_1 is ksqlDB's, which manages its topics itself",
        ),
    ],
)
def test_topics_of_others_are_passed_over(name: str, group: GroupFacts | None, reason: str | None) -> None:
    found = recognize(survey(topic(name), *([group] if group else ())))
    assert found.applications == ()
    assert reasons(found) == {name: reason or "no group has the id of its application"}


@pytest.mark.parametrize("name", ["_schemas", "connect-offsets", "__consumer_offsets", "app-orders"])
def test_names_that_are_not_internal_are_no_subject_at_all(name: str) -> None:
    found = recognize(survey(topic(name), streams("app"), stopped("connect")))
    assert found.passed_over == ()


@pytest.mark.parametrize("config", [{}, {"cleanup.policy": "compact"}])
def test_a_users_topic_under_the_id_of_an_application_is_not_taken(config: Mapping[str, str]) -> None:
    found = recognize(
        survey(topic("app-cdc-changelog", config=config), topic("app-s-changelog"), streams("app"))
    )
    assert owners(found) == {"app": ["app-s-changelog"]}
    assert reasons(found) == {
        "app-cdc-changelog": "it lacks settings that Kafka Streams gives since 2.5, so it need not be one of "
        "app"
    }


def test_topics_that_kafka_streams_made_before_it_gave_those_settings() -> None:
    """KAFKA-6614: `message.timestamp.type` came with 2.5. Generated names need no settings to tell."""
    generated = "app-KSTREAM-AGGREGATE-STATE-STORE-0000000002-changelog"
    table = "app-facts-STATE-STORE-0000000000-changelog"
    old = survey(
        topic("app-s-changelog", config={"cleanup.policy": "compact"}),
        topic(generated, config={"cleanup.policy": "compact"}),
        topic(table, config={"cleanup.policy": "compact"}),
        streams("app"),
    )
    assert owners(recognize(old)) == {"app": [generated, table]}
    vouched = recognize(old, vouched=["app-s-changelog"])
    assert owners(vouched) == {"app": [generated, table, "app-s-changelog"]}


def test_a_topic_that_the_group_reads_is_its_own_whatever_its_settings() -> None:
    found = recognize(
        survey(topic("app-r-repartition", config={}), stopped("app", "in", "app-r-repartition"))
    )
    assert owners(found) == {"app": ["app-r-repartition"]}


def test_an_application_whose_group_is_gone_is_named() -> None:
    (found,) = recognize(survey(topic("gone-x-changelog")), ["gone"]).applications
    assert found.group is None
    assert found.unknown == (Unknown.SUBTOPOLOGIES, Unknown.SOURCES, Unknown.PROTOCOL)


def test_applications_without_internal_topics_need_no_document() -> None:
    found = recognize(survey(topic("in"), streams("stateless", "in"), stopped("plain", "in")))
    assert (found.applications, found.stateless) == ((), ("stateless",))


def test_thousands_of_topics_take_no_time() -> None:
    ids = [f"team-{number % 40}-app-{number}" for number in range(200)]
    names = [f"{id_}-store-{number}-changelog" for id_ in ids for number in range(50)]
    found = recognize(survey(*map(topic, names), *map(streams, ids)))
    assert [len(each.topics) for each in found.applications] == [50] * 200
    assert [len(each.doubts) for each in found.applications] == [0] * 200
