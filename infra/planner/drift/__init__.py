"""PURE. Where the live cluster differs from what is declared, found by the planner's own decisions.

Belongs here: which differences there are and what they mean. What a run would do about them is for the plan.
"""

from infra.planner.drift.find import find_drift
from infra.planner.drift.findings import ApplicationDrift, Drift, Finding, FindingKind

__all__ = ["ApplicationDrift", "Drift", "Finding", "FindingKind", "find_drift"]
