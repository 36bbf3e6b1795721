"""An upgrade as JSON that follows `topology_schemas/upgrade.v1.schema.json`."""

from typing import Any

import attrs

from headwater.planner.upgrade import ApplicationUpgrade, Change, Upgrade
from headwater.report.compile_json import location_json, problem_json


def upgrade_json(upgrade: Upgrade) -> dict[str, Any]:
    """Return the document."""
    return {
        "version": 1,
        "to": str(upgrade.to),
        "clusterId": upgrade.cluster_id,
        "hasChanges": any(upgrade.changes),
        "isComplete": not upgrade.problems,
        "assumedTopics": list(upgrade.assumed),
        "applications": [_application(part) for part in upgrade.applications],
        "problems": [problem_json(problem) for problem in upgrade.problems],
    }


def _application(part: ApplicationUpgrade) -> dict[str, Any]:
    return {
        "applicationId": part.id,
        "from": str(part.before),
        "to": str(part.after),
        "state": part.state.value,
        "rollingRestart": part.is_rolling,
        "obstacle": part.obstacle or None,
        "groupIsActive": part.group.is_active if part.group is not None else None,
        "notes": list(part.notes),
        "data": [attrs.asdict(note) for note in part.data],
        "changes": [_change(change) for change in part.changes],
        "location": location_json(part.location),
    }


def _change(change: Change) -> dict[str, Any]:
    return {
        "kind": change.kind.value,
        "severity": change.severity.value,
        "topic": change.topic,
        "what": change.what,
        "before": change.before,
        "after": change.after,
        "why": change.why,
        "first": change.first,
        "state": change.state.value if change.state is not None else None,
        "location": location_json(change.location),
    }
