"""Compiled applications and problems as JSON."""

from collections.abc import Iterable, Sequence
from typing import Any

from headwater.model.compiled import CompiledApplication, InternalTopic, SubTopology
from headwater.model.problems import Location, Problem


def compile_json(compiled: Sequence[CompiledApplication], problems: Iterable[Problem] = ()) -> dict[str, Any]:
    """Return `{"applications": [...]}`, and `problems` of documents that could not be compiled."""
    document: dict[str, Any] = {"applications": [_application_json(application) for application in compiled]}
    if others := [problem_json(problem) for problem in problems]:
        document["problems"] = others
    return document


def problem_json(problem: Problem) -> dict[str, Any]:
    """Return a problem with all fields; fields without a value are null."""
    return {
        "code": problem.code.value,
        "severity": problem.severity.value,
        "summary": problem.summary,
        "application": problem.application,
        "topic": problem.topic,
        "node": problem.node,
        "expected": problem.expected,
        "found": problem.found,
        "why": problem.why,
        "fix": problem.fix,
        "location": location_json(problem.location),
    }


def _application_json(compiled: CompiledApplication) -> dict[str, Any]:
    return {
        "applicationId": compiled.application.id,
        "subtopologies": [_subtopology_json(part) for part in compiled.subtopologies],
        "internalTopics": [_topic_json(topic) for topic in compiled.internal_topics],
        "problems": [problem_json(problem) for problem in compiled.problems],
    }


def _subtopology_json(part: SubTopology) -> dict[str, Any]:
    return {
        "id": part.id,
        "global": part.is_global,
        "tasks": part.tasks,
        **({"processors": part.processors} if part.processors is not None else {}),
        "backend": part.backend.value,
        "nodes": list(part.nodes),
        "sources": list(part.sources),
        "sourcePatterns": list(part.source_patterns),
        "sinks": list(part.sinks),
        "repartitionTopics": list(part.repartition_topics),
        "changelogTopics": list(part.changelog_topics),
        "sourceChangelogs": list(part.source_changelogs),
        "stores": list(part.stores),
    }


def _topic_json(topic: InternalTopic) -> dict[str, Any]:
    return {
        "name": topic.name,
        "kind": topic.kind.value,
        "partitions": topic.partitions,
        "config": dict(sorted(topic.config.items())),
        "subtopology": topic.subtopology,
    }


def location_json(location: Location | None) -> dict[str, Any] | None:
    """Return file, line, column and JSON pointer of a location, None if it is not known."""
    if location is None:
        return None
    return {
        "file": location.file,
        "line": location.line,
        "column": location.column,
        "pointer": location.pointer,
    }
