"""Report that the controller does not answer, while Pulumi's Kafka provider waits for it.

The provider waits two minutes, and its error names neither the controller nor a quota. So while resources are
registered, the controller is asked from time to time whether it answers.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from contextlib import asynccontextmanager, suppress

from headwater.kafka.pending_requests import in_background
from headwater.model.problems import Problem

_PAUSE_SECONDS = 20.0
_LONGEST_SECONDS = 60.0
"""One request is awaited for 15 s, then the brokers are asked for 12 s."""
Ask = Callable[[], Problem | None]
"""Returns the problem of the controller, if there is one. Blocks."""


@asynccontextmanager
async def controller_watch(
    ask: Ask, report: Callable[[Problem], object], pause_seconds: float = _PAUSE_SECONDS
) -> AsyncIterator[None]:
    """Report, once, the problem of the controller while the body of the `async with` runs.

    If the body fails before that was asked, it is asked then: it may be the reason.
    """
    reported: list[Problem] = []

    async def ask_once() -> None:
        problem = await _await_answer(ask)
        if problem is not None and not reported:
            reported.append(problem)
            report(problem)

    async def watch() -> None:
        while not reported:
            await asyncio.sleep(pause_seconds)
            await ask_once()

    watching = asyncio.create_task(watch())
    try:
        yield
    except Exception:
        await _end_watch(watching)
        if not reported:
            await ask_once()
        raise
    finally:
        await _end_watch(watching)


async def _await_answer(ask: Ask) -> Problem | None:
    """Wait for the answer in a thread of its own: the threads of the event loop wait for the provider.

    An answer that is not awaited any more continues there, and is ignored; so is an error.
    """
    loop, is_answered = asyncio.get_running_loop(), asyncio.Event()

    def note(_: Future[Problem | None]) -> None:
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(is_answered.set)

    answer = in_background(ask)
    answer.add_done_callback(note)
    with suppress(TimeoutError):
        async with asyncio.timeout(_LONGEST_SECONDS):  # `wait_for` of Python 3.11 may ignore a cancellation
            await is_answered.wait()
    return answer.result() if answer.done() and answer.exception() is None else None


async def _end_watch(watching: "asyncio.Task[None]") -> None:
    watching.cancel()
    with suppress(asyncio.CancelledError):
        await watching
