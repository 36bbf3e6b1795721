"""`GET` and `POST /control/threads`: list, add and remove stream threads of a running client (KIP-663)."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Protocol

import attrs

from headwater.control import Refused, Route
from headwater.control.surface import Body
from headwater_spark.driver.states import ClientState
from headwater_spark.stream_threads import RemovalTimeoutError, ThreadMetadata

PATH = "/control/threads"
_USAGE = (
    'Send {"action": "add"}, {"action": "remove"} or {"action": "remove", "timeoutMs": N}, with N a whole '
    "number of milliseconds of at least 0."
)


class ThreadControl(Protocol):
    """An application that starts or runs."""

    @property
    def state(self) -> ClientState: ...

    @property
    def slots(self) -> int: ...

    def threads(self) -> tuple[ThreadMetadata, ...]: ...

    def add_stream_thread(self) -> str | None: ...

    def remove_stream_thread(self, timeout_seconds: float | None = None) -> str | None: ...


def threads_route(current: Callable[[], ThreadControl]) -> Route:
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
                raise Refused(_USAGE)
        return {"thread": name, **_thread_status(application)}

    return Route(PATH, handle, read)


def _remove_thread(application: ThreadControl, timeout_ms: int | None) -> str:
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
        raise Refused(_USAGE)
    return timeout


def _not_allowed(application: ThreadControl, what: str) -> Refused:
    return Refused(
        f"No stream thread was {what}: the application is {application.state.value}. Try again when it is "
        "RUNNING or REBALANCING.",
        HTTPStatus.CONFLICT,
        _thread_status(application),
    )


def _thread_status(application: ThreadControl) -> dict[str, Any]:
    return {
        "state": application.state.value,
        "slots": application.slots,
        "threads": [attrs.asdict(thread) for thread in application.threads()],
    }
