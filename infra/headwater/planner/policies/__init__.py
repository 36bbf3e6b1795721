"""PURE. Checks of policies, one file per kind of policy; none knows another.

`check_application` checks one application, as declared or as planned; `check_run` checks a whole run, and
`expansion_violations` an expansion of agent or runtime.
"""

from headwater.planner.policies.checks import check_application, check_run, expansion_violations
from headwater.planner.policies.subject import declared, planned

__all__ = ["check_application", "check_run", "declared", "expansion_violations", "planned"]
