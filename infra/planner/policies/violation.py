"""How a broken policy is told."""

import attrs

from infra.model.policies import Policy
from infra.model.problems import Location, Problem, ProblemCode
from infra.planner.policies.subject import JudgedTopic, Subject


def violation(
    policy: Policy,
    subject: Subject,
    summary: str,
    *,
    topic: JudgedTopic | None = None,
    node: str | None = None,
    expected: str,
    found: str,
    why: str,
    fix: str,
) -> Problem:
    """Return the problem, at the topic's operator or the application; `why` gives way to the policy's own."""
    return Problem(
        code=ProblemCode.POLICY_VIOLATED,
        summary=summary,
        application=subject.application.id,
        topic=topic.name if topic else None,
        node=node or (topic.own_name if topic else None),
        expected=f"{expected} ({source(policy)})",
        found=found,
        why=policy.message or why,
        fix=fix,
        location=(topic.at if topic else None) or subject.application.at,
        severity=policy.severity,
    )


def source(policy: Policy) -> str:
    """Say which policy it is and where it stands."""
    where = attrs.evolve(policy.at, column=0)
    return f"policy {policy.key}, {_place(where)}"


def _place(at: Location) -> str:
    return f"{at.file}:{at.line}" if at.line else at.file
