"""PURE. Make a plan, or problems, from compiled applications, a snapshot of the cluster and setup records.

Belongs here: what a run does, and when it must refuse, one file per rule (`rules`). Nothing is read or
printed.
"""

from headwater.planner.actions import AclAction, AclActionKind, ActionKind, ConfigChange, TopicAction
from headwater.planner.decide import plan
from headwater.planner.document_settings import SettingChange
from headwater.planner.plans import ApplicationPlan, Plan, PlanPolicy

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
