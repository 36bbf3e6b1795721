"""Several stacks on one simulated cluster, with the ownership records that they share."""

import attrs

from headwater.model.compiled import CompiledApplication
from headwater.model.records import OwnershipChange, OwnershipRecord, SetupRecord, StackIdentity
from headwater.model.topology import Sink
from headwater.planner import Plan, PlanPolicy, plan
from headwater.planner.claims import change_after, change_before
from tests.planner.simulated_cluster import SimulatedCluster


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
