"""Compare the plan of a run with the plan that was approved."""

from pathlib import Path

from headwater.model.problems import Problem, ProblemCode
from headwater.planner import Plan
from headwater.pulumi.settings import APPROVED_PLAN
from headwater.report.plan_json import ApprovedPlan, plan_digest, read_approved, topic_differences

_MOST_TOPICS = 10
_MOST_BYTES = 64 << 20


def approval_problem(plan: Plan, approved: str | None) -> Problem | None:
    """Return the problem of a plan that is not the approved one; None if it is, or if any plan may be made.

    All values of the plan are compared, with the ids of existing topics. The run then makes this plan: it
    does not plan again.

    Args:
        plan: The plan of this run.
        approved: A digest, or the path of a file with the JSON of a plan. An empty text approves nothing: a
            pipeline that lost the digest must not apply any plan.
    """
    if approved is None:
        return None
    try:
        expected = _read(approved)
    except (OSError, ValueError) as error:
        return _problem(
            f"The approved plan cannot be read: {getattr(error, 'strerror', None) or error}.",
            expected="a digest, or a file of `headwater plan --format json`",
            found=approved or "nothing",
        )
    found = plan_digest(plan)
    if found == expected.digest:
        return None
    return _problem(
        "This is not the plan that was approved." + _differing(expected, plan),
        expected=expected.digest,
        found=found,
    )


def _read(approved: str) -> ApprovedPlan:
    if not approved:
        raise ValueError(f"{APPROVED_PLAN} is empty")
    if approved.startswith("sha256:"):
        return read_approved(approved)
    with Path(approved).open("rb") as file:
        content = file.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise ValueError("it is too large")
    return read_approved(content.decode())


def _differing(approved: ApprovedPlan, plan: Plan) -> str:
    names = topic_differences(approved, plan)
    if not names:
        return ""
    more = len(names) - _MOST_TOPICS
    listed = ", ".join(names[:_MOST_TOPICS]) + (f" and {more:,} more" if more > 0 else "")
    return f" Different: {listed}."


def _problem(summary: str, *, expected: str, found: str) -> Problem:
    return Problem(
        code=ProblemCode.PLAN_NOT_APPROVED,
        summary=summary,
        expected=expected,
        found=found,
        why="The cluster, the stack or the documents have changed since the approval.",
        fix="Plan again, and have the new plan approved.",
    )
