"""Checks of the policies of a stack: whether a plan of its documents follows them."""

from collections.abc import Iterator, Sequence

import attrs

from headwater.doctor.findings import Check, Finding, Section
from headwater.model.problems import Problem, ProblemCode

POLICY_CODES = frozenset({ProblemCode.POLICY_VIOLATED, ProblemCode.BLAST_RADIUS})
"""The codes of problems that a policy or a limit of the stack yields."""


@attrs.frozen(kw_only=True)
class PolicyFacts:
    """What was observed: how many policies and limits the stack has, and the problems of its plan.

    With a `reason`, the policies were not checked because of it; then some may not be counted.
    """

    policies: int
    problems: Sequence[Problem] = ()
    reason: str = ""


def policy_findings(facts: PolicyFacts) -> Iterator[Finding]:
    """Yield a finding for each violation; without a violation, yield a finding that says so."""
    check = Check(Section.STACK, "policies")
    if facts.reason:
        yield check.unknown(
            f"Not checked: {facts.reason}",
            fix="Fix the other findings first. Without a cluster: headwater validate --policies FILE",
        )
        return
    if not facts.policies:
        yield check.ok("the stack has no policies")
        return
    violations = [problem for problem in facts.problems if problem.code in POLICY_CODES]
    for problem in violations:
        yield check.of_problem(problem)
    if not violations:
        count = facts.policies
        noun = "policy or limit is" if count == 1 else "policies and limits are"
        yield check.ok(f"{count} {noun} followed")
