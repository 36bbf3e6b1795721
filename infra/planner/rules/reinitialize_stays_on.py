"""`setup.reinitialize` is still set although there is nothing to re-initialize."""

from collections.abc import Iterator

from infra.model.problems import Problem, ProblemCode, Severity
from infra.planner.application import ActiveApplication


def reinitialize_stays_on(application: ActiveApplication) -> Iterator[Problem]:
    """Left on it would let the next loss of a topic pass without an error."""
    if not application.setup.reinitialize or application.record is None:
        return
    if not application.has_losses:
        yield application.problem(
            ProblemCode.CONFIG_HAS_NO_EFFECT,
            f"{application.id} has `setup.reinitialize: true` and no lost topic to re-initialize.",
            expected="`setup.reinitialize` only for the one run that needs it",
            found="no lost topic",
            why="Left on, it lets the next loss of an internal topic pass: the topic would be created anew, "
            "empty.",
            fix="Remove `setup.reinitialize` from the document.",
            severity=Severity.WARNING,
        )
