"""A request for processors while another thread executes an expansion to the same number."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from headwater.model.problems import Location, ProblemCode, ProblemsError
from headwater.model.topology import Application
from headwater_spark.driver.processor_expansion import expansion_status as module
from headwater_spark.driver.processor_expansion.expansion_status import ExpansionStatus
from headwater_spark.driver.processor_expansion.problems import requested_status
from headwater_spark.driver.states import ClientState
from headwater_spark.stream_threads import ExpansionPhase, ProcessorsStatus


def test_a_repeated_request_does_not_restore_the_status_from_before_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    application = Application(id="app", at=Location("app.yaml", 1, 1, ""), processors=2)
    topics = SimpleNamespace(document=SimpleNamespace(application=application))
    status = ExpansionStatus(topics=cast("Any", topics))
    status._current = ProcessorsStatus(2, 4, ExpansionPhase.CUT)

    def requested(before: ProcessorsStatus, *others: Any) -> ProcessorsStatus:  # noqa: ANN401 - passed on
        found = requested_status(before, *others)
        status._current = ProcessorsStatus(4)  # the expansion ends just now
        return found

    monkeypatch.setattr(module, "requested_status", requested)
    status.request(4, ClientState.RUNNING)
    assert status.current == ProcessorsStatus(4)


@pytest.mark.parametrize(
    ("state", "says"),
    [
        (ClientState.CREATED, "Wait until it runs, and request the expansion again"),
        (ClientState.PENDING_SHUTDOWN, "Start the application again"),
        (ClientState.NOT_RUNNING, "Start the application again"),
        (ClientState.PENDING_ERROR, "Start the application again"),
        (ClientState.ERROR, "Start the application again"),
    ],
)
def test_a_client_that_has_ended_is_started_and_another_one_is_awaited(state: ClientState, says: str) -> None:
    application = Application(id="app", at=Location("app.yaml", 1, 1, ""), processors=2)
    with pytest.raises(ProblemsError) as raised:
        requested_status(ProcessorsStatus(2), 4, state, application)
    (problem,) = raised.value.problems
    assert (problem.code, problem.fix.startswith(says)) == (ProblemCode.EXPANSION_WAITS, True), problem.fix
    assert requested_status(ProcessorsStatus(2), 4, ClientState.RUNNING, application).target == 4
