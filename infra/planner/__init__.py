"""PURE. Compiled applications, a cluster snapshot and recorded setups become a plan.

Belongs here: what a run may do and what it must refuse, one file per refusal rule (`rules`). Reads and prints
nothing.
"""

from infra.planner.actions import ActionKind, ConfigChange, TopicAction
from infra.planner.decide import plan
from infra.planner.plans import ApplicationPlan, Plan, PlanPolicy

__all__ = ["ActionKind", "ApplicationPlan", "ConfigChange", "Plan", "PlanPolicy", "TopicAction", "plan"]
