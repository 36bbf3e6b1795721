"""What a plan contains, in the short forms that tests compare."""

from headwater.model.problems import Problem, ProblemCode, Severity, errors
from headwater.planner import ActionKind, Plan


def codes(plan: Plan) -> list[ProblemCode]:
    return [problem.code for problem in errors(plan.problems)]


def warnings(plan: Plan) -> list[Problem]:
    return [problem for problem in plan.problems if problem.severity is Severity.WARNING]


def kinds(plan: Plan) -> dict[str, ActionKind]:
    return {action.name: action.kind for action in plan.actions}
