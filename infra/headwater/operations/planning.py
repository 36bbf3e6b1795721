"""The plan of documents for a cluster that was observed."""

import attrs

from headwater.operations.observation import Observation
from headwater.operations.unknown_replication import unknown_replication
from headwater.planner import Plan, PlanPolicy, plan
from headwater.planner.upgrade import compile_recorded


def plan_documents(observed: Observation, policy: PlanPolicy, elapsed_ms: int) -> Plan:
    """Return the plan that commands print and that Pulumi applies; `elapsed_ms` is how long it took so far.

    Errors of a user are in its `problems`.
    """
    records = observed.records or {}
    earlier = compile_recorded(observed.documents, records, observed.snapshot.partitions)
    planned = plan(observed.compiled, observed.snapshot, records, policy, elapsed_ms, earlier=earlier)
    return attrs.evolve(planned, problems=(*planned.problems, *unknown_replication(planned)))
