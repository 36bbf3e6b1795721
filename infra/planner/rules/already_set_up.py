"""Internal topics exist that Headwater did not set up, and set-up is manual."""

from collections.abc import Iterator

from infra.model.problems import Problem, ProblemCode
from infra.planner.situation import Situation
from infra.planner.wording import counted, listed


def already_set_up(situation: Situation) -> Iterator[Problem]:
    """KIP-698, `InternalTopicsAlreadySetupException`: `init()` finds all internal topics.

    Holds as well for a topic that joins an application that was set up and turns out to exist.
    """
    if not situation.is_manual or situation.compiled.application.setup.adopt or not situation.is_decided:
        return
    foreign = [state for state in situation.internal if state.live and not state.is_ours]
    is_incomplete = situation.record is None and len(foreign) < len(situation.internal)
    if not foreign or is_incomplete:
        return
    yield situation.problem(
        ProblemCode.INTERNAL_TOPICS_ALREADY_SETUP,
        f"Internal topics of {situation.id} exist although Headwater did not set them up.",
        expected="none of them exists before it is set up",
        found=f"{counted(len(foreign), 'topic')}: {listed(state.name for state in foreign)}",
        why="They may hold the state of a running application, or be left from an earlier one. Set-up is "
        "manual, so somebody must say which.",
        fix="To take them over as they are, set `setup.adopt: true`. If they are left-overs, stop the "
        "application and delete them first.",
    )
