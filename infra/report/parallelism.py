"""How many tasks a sub-topology has, in words."""

from infra.model.compiled import SubTopology
from infra.planner.wording import counted


def parallelism(part: SubTopology) -> str:
    """Return `4 tasks`; a sub-topology without sources of known size has an unknown number, not none."""
    if part.is_global:
        return "on every instance"
    return counted(part.tasks, "task") if part.tasks else "number of tasks not known"
