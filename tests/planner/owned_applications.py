"""The application of two stacks in each state of its life, and who owns it afterwards."""

from collections.abc import Mapping

from headwater.model.problems import Problem, ProblemCode, Severity
from headwater.model.topology import Lifecycle, Setup
from headwater.planner import Plan
from tests.planner.simulated_cluster import application
from tests.planner.simulated_stacks import Cluster

REPARTITION, CHANGELOG, SINK = "orders-step1-repartition", "orders-counts-changelog", "orders-out"
ORDERS = application()
RETIRED = application(lifecycle=Lifecycle.RETIRED)
RELEASED = application(lifecycle=Lifecycle.RELEASED)
TAKING_OVER = application(setup=Setup(take_over=True))


def conflicts(planned: Plan, severity: Severity = Severity.ERROR) -> list[Problem]:
    return [
        problem
        for problem in planned.problems
        if problem.code is ProblemCode.MANAGED_BY_ANOTHER_STACK and problem.severity is severity
    ]


def owners(cluster: Cluster) -> Mapping[str, set[str]]:
    found: dict[str, set[str]] = {}
    for record in cluster.ownership.values():
        found.setdefault(record.application_id, set()).add(record.stack.id)
    return found
