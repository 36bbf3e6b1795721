"""Log lines of a run: problems, and the plan of each application."""

from collections.abc import Iterable, Sequence

import attrs
import pulumi

from headwater.model.problems import Problem, Severity
from headwater.planner import ActionKind, ApplicationPlan, Plan
from headwater.planner.data_risks import data_risks
from headwater.pulumi.registration import Repair
from headwater.report import plan_text, problem_text
from headwater.report.plan_comment.preview import RISKS_HEAD

_MOST_LINES = 60
_MOST_PROBLEMS = 100
_LOG = {Severity.ERROR: pulumi.log.error, Severity.WARNING: pulumi.log.warn, Severity.INFO: pulumi.log.info}


def log_problems(problems: Iterable[Problem]) -> None:
    """Log each problem as one message, errors first."""
    ordered = sorted(problems, key=lambda problem: problem.severity is not Severity.ERROR)
    for problem in ordered[:_MOST_PROBLEMS]:
        _LOG[problem.severity](problem_text(problem))
    if (more := len(ordered) - _MOST_PROBLEMS) > 0:
        pulumi.log.warn(f"… {more} more problems; `headwater plan` shows them all")


def log_risks(plan: Plan) -> None:
    """Log all changes that can lose data or move keys as one message, if there are any."""
    if risks := data_risks(plan):
        lines = (f"  {risk.topic}: {risk.text}" for risk in risks)
        pulumi.log.info("\n".join([RISKS_HEAD, *lines]))


def log_interrupted(topics: Sequence[str]) -> None:
    """Log the topics that an interrupted run created and that are not in the state yet, if there are any.

    Pulumi keeps such a creation as a pending operation, and warns about it in every later run.
    """
    if topics:
        pulumi.log.info(
            "These topics were created by a run that was interrupted, and are added to the state now: "
            f"{', '.join(topics)}\n"
            "If Pulumi warns about pending operations, clear them afterwards: "
            "pulumi refresh --clear-pending-creates"
        )


def log_plan(plan: Plan, application: ApplicationPlan, repairs: Iterable[Repair]) -> None:
    """Log the plan of one application as `headwater plan` prints it, unless there is nothing to report."""
    is_quiet = not application.notes and not any(
        action.is_change or action.drift or action.note for action in application.actions
    )
    is_quiet = is_quiet and not any(action.is_change for action in application.acls)
    if is_quiet:
        return
    lines = plan_text(attrs.evolve(plan, applications=(application,))).splitlines()
    lines += [f"  outside Pulumi  {repair.name}  {repair.text}" for repair in repairs]
    # Topics to be deleted are always listed completely.
    is_ending = any(action.kind in (ActionKind.RETIRE, ActionKind.DELETE) for action in application.actions)
    more = len(lines) - _MOST_LINES
    if more > 0 and not is_ending:
        lines[_MOST_LINES:] = [f"  … {more} more lines; `headwater plan` shows them all"]
    pulumi.log.info("\n".join(lines))
