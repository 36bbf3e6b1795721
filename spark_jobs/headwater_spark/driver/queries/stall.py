"""Whether a query makes progress, and what it waits for if not.

As with `max.poll.interval.ms` of a consumer, a query that has records to read must show progress within a
limited time: a finished batch, or committed offsets while a batch runs. Time without records to read does not
count, nor while a query is paused or waits for its restart, nor while no broker answers.

A query that waits for its start or restart makes no progress anyway. If Spark's JVM does not answer
meanwhile, it waits without end, so that is a stall, too.
"""

import attrs

from headwater_spark.driver.states import QueryState

_LONGEST_STEP_SECONDS = 10.0
"""More time between two observations is not counted: the process itself was paused."""
UNOBSERVED_SECONDS = 120.0
"""The requests between two observations take less, also if no broker answers."""
MOST_SILENT_SECONDS = 30.0
"""Spark's JVM hangs if it answers no request for so long: a collection of garbage takes less."""
_POLLED = (QueryState.STARTING, QueryState.RUNNING)
_NOT_STARTED = (QueryState.STARTING, QueryState.WAITING)


@attrs.frozen(kw_only=True)
class Observation:
    """One query at one time.

    `lag` is the number of records that Spark has not read, None: unknown. `committed` is the sum of the
    committed offsets. `restored` is how many offsets of changelog topics the tasks that restore their state
    have read. `batches` is the number of finished batches, `restarts` the number of restarts.
    `has_threads`: a stream thread is alive; without one, the query waits until a thread is added.
    """

    state: QueryState
    lag: int | None
    committed: int = 0
    restored: int = 0
    batches: int = 0
    restarts: int = 0
    has_threads: bool = True

    def has_advanced(self, before: "Observation") -> bool:
        """Return whether there was progress, or nothing to do, since `before`."""
        if not self.lag or self.state not in _POLLED or not self.has_threads:
            return True
        now = self.committed, self.restored, self.batches, self.restarts
        return now != (before.committed, before.restored, before.batches, before.restarts)


@attrs.frozen(kw_only=True)
class ProgressClock:
    """How long a query has had records to read without progress. Times are seconds of a monotonic clock."""

    observed_at: float
    seconds: float = 0.0
    last: Observation | None = None

    def observed(self, observation: Observation, now: float) -> "ProgressClock":
        """Return the clock after an observation."""
        has_advanced = self.last is None or observation.has_advanced(self.last)
        step = min(now - self.observed_at, _LONGEST_STEP_SECONDS)
        return ProgressClock(
            observed_at=now, seconds=0.0 if has_advanced else self.seconds + step, last=observation
        )

    def is_stalled(self, limit_seconds: float) -> bool:
        return self.seconds >= limit_seconds

    def is_unobserved(self, limit_seconds: float, now: float) -> bool:
        """Return whether the lag was not measured for so long that the client itself must hang."""
        return now - self.observed_at >= max(limit_seconds, UNOBSERVED_SECONDS)


@attrs.frozen
class RunningBatch:
    """A batch that runs since `since`. `in_round`: it waits for batches that write its repartition topics.

    `for_topics`: it waits for the next records of other topics (`max.task.idle.ms`). `for_partitions`: it
    waits for a topic check, because partitions were added. `for_thread`: it waits for an idle stream thread.
    Without these, its tasks run, or wait for executors.
    """

    number: int
    since: float
    in_round: bool = False
    for_topics: bool = False
    for_partitions: bool = False
    for_thread: bool = False

    def is_long(self, limit_seconds: float, now: float) -> bool:
        """Return whether the batch runs for so long that its tasks may hang; records are waited for."""
        return not self.for_topics and now - self.since >= limit_seconds


def waits_for(
    observation: Observation | None,
    batch: RunningBatch | None,
    restart_in: float | None,
    now: float,
    *,
    has_executors: bool = True,
) -> str:
    """Return what a query waits for, as a phrase; `restart_in` is seconds, for a query that waits for it."""
    match observation.state if observation is not None else QueryState.STARTING:
        case QueryState.STARTING:
            return "Spark to start the query"
        case QueryState.WAITING:
            return f"its restart in {max(restart_in or 0.0, 0.0):.0f} s"
        case QueryState.STOPPED:
            return "its topics"
        case QueryState.FAILED:
            return "nothing: it has failed"
        case QueryState.RUNNING if batch is not None:
            return f"{_waits_of(batch, has_executors=has_executors)}, for {now - batch.since:.0f} s"
        case _:
            has_input = observation is not None and bool(observation.lag)
            return "Spark to begin a batch" if has_input else "records"


def _waits_of(batch: RunningBatch, *, has_executors: bool) -> str:
    if batch.for_thread:
        return "an idle stream thread"
    if batch.for_topics:
        return "records of other topics (max.task.idle.ms)"
    if batch.for_partitions:
        return "a topic check: partitions were added"
    if not has_executors and not batch.in_round:
        return f"executors: Spark has none for batch {batch.number}"
    writers = " and batches that write its repartition topics" if batch.in_round else ""
    return f"batch {batch.number}{writers}"


def waits_for_jvm(state: QueryState, silent_seconds: float, limit_seconds: float) -> bool:
    """Return whether a query cannot start because Spark's JVM hangs, silent for so many seconds."""
    return state in _NOT_STARTED and silent_seconds >= min(limit_seconds, MOST_SILENT_SECONDS)


def stall_reason(clock: ProgressClock, limit_seconds: float, waiting_for: str, now: float) -> str:
    """Return why a query counts as stalled, as the end of a sentence; empty if it does not."""
    if clock.is_stalled(limit_seconds):
        lag = clock.last.lag if clock.last is not None else None
        return (
            f"has made no progress for {clock.seconds:.0f} s, with {lag} records to read. "
            f"It waits for {waiting_for}"
        )
    if clock.is_unobserved(limit_seconds, now):
        return f"was not observed for {now - clock.observed_at:.0f} s: the client hangs"
    return ""
