"""Some of the internal topics of an application that was never set up exist, and set-up is manual."""

from collections.abc import Iterator

from infra.model.problems import Problem, ProblemCode
from infra.planner.application import ActiveApplication


def incomplete_setup(application: ActiveApplication) -> Iterator[Problem]:
    """KIP-698, `MissingInternalTopicsException` unless `setupInternalTopicsIfIncomplete`."""
    if not application.is_manual or application.setup.if_incomplete or not application.is_decided:
        return
    missing = [state for state in application.internal if state.live is None]
    total = len(application.internal)
    if application.record is not None or len(missing) in (0, total):
        return
    for state in missing:
        yield application.problem(
            ProblemCode.MISSING_INTERNAL_TOPICS,
            f"Internal topic {state.name} is missing while {total - len(missing)} of {total} exist.",
            topic=state,
            expected=f"a topic with {state.partitions} partitions",
            found="none",
            why="An application whose set-up is incomplete was either interrupted while it was set up, or "
            "has lost topics and their data.",
            fix="If nothing was lost, set `setup.ifIncomplete: true`: the missing topics are created, the "
            "others taken over. Otherwise restore the topic first.",
        )
