"""The drift of simulated clusters, in the short forms that tests compare."""

from headwater.model.compiled import CompiledApplication
from headwater.model.problems import Severity
from headwater.planner.drift import Drift, Finding, FindingKind, find_drift
from tests.planner.simulated_cluster import (
    SimulatedCluster,
)

REPARTITION, CHANGELOG = "orders-step1-repartition", "orders-counts-changelog"


def drift_of(cluster: SimulatedCluster, *compiled: CompiledApplication, recorded: bool = True) -> Drift:
    return find_drift(compiled, cluster.snapshot, cluster.records if recorded else None)


def kinds_of(drift: Drift) -> list[tuple[FindingKind, str | None, Severity]]:
    return [(finding.kind, finding.topic, finding.severity) for finding in drift.findings]


def only_finding(drift: Drift) -> Finding:
    assert not drift.problems
    (finding,) = drift.findings
    return finding
