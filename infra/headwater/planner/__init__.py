"""PURE. Make a plan, or problems, from compiled applications, a snapshot of the cluster and setup records.

Belongs here: what a run does, and when it must refuse, one file per rule (`rules`). Nothing is read or
printed.
"""

from headwater.planner.decide import plan
from headwater.planner.document_settings import SettingChange
from headwater.planner.plans import (
    AclAction,
    AclActionKind,
    ActionKind,
    ApplicationPlan,
    ConfigChange,
    Plan,
    PlanPolicy,
    TopicAction,
)

__all__ = [
    "AclAction",
    "AclActionKind",
    "ActionKind",
    "ApplicationPlan",
    "ConfigChange",
    "Plan",
    "PlanPolicy",
    "SettingChange",
    "TopicAction",
    "plan",
]
