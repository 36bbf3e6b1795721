"""Which requests for more processors are accepted."""

from headwater.model.problems import ProblemsError
from headwater.model.topology import Application
from headwater_spark.driver.processor_expansion import problems
from headwater_spark.driver.processor_move.problems import fewer_processors
from headwater_spark.driver.states import ClientState
from headwater_spark.processor_expansion import ExpansionPhase, ProcessorsStatus


def requested_status(
    status: ProcessorsStatus, processors: int, state: ClientState, application: Application
) -> ProcessorsStatus:
    """Return the status after a request for this number; the same if it is reached or being reached.

    Raises:
        ProblemsError: The client is not RUNNING or REBALANCING, or cannot have this number.
    """
    present, target = status.processors, status.target
    if present is None:
        raise ProblemsError([problems.without_processors(application.id, application.at)])
    if processors == (target or present):
        return status
    if target is not None:
        is_checked = status.phase is ExpansionPhase.CHECK
        problem = problems.not_begun if is_checked else problems.other_expansion
        raise ProblemsError([problem(application.id, target, processors)])
    if state not in (ClientState.RUNNING, ClientState.REBALANCING):
        raise ProblemsError([problems.not_running(application.id, state.value)])
    if processors < present:
        found = fewer_processors(application.id, present, processors, application.at)
        raise ProblemsError([found])
    return ProcessorsStatus(present, processors, ExpansionPhase.CHECK)
