"""A drift as JSON that follows `topology_schemas/drift.v1.schema.json`."""

from typing import Any

from headwater.model.problems import Severity
from headwater.planner.drift import ApplicationDrift, Drift, Finding
from headwater.report.compile_json import location_json, problem_json
from headwater.report.drift.summary import SEVERITY_NOUNS
from headwater.report.graph import graph
from headwater.report.mermaid import mermaid


def drift_json(drift: Drift) -> dict[str, Any]:
    """Return the document; `mermaid` holds the Mermaid graph of each application."""
    return {
        "version": 1,
        "clusterId": drift.cluster_id,
        "hasDrift": drift.has_drift,
        "isComplete": not drift.problems,
        "summary": _summary(drift),
        "applications": [_application(part, drift) for part in drift.applications],
        "problems": [problem_json(problem) for problem in drift.problems],
    }


def _summary(drift: Drift) -> dict[str, int]:
    severities = [finding.severity for finding in drift.differences]
    return {
        "applications": len(drift.applications),
        "topics": sum(len(part.topics) for part in drift.applications),
        "findings": len(severities),
        **{f"{SEVERITY_NOUNS[severity]}s": severities.count(severity) for severity in Severity},
    }


def _application(part: ApplicationDrift, drift: Drift) -> dict[str, Any]:
    return {
        "applicationId": part.id,
        "topics": list(part.topics),
        "findings": [_finding(finding) for finding in part.findings],
        "mermaid": mermaid(graph([part.compiled], drift.partitions)),
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "kind": finding.kind.value,
        "severity": finding.severity.value,
        "counts": finding.counts and finding.is_difference,
        "topic": finding.topic,
        "what": finding.what,
        "expected": finding.expected,
        "found": finding.found,
        "why": finding.why,
        "fix": finding.fix,
        "location": location_json(finding.location),
    }
