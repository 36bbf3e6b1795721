"""A plan as JSON with all its values, and their digest: what was approved is compared by it."""

import hashlib
import json
import re
from collections.abc import Mapping
from operator import itemgetter
from typing import Any

import attrs

from headwater.model.problems import Problem
from headwater.model.records import SetupRecord
from headwater.planner import ApplicationPlan, Plan, TopicAction
from headwater.planner.data_risks import data_risks
from headwater.report.plan_text import application_text, plan_summary
from headwater.report.problems import problem_text

VERSION = 1
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


@attrs.frozen
class ApprovedPlan:
    """The digest of an approved plan, and its topics as `_plan_values` has them, if they are known."""

    digest: str
    topics: Mapping[str, Any] = attrs.field(factory=dict)


def plan_json(plan: Plan, stack: str) -> dict[str, Any]:
    """Return the plan for `headwater plan --format json`; `stack` is the name of the stack, or empty."""
    values = _plan_values(plan)
    return {
        "version": VERSION,
        "digest": values_digest(values),
        "stack": stack,
        "summary": plan_summary(plan),
        "isApplicable": plan.is_applicable,
        "risks": [
            {"application": risk.application, "topic": risk.topic, "text": risk.text}
            for risk in data_risks(plan)
        ],
        "problems": [_problem_json(problem) for problem in plan.problems],
        "texts": {
            application.application_id: application_text(plan, application)
            for application in plan.applications
            if application.has_changes or application.notes
        },
        "plan": values,
    }


def plan_digest(plan: Plan) -> str:
    """Return the digest of everything that a run of the plan changes, with the ids of existing topics."""
    return values_digest(_plan_values(plan))


def _plan_values(plan: Plan) -> dict[str, Any]:
    """Return all values that a run applies.

    Texts and problems are not among them: they say the same in other words. Counts of records are not,
    because they change all the time.
    """
    return {
        "clusterId": plan.cluster_id,
        "applications": {
            application.application_id: _application_json(application) for application in plan.applications
        },
    }


def values_digest(values: Mapping[str, Any]) -> str:
    """Return the SHA-256 of values in a form that does not depend on their order."""
    text = json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def read_approved(text: str) -> ApprovedPlan:
    """Read a digest, or the JSON of a plan, whose digest is computed again; raises `ValueError`."""
    if _DIGEST.fullmatch(text.strip()):
        return ApprovedPlan(text.strip())
    try:
        values = json.loads(text)["plan"]
        topics = {
            name: topic
            for application in values["applications"].values()
            for name, topic in application["topics"].items()
        }
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError("not the JSON of a plan") from error
    return ApprovedPlan(values_digest(values), topics)


def topic_differences(approved: ApprovedPlan, plan: Plan) -> tuple[str, ...]:
    """Return the names of the topics whose part of the plan differs from the approved plan."""
    planned = {
        name: topic
        for application in _plan_values(plan)["applications"].values()
        for name, topic in application["topics"].items()
    }
    if not approved.topics:
        return ()
    names = planned.keys() | approved.topics.keys()
    return tuple(sorted(name for name in names if planned.get(name) != approved.topics.get(name)))


def _application_json(application: ApplicationPlan) -> dict[str, Any]:
    return {
        "topics": {action.name: _topic_json(action) for action in application.actions},
        "acls": sorted(
            ({"action": action.kind.value, "acl": action.acl.text} for action in application.acls),
            key=itemgetter("acl"),
        ),
        "settings": {change.key: [change.before, change.after] for change in application.settings},
        "record": _record_json(application.record),
    }


def _topic_json(action: TopicAction) -> dict[str, Any]:
    live = action.live
    return {
        "action": action.kind.value,
        "partitions": action.partitions,
        "replicationFactor": action.replication_factor,
        "config": dict(action.config),
        "wave": action.wave,
        "changes": {change.key: [change.live, change.declared] for change in action.changes},
        "live": None
        if live is None
        else {
            "id": live.topic_id,
            "partitions": live.partitions,
            "replicationFactor": live.replication_factor,
            "config": dict(live.config),
        },
    }


def _record_json(record: SetupRecord | None) -> dict[str, Any] | None:
    if record is None:
        return None
    return {
        "topics": {
            topic.name: {"id": topic.topic_id, "partitions": topic.partitions, "sink": topic.is_sink}
            for topic in record.topics.values()
        },
        "initialProcessors": record.initial_processors,
        "initialBySource": dict(record.initial),
        "clusterId": record.cluster_id,
        "kafkaStreams": record.kafka_streams,
        "settings": dict(record.settings),
        "retired": record.retired,
    }


def _problem_json(problem: Problem) -> dict[str, str]:
    return {
        "severity": problem.severity.value,
        "code": problem.code.value,
        "text": problem_text(problem),
    }
