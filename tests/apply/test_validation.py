"""The check of a plan by the brokers, with an admin client that does not answer."""

from collections.abc import Callable
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import attrs
import pytest

from headwater.kafka import Connection
from headwater.kafka.kafka_errors import Answering
from headwater.model.problems import ProblemCode, Severity
from headwater.operations import validation
from tests.planner.simulated_cluster import SimulatedCluster, application

_CONNECTION = Connection(bootstrap_servers=("unused:9092",))
_ANSWERING = Answering("kafka-1:9092", ("kafka-1:9092",))
_SUMMARY = "The controller of the cluster does not answer, and it makes all changes of topics."


@attrs.define
class SilentAdmin:
    """Answers only about some topics; reports delays of these seconds when it is polled."""

    report: Callable[[Any], object]
    delays: tuple[float, ...] = ()
    answered: frozenset[str] = frozenset()

    def create_topics(self, topics: list[Any], **_: object) -> dict[str, Future[None]]:
        results: dict[str, Future[None]] = {topic.topic: Future() for topic in topics}
        for name in self.answered:
            results[name].set_result(None)
        return results

    def poll(self, _: float) -> None:
        for each in self.delays:
            self.report(SimpleNamespace(throttle_time=each))


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that sets which broker answers, the reported delays, and the answered topics."""

    def set_up(answering: Answering | None, *delays: float, answered: frozenset[str] = frozenset()) -> None:
        def new_client(_: Connection, report: Callable[[Any], object], **_id: str) -> SilentAdmin:
            return SilentAdmin(report, delays, answered)

        monkeypatch.setattr(validation, "_REQUEST_SECONDS", 0.01)
        monkeypatch.setattr(validation, "admin_client", new_client)
        monkeypatch.setattr(validation, "find_answering", lambda *_: (answering, ()))

    return set_up


@pytest.mark.parametrize(("answering", "delays"), [(None, ()), (_ANSWERING, (1.0,))])
def test_brokers_that_do_not_answer_refuse_nothing(
    silent: Callable[..., None], answering: Answering | None, delays: tuple[float, ...]
) -> None:
    """The run itself reports that the cluster does not answer. A quota only delays it."""
    silent(answering, *delays)
    assert list(validation.find_refusals(_CONNECTION, SimulatedCluster().plan(application()))) == []


def test_a_controller_that_does_not_answer_refuses_a_run_and_no_preview(silent: Callable[..., None]) -> None:
    silent(_ANSWERING)
    plan = SimulatedCluster().plan(application())
    [problem] = validation.find_refusals(_CONNECTION, plan)
    assert (problem.code, problem.summary) == (ProblemCode.REQUEST_NOT_ANSWERED, _SUMMARY)
    assert problem.severity is Severity.ERROR
    assert problem.found == "none; broker kafka-1:9092 answers"
    assert all(action.name in str(problem.expected) for action in plan.actions)
    assert list(validation.find_refusals(_CONNECTION, plan, with_permissions=False)) == []


def test_a_controller_that_answers_slowly_refuses_nothing(silent: Callable[..., None]) -> None:
    """It has answered about one topic, the others are late."""
    plan = SimulatedCluster().plan(application())
    first, *others = (action.name for action in plan.actions)
    assert others
    silent(_ANSWERING, answered=frozenset({first}))
    assert list(validation.find_refusals(_CONNECTION, plan)) == []


@pytest.mark.parametrize(
    ("answering", "delays", "summary"),
    [
        (None, (), None),
        (_ANSWERING, (), _SUMMARY),
        (_ANSWERING, (0.5,), _SUMMARY),
        (_ANSWERING, (0.5, 30.0), "A quota of the brokers delays changes of topics."),
    ],
)
def test_the_reason_why_a_run_waits_is_a_warning(
    silent: Callable[..., None], answering: Answering | None, delays: tuple[float, ...], summary: str | None
) -> None:
    silent(answering, *delays)
    problem = validation.controller_problem(_CONNECTION, "orders")
    assert (problem and problem.summary) == summary
    assert problem is None or problem.severity is Severity.WARNING
