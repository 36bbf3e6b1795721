"""`setup.reinitialize` is set, but no topic is lost."""

from collections.abc import Iterator

from headwater.model.problems import Problem, ProblemCode, Severity
from headwater.planner.application import ActiveApplication


def reinitialize_stays_on(application: ActiveApplication) -> Iterator[Problem]:
    """Yield a warning: left on, it would hide the next loss of a topic."""
    if not application.setup.reinitialize or application.record is None:
        return
    if not application.has_losses:
        yield application.problem(
            ProblemCode.CONFIG_HAS_NO_EFFECT,
            f"{application.id} has `setup.reinitialize: true`, but no topic is lost.",
            expected="`setup.reinitialize` only for the `pulumi up` that needs it",
            found="no lost topic",
            why="The next time that an internal topic is lost, it would be re-created, empty, without an "
            "error.",
            fix="Remove `setup.reinitialize` from the document.",
            severity=Severity.WARNING,
        )
