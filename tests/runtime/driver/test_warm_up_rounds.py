"""How long a warm-up continues, and what ends it."""

from collections.abc import Sequence
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, cast

import attrs
import pytest
from structlog.testing import capture_logs

from headwater.kafka import Connection
from headwater_spark.driver.processor_expansion.warm_up import WarmUp, is_behind
from headwater_spark.worker.warm_up import WarmUpRequest, WarmUpResult

if TYPE_CHECKING:
    from headwater_spark.engine.program import SubtopologyProgram


@attrs.define
class _Jobs:
    """Returns `results` one after the other, the last one again and again."""

    results: Sequence[WarmUpResult]
    state_folder: Path = Path("unused")
    requested: list[list[int]] = attrs.field(factory=list)
    stop_after: int = 1_000

    def start_workers(self, tasks: int, stopping: Event) -> str | None:
        del stopping
        return f"{tasks} tasks"

    def run(self, request: WarmUpRequest, stopping: Event) -> WarmUpResult:
        self.requested.append([task for _, task in request.tasks])
        if len(self.requested) == self.stop_after:
            stopping.set()
        return self.results[min(len(self.requested), len(self.results)) - 1]


def _warm_up(jobs: _Jobs, reports: list[int] | None = None) -> WarmUp:
    program = cast("SubtopologyProgram", Any)
    request = WarmUpRequest(
        application="app",
        connection=Connection(bootstrap_servers=("unused:9092",)),
        state_folder=jobs.state_folder,
        tasks=tuple((program, task) for task in (2, 3, 4)),
        lineage=1,
    )
    return WarmUp(request, jobs, lambda: reports.append(1) if reports is not None else None)


def test_tasks_are_restored_until_none_is_left() -> None:
    jobs = _Jobs([WarmUpResult(restored=10), WarmUpResult(done=2, restored=5), WarmUpResult(done=1)])
    reports: list[int] = []
    warm_up = _warm_up(jobs, reports)
    assert warm_up.advance(Event()) == 15
    assert jobs.requested == [[2, 3, 4], [2, 3, 4], [4]]
    assert len(reports) == 3
    jobs.results = [WarmUpResult(done=3, restored=2)]
    assert warm_up.advance(Event()) == 2
    assert warm_up.restored == 17


def test_failures_are_logged_and_end_nothing() -> None:
    jobs = _Jobs([WarmUpResult(done=1, failures=("app-0-2: disk",)), WarmUpResult(done=2, restored=4)])
    with capture_logs() as logs:
        warm_up = _warm_up(jobs)
        assert warm_up.advance(Event()) == 4
        jobs.requested.clear()
        assert warm_up.advance(Event()) == 4
    assert [log["reason"] for log in logs] == ["app-0-2: disk"]


def test_an_expansion_continues_without_more_workers() -> None:
    with capture_logs() as logs:
        _warm_up(_Jobs([])).start_workers(8, Event())
    assert [log["reason"] for log in logs] == ["8 tasks"]


def test_a_warm_up_that_reads_nothing_is_given_up() -> None:
    idle, one = WarmUpResult(), WarmUpResult(restored=1)
    jobs = _Jobs([one, idle, idle, one, idle])
    with capture_logs() as logs:
        assert _warm_up(jobs).advance(Event()) == 2
    assert len(jobs.requested) == 7
    assert [log["reason"] for log in logs] == ["no records were read"]


def test_a_warm_up_ends_when_the_application_stops() -> None:
    """Its last job ends without a result then: that is no failure."""
    jobs = _Jobs([WarmUpResult(restored=3), WarmUpResult(failures=("has not ended",))], stop_after=2)
    with capture_logs() as logs:
        assert _warm_up(jobs).advance(Event()) == 3
    assert len(jobs.requested) == 2
    assert not logs


@pytest.mark.parametrize(
    ("restored", "before", "expected"),
    [
        (0, None, False),
        (10, None, False),
        (11, None, True),
        (11, 12, True),
        (11, 11, False),
        (30, 11, False),
    ],
)
def test_another_round_follows_while_it_restores_less(
    restored: int, before: int | None, *, expected: bool
) -> None:
    assert is_behind(restored, before, 10) is expected
