"""A batch that takes long is shown and logged, and so is a start without executors."""

import time
from collections.abc import Callable
from threading import Event
from types import SimpleNamespace
from typing import Any, cast

import attrs
import pytest
from structlog.testing import capture_logs

from headwater.toolchain.broker.readiness import until
from headwater_spark.driver.offsets import Backlog
from headwater_spark.driver.queries import progress as progress_module
from headwater_spark.driver.queries.progress import Progress, ProgressWatch
from headwater_spark.driver.run import application_run
from headwater_spark.driver.run.application_run import wait_reported
from headwater_spark.driver.states import QueryState
from headwater_spark.driver.threads import stream_threads
from headwater_spark.driver.threads.stream_threads import StreamThreads
from headwater_spark.worker.task_activity import TaskActivity

_SECONDS = 90.0


@attrs.define
class _Clock:
    now: float = 1_000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> _Clock:
    clock = _Clock()
    monkeypatch.setattr(progress_module, "time", clock)
    return clock


def test_a_task_that_restores_is_shown_and_makes_progress(clock: _Clock) -> None:
    """Of a large state, that takes longer than `max.poll.interval.ms`."""
    activities = [
        TaskActivity(task="0_1", since=5.0, seconds=7.5, restoring="changelog", to_restore=900),
        TaskActivity(task="1_0", since=9.0, seconds=3.0, record="in, partition 0, offset 4"),
    ]
    query = SimpleNamespace(state=QueryState.RUNNING, restarts=0, restart_in=0.0)
    watch = ProgressWatch(
        queries={"0": cast("Any", query), "1": cast("Any", query)},
        limit_seconds=300.0,
        activities=lambda: activities,
    )
    progress = Progress()
    for second in range(400):
        clock.now += 1.0
        activities[0] = attrs.evolve(activities[0], restored=second)
        for name in ("0", "1"):
            watch.observe(name, Backlog(lag=70, committed=0), progress)
    assert [watch.status(name, progress)["stalled"] for name in ("0", "1")] == [False, True]
    status = watch.status("0", progress)
    assert (status["taskSeconds"], status["lag"]) == (7.5, 70)
    (task,) = status["slowTasks"]
    assert (task["task"], task["restored"], task["toRestore"], task["since"]) == ("0_1", 399, 900, 5.0)


def test_a_long_batch_is_logged_once_and_shown(clock: _Clock) -> None:
    """A part of its tasks runs on a host that hangs; the others have committed, which is progress."""
    query = SimpleNamespace(state=QueryState.RUNNING, restarts=0, restart_in=0.0)
    watch = ProgressWatch(
        queries={"0": cast("Any", query)}, limit_seconds=300.0, has_executors=lambda: clock.now < 1_100.0
    )
    progress = Progress()
    assert watch.status("0", progress)["batchSeconds"] == 0.0
    with capture_logs() as logs:
        for number in (7, 8):
            progress.begin_batch("0", number, {})
            for second in range(106):
                clock.now += 1.0
                watch.observe("0", Backlog(lag=70, committed=second), progress)
            assert watch.status("0", progress)["batchSeconds"] == 106.0
            progress.pause_batch("0")
    assert watch.status("0", progress)["batchSeconds"] == 0.0
    assert [(line["batch"], line["waits_for"]) for line in logs if line["event"] == "batch takes long"] == [
        (7, "batch 7, for 60 s"),
        (8, "executors: Spark has none for batch 8, for 60 s"),
    ]


@attrs.define
class _Steps:
    begun: list[str] = attrs.field(factory=list)

    def begin(self, step: str) -> None:
        self.begun.append(step)


def _wait(steps: _Steps, slots: Callable[[], int], expected: list[str]) -> None:
    with wait_reported(steps.begin, "checking classes", "spark://here:7077", slots, poll_seconds=0.01):
        assert until(lambda: steps.begun == expected, _SECONDS), steps.begun


def test_a_start_without_executors_says_what_it_waits_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(application_run, "_REPORT_SECONDS", 0.0)
    found, steps = [0, 0, 2], _Steps()
    waiting = "waiting for executors of spark://here:7077"
    with capture_logs() as logs:
        _wait(
            steps,
            lambda: found.pop(0) if len(found) > 1 else found[0],
            ["checking classes", waiting, "checking classes"],
        )
    assert {line["event"] for line in logs} == {"Spark has no executors"}
    assert len(logs) == 2
    assert all(line["master"] == "spark://here:7077" for line in logs)


def test_a_start_ends_also_while_spark_does_not_answer() -> None:
    steps, answered = _Steps(), Event()
    begin = time.monotonic()
    with wait_reported(
        steps.begin,
        "checking classes",
        "spark://here:7077",
        lambda: int(answered.wait(_SECONDS)),
        poll_seconds=0.0,
    ):
        pass
    assert time.monotonic() - begin < _SECONDS
    answered.set()
    assert steps.begun == ["checking classes"]


def test_a_client_notices_that_spark_has_lost_its_executors_and_has_new_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stream_threads, "_SLOTS_SECONDS", 0.0)
    slots = [2, 0, 3]
    threads = StreamThreads("shop", None, lambda: slots[0])
    found = [(threads.has_executors, threads.slots)]
    while len(slots) > 1:
        slots.pop(0)
        threads.poll()
        found.append((threads.has_executors, threads.slots))
    assert found == [(True, 2), (False, 1), (True, 3)]
