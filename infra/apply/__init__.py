"""A plan becomes Pulumi resources. With `__main__` the only importer of Pulumi.

Belongs here: the stack's settings and state, how topics are registered, what Pulumi cannot see. What a run
does is decided by the planner; nothing here decides again.
"""

from infra.apply.component import InternalTopics, Target
from infra.apply.ordering import register_all
from infra.apply.program import deploy, run_program
from infra.apply.settings import StackSettings, stack_settings

__all__ = [
    "InternalTopics",
    "StackSettings",
    "Target",
    "deploy",
    "register_all",
    "run_program",
    "stack_settings",
]
