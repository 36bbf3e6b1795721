"""The output of `headwater drift --format json`."""

import json
from collections.abc import Mapping
from typing import Any

import attrs

from headwater.model.problems import Location, Severity
from headwater.planner.drift import Finding, FindingKind


@attrs.frozen
class ReportedDrift:
    """`findings` and `graphs` (Mermaid texts) by application id; `problems` are their summaries."""

    findings: Mapping[str, tuple[Finding, ...]]
    graphs: Mapping[str, str]
    topics: int
    problems: tuple[str, ...] = ()


def read_drift(text: str) -> ReportedDrift:
    """Read the JSON.

    Raises:
        ValueError: The text is not a drift report of version 1.
    """
    try:
        document = json.loads(text)
        if document["version"] != 1:
            raise ValueError(f"version {document['version']}")
        applications = document["applications"]
        return ReportedDrift(
            findings={
                str(each["applicationId"]): tuple(
                    _finding(str(each["applicationId"]), finding) for finding in each["findings"]
                )
                for each in applications
            },
            graphs={str(each["applicationId"]): str(each["mermaid"]) for each in applications},
            topics=int(document["summary"]["topics"]),
            problems=tuple(str(problem["summary"]) for problem in document["problems"]),
        )
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error


def _finding(application: str, finding: Mapping[str, Any]) -> Finding:
    at = finding["location"]
    return Finding(
        kind=FindingKind(finding["kind"]),
        severity=Severity(finding["severity"]),
        application=application,
        topic=None if finding["topic"] is None else str(finding["topic"]),
        what=str(finding["what"]),
        expected=str(finding["expected"]),
        found=str(finding["found"]),
        why=str(finding["why"]),
        fix=str(finding["fix"]),
        location=Location(str(at["file"]), int(at["line"]), int(at["column"])) if at else None,
        counts=bool(finding.get("counts", True)),  # reports of earlier versions have no tolerated drift
    )
