"""From compiled applications, one cluster snapshot and the recorded setups to a plan."""

from collections.abc import Mapping, Sequence

from infra.model.cluster import ClusterSnapshot
from infra.model.compiled import CompiledApplication
from infra.model.record import SetupRecord
from infra.planner.plans import Plan, PlanPolicy


def plan(
    compiled: Sequence[CompiledApplication],
    snapshot: ClusterSnapshot,
    records: Mapping[str, SetupRecord],
    policy: PlanPolicy,
    elapsed_ms: int = 0,
) -> Plan:
    """Decide what a run does; finds all problems, raises none.

    `records` is application id → recorded setup. `elapsed_ms` is the time that loading and reading have taken so far.
    """
    raise NotImplementedError
