"""PURE. Policies judged: one file a rule, each knows its own kind of policy and no other.

`judge_application` looks at one application, declared or planned; `judge_run` at what a whole run does.
"""

from infra.planner.policies.judging import judge_application, judge_run
from infra.planner.policies.subject import declared, planned

__all__ = ["declared", "judge_application", "judge_run", "planned"]
