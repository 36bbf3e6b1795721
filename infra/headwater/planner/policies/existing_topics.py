"""One warning for all topics that exist and violate a policy in the same way.

An application that was set up before the policy keeps its topics and their names. A warning for each of them
would hide the others.
"""

from collections.abc import Collection, Iterator, Sequence

from headwater.model.policies import Policy
from headwater.model.problems import Problem, Severity
from headwater.planner.phrases import counted
from headwater.planner.policies.subject import Subject

_SHOWN = 5


def group_existing(
    problems: Sequence[Problem], policy: Policy, subject: Subject, existing: Collection[str]
) -> Iterator[Problem]:
    """Yield the problems of one policy and application, warnings about existing topics as one.

    Args:
        problems: The violations of `policy`, in order.
        policy: The policy.
        subject: The application.
        existing: The names of the topics that exist.
    """
    groups: dict[tuple[str, str], list[Problem]] = {}
    for problem in problems:
        if problem.severity is not Severity.ERROR and problem.topic in existing:
            groups.setdefault((problem.why, problem.fix), []).append(problem)
    for problem in problems:
        group = groups.get((problem.why, problem.fix), [])
        if problem not in group or len(group) == 1:
            yield problem
        elif problem is group[0]:
            yield _for_all(group, policy, subject)


def _for_all(group: Sequence[Problem], policy: Policy, subject: Subject) -> Problem:
    first = group[0]
    more = f" and {len(group) - _SHOWN:,} more" if len(group) > _SHOWN else ""
    topics = ", ".join(f"{problem.topic} ({problem.found})" for problem in group[:_SHOWN])
    return Problem(
        code=first.code,
        summary=f"{counted(len(group), 'existing topic')} of {subject.application.id} "
        f"do not follow the policy {policy.key}.",
        application=first.application,
        expected=first.expected,
        found=f"{topics}{more}",
        why=first.why,
        fix=first.fix,
        location=subject.application.at,
        severity=first.severity,
    )
