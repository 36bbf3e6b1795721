"""When a query counts as stalled, and when not: one slow batch, no input, restarts, pauses, outages."""

from collections.abc import Sequence

import attrs
import pytest

from headwater_spark.driver.queries.stall import (
    Observation,
    ProgressClock,
    RunningBatch,
    stall_reason,
    waits_for,
)
from headwater_spark.driver.states import QueryState

LIMIT = 300.0
BEHIND = Observation(state=QueryState.RUNNING, lag=7, committed=100, batches=3)


def _after(observations: Sequence[Observation], step: float = 1.0) -> ProgressClock:
    """Return the clock after one observation every `step` seconds."""
    clock, now = ProgressClock(observed_at=0.0), 0.0
    for observation in observations:
        now += step
        clock = clock.observed(observation, now)
    return clock


def test_records_to_read_without_progress_are_a_stall() -> None:
    assert not _after([BEHIND] * 300).is_stalled(LIMIT)
    clock = _after([BEHIND] * 301)
    assert clock.is_stalled(LIMIT)
    assert stall_reason(clock, LIMIT, "batch 4, for 300 s", clock.observed_at) == (
        "has made no progress for 300 s, with 7 records to read. It waits for batch 4, for 300 s"
    )


@pytest.mark.parametrize(
    "change",
    [
        {"batches": 4},
        {"committed": 101},
        {"restored": 10_000},
        {"restarts": 1},
        {"lag": 0},
        {"lag": None},
        {"state": QueryState.STOPPED},
        {"state": QueryState.WAITING},
        {"state": QueryState.FAILED},
    ],
)
def test_progress_or_nothing_to_do_starts_again(change: dict[str, object]) -> None:
    changed = attrs.evolve(BEHIND, **change)  # type: ignore[arg-type]  # of the fields above
    clock = _after([*[BEHIND] * 299, changed, *[changed] * 299])
    assert not clock.is_stalled(LIMIT)
    assert stall_reason(clock, LIMIT, "", clock.observed_at) == ""


@pytest.mark.parametrize("lag", [0, None])
def test_no_input_and_no_answer_of_a_broker_are_no_stall(lag: int | None) -> None:
    assert _after([attrs.evolve(BEHIND, lag=lag)] * 1_000).seconds == 0


@pytest.mark.parametrize("state", [QueryState.WAITING, QueryState.STOPPED, QueryState.FAILED])
def test_restarts_and_pauses_are_no_stall(state: QueryState) -> None:
    assert _after([attrs.evolve(BEHIND, state=state)] * 1_000).seconds == 0


def test_query_that_spark_does_not_start_is_stalled() -> None:
    assert _after([attrs.evolve(BEHIND, state=QueryState.STARTING)] * 301).is_stalled(LIMIT)


def test_first_record_after_idle_hours_is_no_stall() -> None:
    idle = attrs.evolve(BEHIND, lag=0)
    assert _after([*[idle] * 10_000, BEHIND]).seconds == 1


def test_time_in_which_the_process_was_paused_does_not_count() -> None:
    clock = _after([BEHIND, BEHIND]).observed(BEHIND, 10_000)
    assert clock.seconds < 20


def test_client_that_no_longer_observes_is_stalled() -> None:
    clock = _after([attrs.evolve(BEHIND, lag=0)])
    assert stall_reason(clock, LIMIT, "", clock.observed_at + LIMIT - 1) == ""
    text = stall_reason(clock, LIMIT, "", clock.observed_at + LIMIT)
    assert text == "was not observed for 300 s: the client hangs"
    # Requests to brokers that do not answer take longer than a short limit.
    assert stall_reason(clock, 10.0, "", clock.observed_at + 60) == ""


@pytest.mark.parametrize(
    ("state", "lag", "batch", "text"),
    [
        (QueryState.STARTING, None, None, "Spark to start the query"),
        (QueryState.WAITING, 7, None, "its restart in 12 s"),
        (QueryState.STOPPED, 7, None, "its topics"),
        (QueryState.FAILED, 7, None, "nothing: it has failed"),
        (QueryState.RUNNING, 0, None, "records"),
        (QueryState.RUNNING, None, None, "records"),
        (QueryState.RUNNING, 7, None, "Spark to begin a batch"),
        (QueryState.RUNNING, 7, RunningBatch(4, 60.0), "batch 4, for 40 s"),
        (
            QueryState.RUNNING,
            7,
            RunningBatch(4, 60.0, in_round=True),
            "batch 4 and batches that write its repartition topics, for 40 s",
        ),
        (
            QueryState.RUNNING,
            7,
            RunningBatch(4, 60.0, for_topics=True),
            "records of other topics (max.task.idle.ms), for 40 s",
        ),
        (
            QueryState.RUNNING,
            7,
            RunningBatch(4, 60.0, for_partitions=True),
            "a topic check: partitions were added, for 40 s",
        ),
    ],
)
def test_each_query_says_what_it_waits_for(
    state: QueryState, lag: int | None, batch: RunningBatch | None, text: str
) -> None:
    assert waits_for(Observation(state=state, lag=lag), batch, 12.0, 100.0) == text


def test_a_batch_without_executors_waits_for_them() -> None:
    """As after the death of their host, or while other applications have all cores."""
    text = waits_for(BEHIND, RunningBatch(4, since=10.0), None, 52.0, has_executors=False)
    assert text == "executors: Spark has none for batch 4, for 42 s"
    held_up = RunningBatch(4, since=10.0, in_round=True)
    assert waits_for(BEHIND, held_up, None, 52.0, has_executors=False).startswith("batch 4 and batches that")


def test_a_batch_is_long_unless_it_waits_for_records() -> None:
    batch = RunningBatch(4, since=10.0)
    assert not batch.is_long(60.0, 69.9)
    assert batch.is_long(60.0, 70.0)
    assert not RunningBatch(4, since=10.0, for_topics=True).is_long(60.0, 1_000.0)
