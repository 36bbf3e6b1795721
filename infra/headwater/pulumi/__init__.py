"""Plans as Pulumi resources: stack settings, stack state, registration, and changes that Pulumi cannot see.

Only this package and `__main__` import Pulumi. The planner decides what a run does.
"""

from importlib import import_module
from typing import TYPE_CHECKING

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


if not TYPE_CHECKING:  # type checkers would accept every name of a module with this function

    def __getattr__(name: str) -> object:
        """Import a name on first use: Pulumi takes seconds to import, and the state of a stack needs none."""
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    """Return the names of the package, also names that were not used yet."""
    return sorted({*globals(), *__all__})
