"""Generated names shifted with the topology: topics go on under others, without what they held."""

from collections.abc import Iterator

import attrs

from infra.model.problems import Problem, Severity
from infra.planner.situation import Situation


def renumbered(situation: Situation) -> Iterator[Problem]:
    """A loss like that of a deleted topic, and so judged alike: `automatic` warns, `manual` refuses."""
    is_error = situation.is_manual and not situation.compiled.application.setup.reinitialize
    for problem in situation.renumberings:
        yield attrs.evolve(problem, severity=Severity.ERROR, fix=_FIX) if is_error else problem


_FIX = (
    "Name the operator or store (`name`, `materialized`) as the topic was called, or undo what shifted the "
    "index. To go on without what the old topics hold, stop the application and set `setup.reinitialize: "
    "true` for one run."
)
