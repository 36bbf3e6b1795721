"""`headwater change --stack`: documents, compared with the setup records of a stack."""

import json
from pathlib import Path
from typing import Any

import pytest

from headwater.compiler.renumbering import origins
from headwater.model.records import RecordedTopic, SetupRecord
from headwater.planner.document_settings import document_settings
from headwater.pulumi.stack_state import record_outputs
from tests.edits.change_command import FILTERED, NAMED, headwater, read, verdicts, write
from tests.edits.sides import GENERATED, side


def _recorded_state(folder: Path, text: str, *, with_settings: bool = False) -> str:
    """Write the state of a stack that has set up the only application of `text`, and return its file.

    Records of earlier versions have no settings.
    """
    (before,) = side(text).of.values()
    record = SetupRecord(
        "app",
        {name: RecordedTopic(name, f"id-{name}", topic.partitions) for name, topic in before.topics.items()},
        generated=frozenset(before.topics),
        origins=origins(before.compiled),
        kafka_streams="4.3.1",
        settings=document_settings(before.compiled) if with_settings else {},
    )
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
    state = _recorded_state(tmp_path, NAMED, with_settings=True)

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
    assert "--topic app-counts-changelog=new-counts-changelog" in counts["first"]


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
