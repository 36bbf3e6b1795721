"""Plans as Pulumi resources: stack settings, stack state, registration, and changes that Pulumi cannot see.

Only this package and `__main__` import Pulumi. The planner decides what a run does.
"""

from typing import TYPE_CHECKING

from headwater import names_on_use

if TYPE_CHECKING:
    from headwater.pulumi.component import InternalTopics, Target
    from headwater.pulumi.ordering import register_all
    from headwater.pulumi.program import deploy, run_program
    from headwater.pulumi.settings import StackSettings, stack_settings

__all__ = [
    "InternalTopics",
    "StackSettings",
    "Target",
    "deploy",
    "register_all",
    "run_program",
    "stack_settings",
]
_MODULES = {
    "InternalTopics": "component",
    "StackSettings": "settings",
    "Target": "component",
    "deploy": "program",
    "register_all": "ordering",
    "run_program": "program",
    "stack_settings": "settings",
}

if not TYPE_CHECKING:  # Pulumi takes seconds to import, and the state of a stack needs none
    __getattr__, __dir__ = names_on_use(__name__, _MODULES)
