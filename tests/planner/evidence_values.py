"""Values for the tests of owners of topics."""

import attrs

from headwater.model.compiled import CompiledApplication
from headwater.model.problems import Problem, ProblemCode, Severity
from headwater.model.records import OwnershipRecord, StackIdentity
from headwater.model.topology import Leftovers, Lifecycle
from headwater.planner import Plan
from tests.planner.simulated_cluster import (
    MANUAL,
    application,
)

REPARTITION, CHANGELOG, OLD = "orders-step1-repartition", "orders-counts-changelog", "orders-old-changelog"
RETIRED = application(lifecycle=Lifecycle.RETIRED)
OTHER_STACK = StackIdentity("other", "organization/headwater/other")
USERS = {"cleanup.policy": "delete", "retention.ms": "-1"}
"""The settings of a topic that a user created."""


def refusals(planned: Plan, code: ProblemCode = ProblemCode.DELETION_REFUSED) -> list[Problem]:
    return [p for p in planned.problems if p.code is code and p.severity is Severity.ERROR]


def with_leftovers(
    *, retire: tuple[str, ...] = (), delete: tuple[str, ...] = (), keep: tuple[str, ...] = ()
) -> CompiledApplication:
    compiled = application(config=MANUAL)
    leftovers = Leftovers(retire, delete, keep)
    return attrs.evolve(compiled, application=attrs.evolve(compiled.application, leftovers=leftovers))


def recorded(id_: str, *topics: str, reads: str = "") -> OwnershipRecord:
    return OwnershipRecord(
        application_id=id_,
        stack=OTHER_STACK,
        topics=dict.fromkeys(topics, ""),
        reads=frozenset({reads} if reads else ()),
    )
