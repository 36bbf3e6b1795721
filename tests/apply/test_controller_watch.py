"""While resources are registered, the controller is asked whether it answers."""

import asyncio
import threading
from collections.abc import Callable, Coroutine

import pytest

from headwater.model.problems import Problem, ProblemCode, Severity
from headwater.pulumi.controller_watch import controller_watch

_PROBLEM = Problem(
    code=ProblemCode.REQUEST_NOT_ANSWERED,
    summary="The controller of the cluster does not answer.",
    severity=Severity.WARNING,
)


def _run(
    ask: Callable[[], Problem | None], body: Callable[[list[Problem]], object], pause_seconds: float = 0.001
) -> list[Problem]:
    """Run `body` in a thread, as registrations are, and return what was reported."""
    reported: list[Problem] = []

    async def run() -> None:
        async with controller_watch(ask, reported.append, pause_seconds):
            await asyncio.to_thread(body, reported)

    _complete(run())
    return reported


def _complete(body: Coroutine[None, None, None]) -> None:
    """Run in a loop of its own: `asyncio.run` would leave the thread without one, which Pulumi needs."""
    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(body)
        loop.run_until_complete(loop.shutdown_default_executor())
    finally:
        loop.close()


def _wait_for(condition: Callable[[], object]) -> None:
    done = threading.Event()
    while not condition():
        done.wait(0.001)


def test_a_problem_is_reported_once_while_the_registrations_wait() -> None:
    asked: list[int] = []

    def ask() -> Problem | None:
        asked.append(len(asked))
        return _PROBLEM if len(asked) > 2 else None

    assert _run(ask, lambda reported: _wait_for(lambda: reported)) == [_PROBLEM]
    assert len(asked) == 3


def test_a_failed_registration_is_explained_if_the_controller_was_not_asked_before() -> None:
    reported: list[Problem] = []

    async def run() -> None:
        async with controller_watch(lambda: _PROBLEM, reported.append, 60):
            raise RuntimeError("context deadline exceeded")

    with pytest.raises(RuntimeError, match="context deadline exceeded"):
        _complete(run())
    assert reported == [_PROBLEM]


def test_a_fast_run_asks_nothing() -> None:
    asked: list[int] = []

    def ask() -> Problem | None:
        asked.append(1)
        return _PROBLEM

    assert _run(ask, lambda _: None, 60) == []
    assert asked == []


def test_an_error_of_the_question_is_ignored() -> None:
    """The registrations decide whether the run succeeds."""
    asked = threading.Event()

    def ask() -> Problem | None:
        asked.set()
        raise OSError("no route to host")

    assert _run(ask, lambda _: asked.wait(60)) == []
