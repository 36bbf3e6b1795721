"""A plan becomes Pulumi resources. With `__main__` the only importer of Pulumi.

Belongs here: the stack's settings and state, how topics are registered, what Pulumi cannot see. What a run
does is decided by the planner; nothing here decides again.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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
_HOMES = {
    "InternalTopics": "component",
    "StackSettings": "settings",
    "Target": "component",
    "deploy": "program",
    "register_all": "ordering",
    "run_program": "program",
    "stack_settings": "settings",
}


def __getattr__(name: str) -> object:
    """Load a name when it is used: who reads a stack's state only does not wait seconds for Pulumi."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
