"""PURE. Differences between what documents declare and what the cluster has, found by the planner's rules.

Belongs here: which differences there are and what they mean. What a run does about them is in the plan.
"""

from headwater.planner.drift.find import drift_evidence_request, find_drift
from headwater.planner.drift.findings import ApplicationDrift, Drift, Finding, FindingKind

__all__ = ["ApplicationDrift", "Drift", "Finding", "FindingKind", "drift_evidence_request", "find_drift"]
