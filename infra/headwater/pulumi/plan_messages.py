"""The messages that a run logs about its plan: one for each application that changes, up to a limit."""

from collections.abc import Iterable, Iterator, Mapping

import attrs

from headwater.planner import ActionKind, ApplicationPlan, Plan
from headwater.pulumi.registration import Repair
from headwater.report import application_text
from headwater.report.plan_comment.inputs import NOT_LISTED
from headwater.report.plan_text import summary

_MOST_LINES = 60
_MOST_APPLICATIONS = 100
_ENDING = (ActionKind.RETIRE, ActionKind.DELETE)


def plan_messages(plan: Plan, repairs: Mapping[str, Iterable[Repair]]) -> Iterator[str]:
    """Yield the plan of each application as `headwater plan` shows it, and last how many are not listed.

    Applications with nothing to report have no message. Topics to be deleted are always listed completely.

    Args:
        plan: The plan of the run.
        repairs: Application id → what changed outside Pulumi, and is repaired.
    """
    listed = 0
    others: list[ApplicationPlan] = []
    for application in plan.applications:
        if _is_quiet(application):
            continue
        is_ending = any(action.kind in _ENDING for action in application.actions)
        if listed >= _MOST_APPLICATIONS and not is_ending:
            others.append(application)
            continue
        listed += 1
        lines = application_text(plan, application).splitlines()
        lines += [
            f"  outside Pulumi  {repair.name}  {repair.text}"
            for repair in repairs.get(application.application_id, ())
        ]
        more = len(lines) - _MOST_LINES
        if more > 0 and not is_ending:
            lines[_MOST_LINES:] = [f"  … {more} more lines; `headwater plan` shows them all"]
        yield "\n".join(lines)
    if others:
        rest = summary(attrs.evolve(plan, applications=tuple(others)))
        yield f"{rest}\n{NOT_LISTED}"


def _is_quiet(application: ApplicationPlan) -> bool:
    return (
        not application.notes
        and not application.settings
        and not any(action.is_change or action.drift or action.note for action in application.actions)
        and not any(action.is_change for action in application.acls)
    )
