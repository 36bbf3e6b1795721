"""Generated names shifted with the topology: internal topics got other names and leave their data behind."""

from collections.abc import Iterator

from headwater.model.problems import Problem
from headwater.planner.application import ActiveApplication


def renumbered(application: ActiveApplication) -> Iterator[Problem]:
    """Like the loss of a topic: `automatic` warns, `manual` refuses."""
    yield from application.renumberings
