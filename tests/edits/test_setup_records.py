"""`headwater change --stack`: documents, compared with the setup records of a stack."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from headwater.compiler.renumbering import origin_digests
from headwater.model.records import RecordedTopic, SetupRecord
from headwater.planner.document_settings import TOPOLOGY, document_settings
from headwater.planner.edits import ApplicationEdit, Verdict, find_edit_since_setup
from headwater.pulumi.stack_state import record_outputs
from tests.compiler.topologies import KEY_CHANGE_IN_THE_FIRST_INPUT, MERGES_REPARTITIONS
from tests.edits.change_command import FILTERED, NAMED, headwater, read, verdicts, write
from tests.edits.sides import GENERATED, side


def _record(
    text: str,
    *,
    settings: Mapping[str, str] | None = None,
    kafka_streams: str = "4.3.1",
    unfinished: bool = False,
    counts: Mapping[str, int] | None = None,
) -> SetupRecord:
    """Return the record of a setup of the only application of `text`."""
    (before,) = side(text, counts).by_id.values()
    return SetupRecord(
        "app",
        {name: RecordedTopic(name, f"id-{name}", topic.partitions) for name, topic in before.topics.items()},
        generated=frozenset(before.topics),
        origins=origin_digests(before.compiled),
        unfinished=unfinished,
        kafka_streams=kafka_streams,
        settings=document_settings(before.compiled) if settings is None else settings,
    )


def _recorded_state(folder: Path, text: str) -> str:
    """Write the state of a stack that has set up the only application of `text`, and return its file."""
    record = _record(text)
    urn = "urn:pulumi:dev::project::headwater:kafka:InternalTopics::app"
    resource = {"urn": urn, "type": "headwater:kafka:InternalTopics", "outputs": record_outputs(record)}
    return write(folder / "state.json", json.dumps({"deployment": {"resources": [resource]}}))


def test_documents_are_compared_with_what_a_stack_recorded(tmp_path: Path) -> None:
    state = _recorded_state(tmp_path, GENERATED)

    def changed(text: str, *arguments: str) -> dict[str, Any]:
        file = write(tmp_path / "app.yaml", text)
        return read(headwater(file, "--stack-state", state, "--format", "json", *arguments))

    same = changed(GENERATED, "--partitions", "in=4")
    assert set(verdicts(same).values()) == {"kept"}
    assert not same["hasChanges"]
    assert set(verdicts(changed(GENERATED)).values()) == {"kept"}  # counts are not known, so not compared
    assert set(verdicts(changed(GENERATED, "--partitions", "in=8")).values()) == {"moved"}
    renamed = changed(FILTERED, "--partitions", "in=4")
    assert set(verdicts(renamed).values()) == {"renamed"}
    assert "--git" in renamed["applications"][0]["topics"][0]["first"]
    named = changed(NAMED, "--partitions", "in=4")
    assert sorted(verdicts(named).values()) == ["added", "added", "added", "orphaned", "orphaned", "orphaned"]
    (in_flight,) = (
        each
        for each in named["applications"][0]["topics"]
        if each["verdict"] == "orphaned" and each["topic"].endswith("-repartition")
    )
    assert "wait until the application has processed all records" in in_flight["first"]
    assert changed(NAMED.replace("id: app", "id: new"))["addedApplications"] == ["new"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("{materialized: counts}", "{materialized: {store: counts, serdes: {key: json}}}"),
        ("topic: in", "topic: other"),
        ("id: app", "id: app, config: {default.key.serde: long}"),
    ],
)
def test_topics_of_an_edited_topology_are_not_known_to_be_kept(tmp_path: Path, old: str, new: str) -> None:
    state = _recorded_state(tmp_path, NAMED)

    def changed(text: str) -> dict[str, Any]:
        file = write(tmp_path / "app.yaml", text)
        counts = ("--partitions", "in=4", "--partitions", "other=4")
        return read(headwater(file, "--stack-state", state, "--format", "json", *counts))

    same, edited = changed(NAMED), changed(NAMED.replace(old, new))
    assert old in NAMED
    assert set(verdicts(same).values()) == {"kept"}
    assert same["isComplete"]
    assert set(verdicts(edited).values()) == {"unknown"}
    assert not edited["isComplete"]
    assert "--git" in edited["applications"][0]["topics"][0]["first"]
    assert not edited["applications"][0]["rollingRestart"]


def test_a_stack_finds_an_application_under_its_former_id(tmp_path: Path) -> None:
    state = _recorded_state(tmp_path, NAMED)
    file = write(tmp_path / "app.yaml", NAMED.replace("id: app", "id: new, renamedFrom: app"))

    found = read(headwater(file, "--stack-state", state, "--format", "json", "--partitions", "in=4"))

    assert (found["addedApplications"], found["removedApplications"]) == ([], [])
    (application,) = found["applications"]
    assert application["formerApplicationId"] == "app"
    assert application["obstacle"] == "the application id changes"
    assert set(verdicts(found).values()) == {"renamed"}
    (counts,) = (each for each in application["topics"] if each["store"] == "counts")
    assert "state is copied only within one application" in counts["first"]


def test_a_stack_shows_what_more_partitions_mean_for_a_static_partitioner(tmp_path: Path) -> None:
    static = NAMED.replace("id: app", "id: app, config: {static.partitioner.class: initial-hash}")
    state = _recorded_state(tmp_path, static)
    file = write(tmp_path / "app.yaml", static)

    found = read(headwater(file, "--stack-state", state, "--format", "json", "--partitions", "in=8"))

    topics = found["applications"][0]["topics"]
    assert {(topic["verdict"], topic["severity"]) for topic in topics} == {("moved", "warning")}
    assert all("headwater plan" in topic["first"] for topic in topics)


def test_a_stack_shows_that_a_streams_group_refuses_the_edit(tmp_path: Path) -> None:
    streams = GENERATED.replace("id: app", "id: app, protocol: streams")
    state = _recorded_state(tmp_path, streams)
    file = write(tmp_path / "app.yaml", streams.replace("- selectKey:", "- filter:\n  - selectKey:"))

    found = read(headwater(file, "--stack-state", state, "--format", "json", "--partitions", "in=4"))

    (application,) = found["applications"]
    assert application["needsNewGroup"]
    assert any("KAFKA-20170" in step for step in application["steps"])


def _since(record: SetupRecord, text: str, *, counts: Mapping[str, int] | None = None) -> ApplicationEdit:
    records = {record.application_id: record}
    (application,) = find_edit_since_setup(records, side(text, counts)).applications
    return application


def _verdicts(application: ApplicationEdit) -> set[Verdict]:
    return {topic.verdict for topic in application.topics}


_OTHER_DIGEST = {**_record(NAMED).settings, TOPOLOGY: "0:sha256:0123456789abcdef"}
_NO_DIGEST = {key: value for key, value in _OTHER_DIGEST.items() if key != TOPOLOGY}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"settings": {}}, "Another version of Headwater has written the record"),
        ({"settings": _NO_DIGEST}, "Another version of Headwater has written the record"),
        ({"settings": _OTHER_DIGEST}, "Another version of Headwater has written the record"),
        ({"unfinished": True}, "was interrupted"),
    ],
)
def test_a_record_that_does_not_show_the_topology_keeps_no_topic(changes: dict[str, Any], why: str) -> None:
    found = _since(_record(NAMED, **changes), NAMED)

    assert _verdicts(found) == {Verdict.UNKNOWN}
    assert all(why in topic.why for topic in found.topics)
    assert found.obstacle == "the topology before the edit is not known"
    assert not found.is_complete


def test_a_record_that_does_not_show_the_topology_requires_no_new_group() -> None:
    streams = NAMED.replace("id: app", "id: app, protocol: streams")

    assert not _since(_record(streams, settings={}), streams).needs_new_group
    assert not _since(_record(streams, unfinished=True), streams).needs_new_group
    assert _since(_record(streams), streams.replace("topic: in", "topic: other")).needs_new_group


def test_an_edited_application_without_internal_topics_is_not_restarted_one_by_one() -> None:
    stateless = """
application: {id: app, kafkaStreams: "4.3"}
topology: [{stream: {topic: in}}, {to: {topic: out}}]
"""
    assert _since(_record(stateless), stateless).is_rolling
    assert not _since(_record(stateless), stateless.replace("topic: in", "topic: other")).is_rolling
    assert not _since(_record(stateless, settings={}), stateless).is_rolling


def _with_config(config: str) -> str:
    return NAMED.replace("id: app", f"id: app, config: {{{config}}}")


_STATIC = "static.partitioner.class: initial-hash"
_LIBRARY = "partitioner.class: io.headwater.streams.partitioning.StaticPartitioner"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (_with_config(_STATIC), NAMED),
        (_with_config(_STATIC), _with_config("static.partitioner.class: linear-hash")),
        (_with_config(f"{_LIBRARY}, {_STATIC}"), _with_config(_STATIC)),
        (NAMED, _with_config("producer.partitioner.class: com.example.Partitioner")),
    ],
)
def test_keys_may_move_if_the_partitioner_was_edited(before: str, after: str) -> None:
    found = _since(_record(before), after)

    in_doubt = {topic.topic for topic in found.topics if topic.verdict is Verdict.UNKNOWN}
    assert in_doubt == {"app-counts-changelog", "app-counts-repartition"}
    assert all("partitioner.class" in topic.why for topic in found.topics if topic.topic in in_doubt)
    assert {topic.topic for topic in found.topics if topic.verdict is Verdict.KEPT} == {
        "app-totals-changelog"
    }
    assert found.obstacle == "keys may get other partitions"
    assert all("Keep the partitioner." in topic.first for topic in found.topics if topic.topic in in_doubt)
    assert _verdicts(_since(_record(before), before)) == {Verdict.KEPT}


@pytest.mark.parametrize("config", [_STATIC, f"{_LIBRARY}, {_STATIC}"])
def test_the_first_static_partitioner_moves_no_key(config: str) -> None:
    found = _since(_record(NAMED), _with_config(config))

    assert _verdicts(found) == {Verdict.KEPT}
    assert found.is_rolling


@pytest.mark.parametrize(
    ("old", "new", "obstacle"),
    [
        ("4.3", "4.0", "Kafka Streams does not support downgrades"),
        ('"4.3"', '"4.3", protocol: streams', "the group protocol changes"),
        ('"4.3"', '"4.4"', ""),
    ],
)
def test_version_and_protocol_of_the_record_decide_about_a_rolling_restart(
    old: str, new: str, obstacle: str
) -> None:
    found = _since(_record(NAMED), NAMED.replace(old, new))

    assert _verdicts(found) == {Verdict.KEPT}
    assert found.obstacle == obstacle
    assert bool(found.steps) is bool(obstacle)


def test_a_version_that_is_not_recorded_decides_nothing_about_a_rolling_restart() -> None:
    found = _since(_record(NAMED, kafka_streams=""), NAMED)

    assert _verdicts(found) == {Verdict.KEPT}
    assert found.obstacle == "the version of Kafka Streams before the edit is not known"


def test_a_version_that_builds_other_tasks_is_no_rolling_restart() -> None:
    application = f'application: {{id: app, kafkaStreams: "4.2", config: {{{MERGES_REPARTITIONS}}}}}'
    text = f"{application}\n{KEY_CHANGE_IN_THE_FIRST_INPUT}"
    counts = {"plain": 4, "keyed": 4}

    found = _since(
        _record(text, counts=counts, kafka_streams="4.2.0"), text.replace("4.2", "4.3"), counts=counts
    )

    assert found.obstacle == "instances before and after the edit would have different tasks"
    assert any("becomes" in remark for remark in found.remarks)


def test_a_former_id_does_not_hide_that_the_topology_was_edited() -> None:
    renamed = NAMED.replace("id: app", "id: new, renamedFrom: app")

    same = _since(_record(NAMED), renamed)
    edited = _since(
        _record(NAMED),
        renamed.replace("{materialized: counts}", "{materialized: {store: counts, serdes: {key: json}}}"),
    )

    assert _verdicts(same) == _verdicts(edited) == {Verdict.RENAMED}
    assert not any("--git" in topic.first or "edited" in topic.why for topic in same.topics)
    assert all("--git" in topic.first and "was edited" in topic.why for topic in edited.topics)


def test_settings_that_differ_from_the_record_are_listed_without_secrets() -> None:
    before = _with_config("commit.interval.ms: 100, my.own: a, sasl.jaas.config: hunter2")
    found = _since(
        _record(before), _with_config("commit.interval.ms: 200, my.own: b, sasl.jaas.config: hunter3")
    )

    assert [(each.key, each.before, each.after) for each in found.settings] == [
        ("commit.interval.ms", "100", "200"),
        ("my.own", "set", "set"),
    ]
    assert found.settings[0].why.startswith("It decides how many results are sent on")
    assert [topic.verdict for topic in found.topics] == [Verdict.KEPT] * len(found.topics)
