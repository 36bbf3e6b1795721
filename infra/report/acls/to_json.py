"""Rights for programs."""

from collections.abc import Iterable, Sequence
from typing import Any

from infra.model.problems import Problem
from infra.planner.acls import Need
from infra.report.acls.grants import Grants
from infra.report.compile_json import problem_json


def acls_json(grants: Iterable[Grants], problems: Sequence[Problem] = ()) -> dict[str, Any]:
    """Return `{"grants": [{"holder", "purpose", "principals", "hosts", "rights": […]}], "problems": […]}`."""
    return {
        "grants": [
            {
                "holder": part.holder,
                "purpose": part.purpose,
                "principals": list(part.principals),
                "hosts": list(part.hosts),
                "rights": [_right(need) for need in part.needs],
            }
            for part in grants
        ],
        "problems": [problem_json(problem) for problem in problems],
    }


def _right(need: Need) -> dict[str, str]:
    return {
        "resourceType": need.right.kind.value,
        "resourceName": need.right.name,
        "patternType": need.right.pattern.value,
        "operation": need.right.operation.value,
        "reason": need.reason,
    }
