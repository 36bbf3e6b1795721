"""The status of an application's expansions, for the thread that executes them and those that read it."""

from collections.abc import Sequence
from threading import Lock

import attrs
import structlog

from headwater.model.problems import Problem
from headwater_spark.driver.processor_expansion.problems import requested_status
from headwater_spark.driver.states import ClientState
from headwater_spark.driver.topics.application_topics import ApplicationTopics
from headwater_spark.stream_threads import ExpansionPhase, ProcessorsStatus

_log = structlog.get_logger(__name__)
RETRY_SECONDS = 5.0
_DECLARED_RETRY_SECONDS = 60.0
"""After how long the expansion to the declared number is checked again if it is refused."""


@attrs.define(kw_only=True, eq=False)
class ExpansionStatus:
    """Says which number of processors is wanted, and how far its expansion is. Any thread may read it.

    Only the thread of the expansions changes it while there is a target; `request` may set a target.
    """

    _topics: ApplicationTopics
    _current: ProcessorsStatus = attrs.field(init=False)
    _request: Lock = attrs.field(factory=Lock, init=False)

    def __attrs_post_init__(self) -> None:
        self._current = ProcessorsStatus(self._topics.document.application.processors)

    @property
    def current(self) -> ProcessorsStatus:
        return self._current

    def request(self, processors: int, state: ClientState) -> None:
        """Set the target; nothing happens if it is set already, or reached.

        Raises:
            ProblemsError: The application is not in a state that allows it, or cannot have this number.
        """
        with self._request:
            current = self._current
            requested = requested_status(current, processors, state, self._topics.document.application)
            if requested is not current:  # else the expansion may change it meanwhile
                self._current = requested

    def begin(self, phase: ExpansionPhase, found: Sequence[Problem] = ()) -> None:
        """Note what the expansion does now, and why it has to wait, if it has to."""
        self._current = attrs.evolve(self._current, phase=phase, problems=tuple(found))

    def continue_interrupted(self, target: int) -> None:
        """Note that the expansion to `target` was announced before this start."""
        present = self._topics.document.application.processors
        self._current = ProcessorsStatus(present, target, ExpansionPhase.CATCH_UP)

    def end(self, *, copied: int = 0, found: Sequence[Problem] = ()) -> None:
        """Note that no expansion runs; the next target is the declared number, if it is larger."""
        present, declared = self._topics.document.application.processors, self._topics.declared_processors
        ended = ProcessorsStatus(present, copied=copied, problems=tuple(found))
        if present is not None and declared is not None and declared > present:
            ended = attrs.evolve(ended, target=declared, phase=ExpansionPhase.CHECK)
        self._current = ended

    def note_remaining(self, remaining: int, copied: int | None = None) -> None:
        """Note how many records are left, and if given, how many were copied."""
        copied = self._current.copied if copied is None else copied
        self._current = attrs.evolve(self._current, copied=copied, remaining=remaining)

    def note_delay(self, problem: Problem) -> None:
        """Note why the expansion waits, and log each reason once."""
        if self._current.problems != (problem,):
            _log.warning("expansion of processors delayed", reason=problem.summary, found=problem.found)
            self.begin(self._current.phase, [problem])

    def note_failure(self, found: Sequence[Problem]) -> float:
        """Log the problems, unless they are known; return after how many seconds to try again.

        A requested expansion that has changed nothing is refused: the result is 0.
        """
        for problem in () if tuple(found) == self._current.problems else found:
            _log.warning(
                "expansion of processors failed",
                problem=problem.code,
                summary=problem.summary,
                found=problem.found,
            )
        if self._topics.target_processors is not None:
            self.begin(ExpansionPhase.CATCH_UP, found)
            return RETRY_SECONDS
        if self._current.target == self._topics.declared_processors:
            self.begin(ExpansionPhase.CHECK, found)
            return _DECLARED_RETRY_SECONDS
        self.end(found=found)
        return 0.0
