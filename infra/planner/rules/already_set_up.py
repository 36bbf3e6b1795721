"""Internal topics exist that Headwater did not set up, and set-up is manual."""

from collections.abc import Iterator

from infra.model.problems import Problem, ProblemCode
from infra.planner.application import ActiveApplication
from infra.planner.wording import counted, listed


def already_set_up(application: ActiveApplication) -> Iterator[Problem]:
    """KIP-698, `InternalTopicsAlreadySetupException`: `init()` finds all internal topics.

    Holds as well for a topic that joins an application that was set up and turns out to exist.
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
        expected="none of them exists before it is set up",
        found=f"{counted(len(foreign), 'topic')}: {listed(state.name for state in foreign)}",
        why="They may hold the state of a running application, or be left from an earlier one. Set-up is "
        "manual, so somebody must say which.",
        fix="To take them over as they are, set `setup.adopt: true`. If they are left-overs, stop the "
        "application and delete them first.",
    )
