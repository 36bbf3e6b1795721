"""An edit as JSON that follows `topology_schemas/change.v1.schema.json`, and the reverse."""

import json
from collections.abc import Mapping
from typing import Any

from headwater.model.compiled import TopicKind
from headwater.model.problems import Location, Problem, ProblemCode, Severity
from headwater.model.versions import KafkaStreamsVersion
from headwater.planner.edits import (
    ApplicationEdit,
    Edit,
    NameLine,
    OperatorEdit,
    SettingEdit,
    TopicEdit,
    Verdict,
)
from headwater.report.compiled import location_json, problem_json


def edit_json(edit: Edit) -> dict[str, Any]:
    """Return the document."""
    return {
        "version": 1,
        "clusterId": edit.cluster_id,
        "hasChanges": edit.has_changes,
        "losesData": any(topic.loses_data for topic in edit.topics),
        "isComplete": edit.is_complete,
        "assumedTopics": list(edit.assumed),
        "addedApplications": list(edit.added),
        "removedApplications": list(edit.removed),
        "applications": [_application_json(part) for part in edit.applications],
        "problems": [problem_json(problem) for problem in edit.problems],
    }


def _application_json(part: ApplicationEdit) -> dict[str, Any]:
    return {
        "applicationId": part.id,
        "formerApplicationId": part.former_id,
        "from": str(part.before) if part.before is not None else None,
        "to": str(part.after),
        "rollingRestart": part.is_rolling and not part.needs_new_group,
        "obstacle": part.obstacle or None,
        "isKnown": part.is_known,
        "needsNewGroup": part.needs_new_group,
        "topics": [_topic_json(topic) for topic in part.topics],
        "operators": [_operator_json(operator) for operator in part.operators],
        "settings": [_setting_json(setting) for setting in part.settings],
        "lines": [
            {
                "topic": line.topic,
                "document": line.document,
                "code": line.code,
                "location": location_json(line.location),
            }
            for line in part.lines
        ],
        "stillLost": list(part.still_lost),
        "remarks": list(part.remarks),
        "steps": list(part.steps),
        "location": location_json(part.location),
    }


def _topic_json(topic: TopicEdit) -> dict[str, Any]:
    return {
        "verdict": topic.verdict.value,
        "severity": topic.severity.value,
        "topic": topic.topic,
        "kind": topic.kind.value,
        "store": topic.store,
        "former": topic.former,
        "what": topic.what,
        "why": topic.why,
        "first": topic.first,
        "location": location_json(topic.location),
    }


def _operator_json(operator: OperatorEdit) -> dict[str, Any]:
    return {
        "operator": operator.operator,
        "aspect": operator.aspect,
        "before": operator.before,
        "after": operator.after,
        "why": operator.why,
        "stores": list(operator.stores),
        "location": location_json(operator.location),
    }


def _setting_json(setting: SettingEdit) -> dict[str, Any]:
    return {
        "key": setting.key,
        "before": setting.before,
        "after": setting.after,
        "why": setting.why,
        "location": location_json(setting.location),
    }


def read_edit(text: str) -> Edit:
    """Return the edit of a report.

    Raises:
        ValueError: The text is not the output of `headwater change --format json`.
    """
    try:
        document = json.loads(text)
        if document["version"] != 1:
            raise ValueError(f"version {document['version']}")
        return Edit(
            applications=tuple(_read_application(each) for each in document["applications"]),
            added=_read_texts(document["addedApplications"]),
            removed=_read_texts(document["removedApplications"]),
            problems=tuple(_read_problem(each) for each in document["problems"]),
            assumed=_read_texts(document["assumedTopics"]),
            cluster_id=document["clusterId"],
        )
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error


def _read_texts(values: list[object]) -> tuple[str, ...]:
    return tuple(map(str, values))


def _read_application(part: Mapping[str, Any]) -> ApplicationEdit:
    before = part["from"]
    return ApplicationEdit(
        id=str(part["applicationId"]),
        former_id=part["formerApplicationId"],
        before=_read_version(before) if before is not None else None,
        after=_read_version(part["to"]),
        topics=tuple(_read_topic(each) for each in part["topics"]),
        operators=tuple(_read_operator(each) for each in part.get("operators", ())),
        settings=tuple(_read_setting(each) for each in part.get("settings", ())),
        obstacle=part["obstacle"] or "",
        is_known=bool(part["isKnown"]),
        needs_new_group=bool(part["needsNewGroup"]),
        lines=tuple(
            NameLine(
                str(each["topic"]), str(each["document"]), str(each["code"]), _read_location(each["location"])
            )
            for each in part["lines"]
        ),
        still_lost=_read_texts(part["stillLost"]),
        remarks=_read_texts(part["remarks"]),
        steps=_read_texts(part["steps"]),
        location=_read_location(part["location"]),
    )


def _read_topic(topic: Mapping[str, Any]) -> TopicEdit:
    return TopicEdit(
        verdict=Verdict(topic["verdict"]),
        severity=Severity(topic["severity"]),
        topic=str(topic["topic"]),
        kind=TopicKind(topic["kind"]),
        store=topic["store"],
        former=topic["former"],
        what=str(topic["what"]),
        why=str(topic["why"]),
        first=str(topic["first"]),
        location=_read_location(topic["location"]),
    )


def _read_operator(operator: Mapping[str, Any]) -> OperatorEdit:
    return OperatorEdit(
        operator=str(operator["operator"]),
        aspect=str(operator["aspect"]),
        before=operator["before"],
        after=operator["after"],
        why=str(operator["why"]),
        stores=_read_texts(operator["stores"]),
        location=_read_location(operator["location"]),
    )


def _read_setting(setting: Mapping[str, Any]) -> SettingEdit:
    return SettingEdit(
        key=str(setting["key"]),
        before=setting["before"],
        after=setting["after"],
        why=str(setting["why"]),
        location=_read_location(setting["location"]),
    )


def _read_problem(problem: Mapping[str, Any]) -> Problem:
    return Problem(
        code=ProblemCode(problem["code"]),
        summary=str(problem["summary"]),
        application=problem["application"],
        topic=problem["topic"],
        node=problem["node"],
        expected=problem["expected"],
        found=problem["found"],
        why=str(problem["why"]),
        fix=str(problem["fix"]),
        location=_read_location(problem["location"]),
        severity=Severity(problem["severity"]),
    )


def _read_version(text: str) -> KafkaStreamsVersion:
    return KafkaStreamsVersion(*map(int, str(text).split(".")))


def _read_location(at: Mapping[str, Any] | None) -> Location | None:
    if at is None:
        return None
    return Location(str(at["file"]), int(at["line"]), int(at["column"]), str(at["pointer"]))
