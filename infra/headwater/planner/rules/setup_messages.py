"""Problems of setup options that are left on."""

from headwater.model.problems import Problem, ProblemCode, Severity
from headwater.planner.application import ActiveApplication


def unneeded_reinitialize(application: ActiveApplication) -> Problem:
    switch = application.setup.in_stack.get("reinitialize")
    return application.problem(
        ProblemCode.CONFIG_HAS_NO_EFFECT,
        f"{application.id} has `setup.reinitialize: true`, but no topic is lost.",
        expected="`setup.reinitialize` only for the `pulumi up` that needs it",
        found=f"no lost topic, and `{switch.label}: true`" if switch else "no lost topic",
        why="The next time that an internal topic is lost, it would be re-created, empty, without an error.",
        fix=switch.removal if switch else "Remove `setup.reinitialize` from the document.",
        severity=Severity.WARNING,
        at=switch.at if switch else None,
    )


def unneeded_unsafe_expansion(application: ActiveApplication) -> Problem:
    """Return a hint if the option is in the document: the runtime on Spark and agents read it there.

    The runtime needs it until each task has committed its number of processors with the new partitions.
    """
    switch = application.setup.in_stack.get("allowUnsafeExpansion")
    fix = switch.removal if switch else _REMOVAL
    if switch is None and application.config.autoscaling:
        fix += " Keep it only if an agent must expand the application although its state is lost."
    return application.problem(
        ProblemCode.CONFIG_HAS_NO_EFFECT,
        f"{application.id} has `setup.allowUnsafeExpansion: true`, but no expansion needs it.",
        expected="`setup.allowUnsafeExpansion` only for the `pulumi up` that needs it",
        found=f"no topic to expand, and `{switch.label}: true`" if switch else "no topic to expand",
        why="The next time that source topics are expanded, keys may move away from their state without an "
        "error.",
        fix=fix,
        severity=Severity.WARNING if switch else Severity.INFO,
        at=switch.at if switch else None,
    )


_REMOVAL = (
    "Remove `setup.allowUnsafeExpansion` from the document. An application on Spark does not start without "
    "it until it has run with the new partition counts."
)
