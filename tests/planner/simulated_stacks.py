"""Several stacks on one simulated cluster, and their application in each state of its life."""

from collections.abc import Mapping

import attrs

from headwater.model.compiled import CompiledApplication
from headwater.model.problems import Problem, ProblemCode, Severity
from headwater.model.records import OwnershipChange, OwnershipRecord, SetupRecord, StackIdentity
from headwater.model.topology import Lifecycle, Setup, Sink
from headwater.planner import Plan, PlanPolicy, plan
from headwater.planner.claims import change_after, change_before
from tests.planner.simulated_cluster import SimulatedCluster, application


@attrs.define
class Cluster:
    """Topics and ownership records that several stacks share."""

    simulated: SimulatedCluster = attrs.field(factory=SimulatedCluster)
    ownership: dict[tuple[str, str], OwnershipRecord] = attrs.field(factory=dict)

    def write(self, change: OwnershipChange) -> None:
        self.ownership.update({record.key: record for record in change.written})
        for key in change.deleted:
            self.ownership.pop(key, None)


@attrs.define
class Stack:
    cluster: Cluster
    identity: StackIdentity
    records: dict[str, SetupRecord] = attrs.field(factory=dict)

    @classmethod
    def on(cls, cluster: Cluster, name: str, id_: str | None = None) -> "Stack":
        return cls(cluster, StackIdentity(name if id_ is None else id_, f"organization/headwater/{name}"))

    def plan(self, *applications: CompiledApplication) -> Plan:
        records = tuple(record for _, record in sorted(self.cluster.ownership.items()))
        simulated = self.cluster.simulated.snapshot
        evidence = attrs.evolve(self.cluster.simulated.evidence, ownership=records)
        snapshot = attrs.evolve(simulated, ownership=records, evidence=evidence)
        return plan(applications, snapshot, self.records, PlanPolicy(stack=self.identity))

    def begin(self, *applications: CompiledApplication) -> Plan:
        """Claim what the run changes, as a run does that is killed right after it."""
        planned = self.plan(*applications)
        assert planned.is_applicable, planned.problems
        assert planned.ownership is not None
        self.cluster.write(change_before(planned, planned.ownership))
        return planned

    def simulate_claim(self, sink: Sink) -> None:
        """Claim a sink at the same time as another stack: neither has read the other's record."""
        record = OwnershipRecord(application_id="sales", stack=self.identity, topics={sink.topic: ""})
        self.cluster.write(OwnershipChange((record,)))

    def up(self, *applications: CompiledApplication) -> Plan:
        planned = self.begin(*applications)
        assert planned.ownership is not None
        simulated = self.cluster.simulated
        simulated.records = self.records
        simulated.apply(planned)
        self.cluster.write(change_after(planned, planned.ownership, self.records))
        return planned


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
