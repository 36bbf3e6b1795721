"""PURE. Checks of policies, one file per kind of policy; none knows another.

`check_application` checks one application, as declared or as planned; `check_run` checks a whole run, and
`expansion_violations` an expansion of agent or runtime.
"""

from infra.planner.policies.checks import check_application, check_run
from infra.planner.policies.expansion import expansion_violations
from infra.planner.policies.subject import declared, planned

__all__ = ["check_application", "check_run", "declared", "expansion_violations", "planned"]
