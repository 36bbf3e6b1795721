"""An application before Spark runs: its endpoint answers, and says which step takes how long."""

import time
from collections.abc import Iterable, Mapping
from typing import Any

import structlog

from headwater.model.problems import Problem, ProblemsError
from headwater_spark.driver.processor_expansion.problems import not_running
from headwater_spark.driver.states import ClientState
from headwater_spark.processor_expansion import ProcessorsStatus
from headwater_spark.stream_threads import ThreadMetadata

_log = structlog.get_logger(__name__)


class StartingApplication:
    """One thread calls `begin`, any thread reads the status; `StreamsApplication` replaces it."""

    problems: tuple[Problem, ...] = ()
    cluster_problem = ""
    """A cluster that cannot be read ends the start with a problem."""
    state = ClientState.CREATED

    def __init__(self, application: str) -> None:
        self.id = application
        self._step, self._since = "starting", time.monotonic()

    def begin(self, step: str) -> None:
        """Log a step, which takes seconds, and show it in the status."""
        _log.info(step, application=self.id)
        self._step, self._since = step, time.monotonic()

    @property
    def starting(self) -> str:
        return f"{self._step}, for {time.monotonic() - self._since:.0f} s"

    def subtopology_status(self) -> Iterable[Mapping[str, Any]]:
        return ()

    def stall_reason(self) -> str:
        return ""

    @property
    def slots(self) -> int:
        """The number of Spark tasks that run at the same time; 0 = not known yet."""
        return 0

    def threads(self) -> tuple[ThreadMetadata, ...]:
        """Return no stream thread: they are created with the queries."""
        return ()

    def add_stream_thread(self) -> str | None:
        """Return None: the state is CREATED."""
        return None

    def remove_stream_thread(self, timeout_seconds: float | None = None) -> str | None:
        """Return None: the state is CREATED."""
        del timeout_seconds
        return None

    def processors(self) -> ProcessorsStatus:
        """Return no number of processors: it is read when the topics are checked."""
        return ProcessorsStatus(None)

    def expand_processors(self, processors: int) -> None:
        """Raise `ProblemsError`: the state is CREATED."""
        del processors
        raise ProblemsError([not_running(self.id, self.state.value)])
