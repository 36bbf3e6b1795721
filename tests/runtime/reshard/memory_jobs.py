"""Jobs of Spark in one process, whose tasks are lost, repeated, or continue much later."""

import random
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from enum import Enum, auto

import attrs

from headwater_spark.driver.reshard.share_tasks import Answer, Failure, Pass, run_share
from tests.runtime.reshard.memory_reshard import ReshardMemoryCluster


class Fate(Enum):
    """What happens to a task."""

    DONE = auto()
    FAILED = auto()
    """It reports a failure before it has done anything."""
    LOST_MIDWAY = auto()
    """Its executor is lost after some operations, or all. Spark executes it again."""
    LOST_AFTER = auto()
    """Its executor is lost before the result arrives."""
    LATE = auto()
    """It begins long after Spark has given it up: it runs during a later job."""
    UNANSWERED = auto()
    """It is executed, but the job fails."""


class _LostError(BaseException):
    """The executor was lost."""


@attrs.define
class MemoryJobs:
    """Runs the tasks of jobs one after the other. `fate` chooses what happens to each."""

    cluster: ReshardMemoryCluster
    fate: Callable[[], Fate] = lambda: Fate.DONE
    chance: random.Random = attrs.field(factory=lambda: random.Random(1))  # noqa: S311
    late: list[tuple[Pass, int]] = attrs.field(factory=list)
    jobs: list[tuple[str, Sequence[int]]] = attrs.field(factory=list)
    """What each job has done, and for which shares."""

    def run(self, what: str, request: Pass, shares: Sequence[int]) -> Mapping[int, Answer]:
        self.jobs.append((what, list(shares)))
        answers: dict[int, Answer] = {}
        for share in self.chance.sample(list(shares), len(shares)):
            if self.chance.random() < 0.5:
                self.run_late(request)
            answer = self._answer(request, share, self.fate())
            if answer is not None:
                answers[share] = answer
        return answers

    def run_late(self, present: Pass | None = None) -> None:
        """Run the tasks that were given up: only a task of the `present` job may write."""
        late, self.late = self.late, []
        for request, share in late:
            answer = run_share(request, share, 0)
            assert request is present or answer == Failure("another client executes it")

    def _answer(self, request: Pass, share: int, fate: Fate) -> Answer | None:
        if fate is Fate.FAILED:
            return Failure("brokers do not answer")
        if fate is Fate.LATE and request.writes:
            self.late.append((request, share))
            return run_share(request, share, 1)
        if fate is Fate.LOST_MIDWAY:
            with self._lost_after(self.chance.randrange(12)), suppress(_LostError):
                run_share(request, share, 0)
            return run_share(request, share, 1)
        first = run_share(request, share, 0)
        if fate is Fate.LOST_AFTER:
            return run_share(request, share, 1)
        return None if fate is Fate.UNANSWERED else first

    @contextmanager
    def _lost_after(self, operations: int) -> Iterator[None]:
        before, left = self.cluster.before_operation, operations

        def count() -> None:
            nonlocal left
            before()
            left -= 1
            if left < 0:
                raise _LostError

        self.cluster.before_operation = count
        try:
            yield
        finally:
            self.cluster.before_operation = before


@attrs.define
class PausedTask:
    """A task that stops before one of its operations, as a process that is paused, and continues later."""

    cluster: ReshardMemoryCluster
    operations: int
    _paused: threading.Event = attrs.field(factory=threading.Event)
    _continued: threading.Event = attrs.field(factory=threading.Event)
    _answers: list[Answer] = attrs.field(factory=list)
    _thread: threading.Thread | None = None

    def start(self, request: Pass, share: int) -> None:
        """Run the task until it is paused."""
        left = self.operations

        def count() -> None:
            nonlocal left
            if threading.current_thread() is not self._thread:
                return
            left -= 1
            if left == 0:
                self._paused.set()
                assert self._continued.wait(300)

        def run() -> None:
            self._answers.append(run_share(request, share, 0))
            self._paused.set()

        self.cluster.before_operation = count
        self._thread = threading.Thread(target=run, daemon=True)
        self._thread.start()
        assert self._paused.wait(300)

    def continue_(self) -> Answer:
        """Let the task continue; return its answer."""
        assert self._thread is not None
        self._continued.set()
        self._thread.join(300)
        [answer] = self._answers
        return answer
