"""With manual setup: internal topics exist that Headwater did not set up."""

from collections.abc import Iterator

from headwater.model.problems import Problem, ProblemCode
from headwater.planner.application import ActiveApplication
from headwater.planner.phrases import counted, listed


def already_set_up(application: ActiveApplication) -> Iterator[Problem]:
    """KIP-698, `InternalTopicsAlreadySetupException`: `init()` finds all internal topics.

    The same holds for a single topic that a changed topology adds and that exists already.
    """
    if not application.caller.knows_setup or not application.is_manual or application.setup.adopt:
        return
    if not application.is_decided:
        return
    foreign = [state for state in application.internal if state.live and not state.is_ours]
    is_incomplete = application.record is None and len(foreign) < len(application.internal)
    if not foreign or is_incomplete:
        return
    yield application.problem(
        ProblemCode.INTERNAL_TOPICS_ALREADY_SETUP,
        f"Internal topics of {application.id} exist although Headwater did not set them up.",
        expected="no internal topic exists before Headwater sets it up",
        found=f"{counted(len(foreign), 'topic')}: {listed(state.name for state in foreign)}",
        why="They may hold the state of a running application, or an earlier application left them behind. "
        "With `internal.topics.setup: manual` a user must decide.",
        fix="If the stack's state was restored or its backend is new, or if the application ran without "
        "Headwater, the topics are in use: set `setup.adopt: true` for one `pulumi up`, which manages them "
        "as they are. Delete them only if no application uses them and their data is not needed.",
    )
