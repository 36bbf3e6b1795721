"""`GET` and `POST /control/processors`: show the processors of a running application, add some (KIP-287)."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Protocol

from headwater.control import Refused, Route
from headwater.control.surface import Body
from headwater.model.problems import ProblemsError
from headwater.report.compile_json import problem_json
from headwater_spark.driver.states import ClientState
from headwater_spark.processor_expansion import ProcessorsStatus

PATH = "/control/processors"
_MOST = 2**31 - 1
_USAGE = 'Send {"processors": N}, with N a whole number from 1 to 2147483647.'


class ProcessorControl(Protocol):
    """An application that starts or runs."""

    @property
    def id(self) -> str: ...

    @property
    def state(self) -> ClientState: ...

    def processors(self) -> ProcessorsStatus: ...

    def expand_processors(self, processors: int) -> None: ...


def processors_route(current: Callable[[], ProcessorControl]) -> Route:
    """Return the route of processors; `current` returns the application."""

    def read() -> Body:
        return _shown(current())

    def handle(body: Body) -> Body:
        application = current()
        try:
            application.expand_processors(_processors(body))
        except ProblemsError as error:
            message = "\n".join(f"{each.summary} {each.fix}" for each in error.problems)
            refused = {**_shown(application), "problems": [problem_json(each) for each in error.problems]}
            raise Refused(message, HTTPStatus.CONFLICT, refused) from None
        return _shown(application)

    return Route(PATH, handle, read)


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


def _processors(body: Body) -> int:
    match body:
        case {"processors": int(processors), **rest} if not rest and not isinstance(processors, bool):
            if 1 <= processors <= _MOST:
                return processors
    raise Refused(_USAGE)


def _shown(application: ProcessorControl) -> dict[str, Any]:
    return {
        "application": application.id,
        "state": application.state.value,
        **processors_status(application.processors()),
    }
