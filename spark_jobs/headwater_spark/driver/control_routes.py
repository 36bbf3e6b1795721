"""The routes of a running application: `/control/threads` (KIP-663) and `/control/processors` (KIP-287).

`GET` shows stream threads and processors, `POST` adds some, and removes stream threads.
"""

from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Protocol

import attrs

from headwater.control import Refused, Route
from headwater.control.surface import Body
from headwater.model.problems import ProblemsError
from headwater.report.compiled import problem_json
from headwater_spark.driver.states import ClientState
from headwater_spark.stream_threads import ProcessorsStatus, RemovalTimeoutError, RunningApplication

_THREADS_PATH = "/control/threads"
_THREADS_USAGE = (
    'Send {"action": "add"}, {"action": "remove"} or {"action": "remove", "timeoutMs": N}, with N a whole '
    "number of milliseconds of at least 0."
)


class ControlledApplication(RunningApplication, Protocol):
    """An application that starts or runs."""

    @property
    def id(self) -> str: ...

    @property
    def state(self) -> ClientState: ...

    @property
    def slots(self) -> int:
        """The number of Spark tasks that run at the same time; 0 = not known yet."""
        ...


def threads_route(current: Callable[[], ControlledApplication]) -> Route:
    """Return the route of stream threads; `current` returns the application."""

    def read() -> Body:
        return _thread_status(current())

    def handle(body: Body) -> Body:
        application = current()
        match body:
            case {"action": "add", **rest} if not rest:
                name = application.add_stream_thread()
                if name is None:
                    raise _not_allowed(application, "added")
            case {"action": "remove", **rest} if not rest.keys() - {"timeoutMs"}:
                name = _remove_thread(application, _timeout_ms(rest))
            case _:
                raise Refused(_THREADS_USAGE)
        return {"thread": name, **_thread_status(application)}

    return Route(_THREADS_PATH, handle, read)


def _remove_thread(application: ControlledApplication, timeout_ms: int | None) -> str:
    try:
        name = application.remove_stream_thread(None if timeout_ms is None else timeout_ms / 1_000)
    except RemovalTimeoutError as error:
        more = {"thread": error.thread, **_thread_status(application)}
        raise Refused(str(error), HTTPStatus.GATEWAY_TIMEOUT, more) from None
    if name is not None:
        return name
    if application.state in (ClientState.RUNNING, ClientState.REBALANCING):
        raise Refused(
            "No stream thread was removed: none is alive.", HTTPStatus.CONFLICT, _thread_status(application)
        )
    raise _not_allowed(application, "removed")


def _timeout_ms(rest: Body) -> int | None:
    if "timeoutMs" not in rest:
        return None
    timeout = rest["timeoutMs"]
    if not isinstance(timeout, int) or isinstance(timeout, bool) or timeout < 0:
        raise Refused(_THREADS_USAGE)
    return timeout


def _not_allowed(application: ControlledApplication, what: str) -> Refused:
    return Refused(
        f"No stream thread was {what}: the application is {application.state.value}. Try again when it is "
        "RUNNING or REBALANCING.",
        HTTPStatus.CONFLICT,
        _thread_status(application),
    )


def _thread_status(application: ControlledApplication) -> dict[str, Any]:
    return {
        "state": application.state.value,
        "slots": application.slots,
        "threads": [attrs.asdict(thread) for thread in application.threads()],
    }


_PROCESSORS_PATH = "/control/processors"
_MOST_PROCESSORS = 2**31 - 1
_PROCESSORS_USAGE = 'Send {"processors": N}, with N a whole number from 1 to 2147483647.'


def processors_route(current: Callable[[], ControlledApplication]) -> Route:
    """Return the route of processors; `current` returns the application."""

    def read() -> Body:
        return _describe_processors(current())

    def handle(body: Body) -> Body:
        application = current()
        try:
            application.expand_processors(_read_processors(body))
        except ProblemsError as error:
            message = "\n".join(f"{each.summary} {each.fix}" for each in error.problems)
            refused = {
                **_describe_processors(application),
                "problems": [problem_json(each) for each in error.problems],
            }
            raise Refused(message, HTTPStatus.CONFLICT, refused) from None
        return _describe_processors(application)

    return Route(_PROCESSORS_PATH, handle, read)


def processors_status(status: ProcessorsStatus) -> dict[str, Any]:
    """Return the JSON object of the processors of an application, as in `/status`."""
    return {
        "processors": status.processors,
        "target": status.target,
        "phase": status.phase.value,
        "copied": status.copied,
        "remaining": status.remaining,
        "problems": [problem_json(problem) for problem in status.problems],
    }


def _read_processors(body: Body) -> int:
    match body:
        case {"processors": int(processors), **rest} if not rest and not isinstance(processors, bool):
            if 1 <= processors <= _MOST_PROCESSORS:
                return processors
    raise Refused(_PROCESSORS_USAGE)


def _describe_processors(application: ControlledApplication) -> dict[str, Any]:
    return {
        "application": application.id,
        "state": application.state.value,
        **processors_status(application.processors()),
    }
