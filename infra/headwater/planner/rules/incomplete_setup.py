"""With manual setup: an application was never set up, and only some of its internal topics exist."""

from collections.abc import Iterator

from headwater.model.problems import Problem, ProblemCode
from headwater.planner.application import ActiveApplication


def incomplete_setup(application: ActiveApplication) -> Iterator[Problem]:
    """KIP-698: `MissingInternalTopicsException` unless `setupInternalTopicsIfIncomplete`."""
    if not application.is_manual or application.setup.if_incomplete or not application.is_decided:
        return
    missing = [state for state in application.internal if state.live is None]
    total = len(application.internal)
    if application.record is not None or len(missing) in (0, total):
        return
    for state in missing:
        yield application.problem(
            ProblemCode.MISSING_INTERNAL_TOPICS,
            f"Internal topic {state.name} is missing: only {total - len(missing)} of {total} exist.",
            topic=state,
            expected=f"a topic with {state.partitions} partitions",
            found="none",
            why="Either its setup was interrupted, or topics and their data were lost.",
            fix="If no data was lost, set `setup.ifIncomplete: true`: Headwater then creates the missing "
            "topics and manages the others. Otherwise restore the topic first, and set `setup.adopt: "
            "true` for "
            "one `pulumi up`.",
        )
