"""PURE. Checks of policies, one file per kind of policy; none knows another.

`check_application` checks one application, as declared or as planned; `check_run` checks a whole run,
`expansion_violations` an expansion without a plan, and `creation_violations` new topics without one.
"""

from headwater.planner.policies.checks import (
    check_application,
    check_run,
    creation_violations,
    expansion_violations,
)
from headwater.planner.policies.subject import declared_subject, planned_subject

__all__ = [
    "check_application",
    "check_run",
    "creation_violations",
    "declared_subject",
    "expansion_violations",
    "planned_subject",
]
