"""Reading the state of earlier runs."""

import json
from collections.abc import Mapping
from typing import Any

import attrs
import pytest

from headwater.model.records import RecordedTopic, SetupRecord
from headwater.pulumi.stack_state import (
    OtherResource,
    StackState,
    exported_resources,
    record_outputs,
    topic_outputs,
)

TOPIC = RecordedTopic("app-x-changelog", "id-1", 4)
SINK = RecordedTopic("out", "id-2", 4, is_sink=True)
RECORD = SetupRecord(
    "app",
    {TOPIC.name: TOPIC, SINK.name: SINK},
    initial_processors=4,
    generated=frozenset({"app-KSTREAM-0000000001-repartition"}),
    origins={"app-KSTREAM-0000000001-repartition": "5d41402abc4b"},
    cluster_id="5L6g3nShT-eMCtK--X86sw",
    kafka_streams="3.9.2",
)
TOPIC_TYPE = "kafka:index/topic:Topic"
OTHER = "urn:pulumi:test::project::my:own:Thing$kafka:index/topic:Topic::theirs"
THEIRS = OtherResource(OTHER, TOPIC_TYPE, topic="theirs")


Outputs = Mapping[str, Any] | None


def resources(finished: Outputs = None, begun: Outputs = None, topics: Outputs = None) -> dict[str, Any]:
    stack = "urn:pulumi:test::project::"
    component = "headwater:kafka:InternalTopics"
    found = {
        f"{stack}pulumi:pulumi:Stack::project-test": {"type": "pulumi:pulumi:Stack", "outputs": {}},
        OTHER: {
            "type": "kafka:index/topic:Topic",
            "outputs": {"partitions": 1, "config": {}},
        },
    }
    if finished is not None:
        found[f"{stack}{component}::app"] = {"type": component, "outputs": finished}
    if begun is not None:
        setup = "headwater:kafka:Setup"
        found[f"{stack}{component}${setup}::app"] = {"type": setup, "outputs": begun}
    for name, outputs in (topics or {}).items():
        urn = f"{stack}my:own:Thing${component}$kafka:index/topic:Topic::{name}"
        found[urn] = {"type": "kafka:index/topic:Topic", "outputs": outputs}
    return found


def test_state_is_empty_before_the_first_run() -> None:
    assert StackState.from_outputs({}) == StackState()
    assert StackState.from_outputs(resources()) == StackState(name="project/test", others=(THEIRS,))


def test_a_topic_outside_of_the_components_has_the_name_of_its_output() -> None:
    found = resources(topics={"app-x-changelog": {"name": "app-x-changelog"}})
    found[OTHER]["outputs"]["name"] = "their-topic"
    assert [other.topic for other in StackState.from_outputs(found).others] == ["their-topic"]


@pytest.mark.parametrize(
    ("type_", "outputs", "topic"),
    [
        ("confluentcloud:index/kafkaTopic:KafkaTopic", {"id": "lkc-1/a", "topicName": "a"}, "a"),
        ("aiven:index/kafkaTopic:KafkaTopic", {"topicName": "a", "serviceName": "k"}, "a"),
        ("kubernetes:kafka.strimzi.io/v1beta2:KafkaTopic", {"metadata": {"name": "a"}, "spec": {}}, "a"),
        (
            "kubernetes:kafka.strimzi.io/v1:KafkaTopic",
            {"metadata": {"name": "b"}, "spec": {"topicName": "a"}},
            "a",
        ),
        ("redpanda:index/topic:Topic", {"name": "a"}, "a"),
        ("azure:eventhub/eventHub:EventHub", {"name": "a"}, "a"),
        (
            "kafka:index/topic:Topic",
            {"name": {"4dabf18193072939515e22adb298388d": "1b47", "value": "x"}},
            "it",
        ),
        ("aws:sns/topic:Topic", {"name": "a"}, None),
        ("confluentcloud:index/tableflowTopic:TableflowTopic", {"displayName": "a"}, None),
        ("random:index/randomId:RandomId", {"name": "a"}, None),
    ],
)
def test_topics_of_other_providers_have_their_names(
    type_: str, outputs: Mapping[str, Any], topic: str | None
) -> None:
    urn = f"urn:pulumi:test::project::{type_}::it"
    (other,) = StackState.from_outputs({urn: {"type": type_, "outputs": outputs}}).others
    assert (other.topic, other.is_deleted) == (topic, None)


@pytest.mark.parametrize(
    ("properties", "is_deleted"),
    [
        ({"custom": True}, True),
        ({"custom": True, "protect": True}, True),
        ({"custom": True, "external": True}, False),
        ({"custom": True, "retainOnDelete": True}, False),
        ({"custom": False}, False),
    ],
)
def test_an_exported_state_shows_what_pulumi_deletes(
    properties: Mapping[str, bool], *, is_deleted: bool
) -> None:
    exported = {"urn": OTHER, "type": TOPIC_TYPE, **properties}
    replaced = {"urn": OTHER, "type": TOPIC_TYPE, "custom": True, "delete": True}
    text = json.dumps({"deployment": {"resources": [exported, replaced]}})
    (other,) = StackState.from_outputs(exported_resources(text)).others
    assert other.is_deleted is is_deleted


def test_providers_and_references_belong_to_pulumi() -> None:
    found: dict[str, Any] = {
        f"urn:pulumi:test::project::{type_}::it": {"type": type_, "outputs": {}}
        for type_ in ("pulumi:providers:kafka", "pulumi:pulumi:StackReference")
    }
    assert StackState.from_outputs(found).others == ()


def test_the_id_of_the_stack_is_read_from_an_unfinished_run_too() -> None:
    assert StackState.from_outputs(resources({}, {"topics": {}, "stackId": "a1b2"})).stack_id == "a1b2"
    assert StackState.from_outputs(resources({"stackId": "a1b2"}, {"topics": {}})).stack_id == "a1b2"


def test_finished_setup_is_read_back() -> None:
    state = StackState.from_outputs(
        resources({**record_outputs(RECORD), "released": ["old"]}, {"topics": {}})
    )
    assert state.records == {"app": RECORD}
    assert state.released == {"old"}


def test_the_initial_processors_are_read_back() -> None:
    record = attrs.evolve(RECORD, initial={"orders": 2, "app-x-repartition": 4})
    outputs = record_outputs(record)
    assert outputs["initialBySource"] == {"app-x-repartition": 4, "orders": 2}
    outputs["initialBySource"]["orders"] = 2.0
    [read] = StackState.from_outputs(resources(outputs)).records.values()
    assert read == record
    assert type(read.initial["orders"]) is int


def test_a_record_without_initial_processors_is_as_in_the_version_before() -> None:
    outputs = record_outputs(RECORD)
    assert "initialBySource" not in outputs
    assert StackState.from_outputs(resources(outputs)).records["app"].initial == {}


def test_numbers_of_pulumi_are_floats() -> None:
    outputs = record_outputs(RECORD)
    outputs["topics"][TOPIC.name]["partitions"] = 4.0
    state = StackState.from_outputs(
        resources(outputs, topics={"a": {"partitions": 6.0, "config": {"x": "y"}}})
    )
    assert state.records["app"].topics[TOPIC.name].partitions == 4
    assert (state.topics["a"].partitions, state.topics["a"].config) == (6, {"x": "y"})
    assert state.topics.keys() == {"a"}


def test_interrupted_first_run_is_recorded() -> None:
    begun = {"topics": topic_outputs([attrs.evolve(TOPIC, topic_id="")])}
    [record] = StackState.from_outputs(resources({}, begun)).records.values()
    assert record.unfinished
    assert record.topics == {TOPIC.name: attrs.evolve(TOPIC, topic_id="")}
    assert StackState.from_outputs(resources({})).records["app"].unfinished


def test_interrupted_later_run_is_recorded() -> None:
    new = RecordedTopic("app-y-changelog", "", 4)
    begun = {"topics": topic_outputs([attrs.evolve(TOPIC, topic_id=""), new])}
    [record] = StackState.from_outputs(resources(record_outputs(RECORD), begun)).records.values()
    assert not record.unfinished
    assert record.topics == {TOPIC.name: TOPIC, SINK.name: SINK, new.name: new}


def test_released_application_has_no_record() -> None:
    state = StackState.from_outputs(
        resources({**record_outputs(None), "released": [TOPIC.name]}, {"topics": {}})
    )
    assert state.records == {}
    assert state.released == {TOPIC.name}


def test_repairs_are_counted() -> None:
    [repaired] = StackState.from_outputs(
        resources({}, {"repaired": 2.0, "repairs": {"a": "b"}})
    ).repairs.values()
    assert (repaired.times, repaired.texts) == (2, {"a": "b"})


def test_the_version_of_kafka_streams_is_read_and_unknown_in_older_states() -> None:
    outputs = {**record_outputs(RECORD)}

    assert StackState.from_outputs(resources(outputs)).records["app"].kafka_streams == "3.9.2"
    del outputs["kafkaStreams"]
    assert StackState.from_outputs(resources(outputs)).records["app"].kafka_streams == ""
