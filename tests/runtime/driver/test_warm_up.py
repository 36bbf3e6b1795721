"""KIP-287: added processors restore their local state before the cut. Real broker, without Spark."""

import os
import shutil
import signal
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from threading import Event

import attrs
import pytest
from structlog.testing import capture_logs

from headwater.kafka import Connection
from headwater.model.offset_metadata import MovePhase
from headwater_spark.driver.processor_move.state_move import processor_status
from headwater_spark.stream_threads import ExpansionPhase, ProcessorsStatus
from headwater_spark.worker.task_lease import Lease
from headwater_spark.worker.warm_up import WarmUpRequest, WarmUpResult
from tests.runtime.driver.expanding_client import ExpandingClient, LocalJobs
from tests.runtime.driver.sparkless import Sparkless

pytestmark = [pytest.mark.broker, pytest.mark.timeout(600)]

_TIMEOUT_SECONDS = 120.0


@attrs.define
class _Jobs(LocalJobs):
    """Calls functions before and after each job, with the number of jobs that have ended."""

    before: Callable[[int], None] = lambda _: None
    after: Callable[[int], None] = lambda _: None
    results: list[WarmUpResult] = attrs.field(factory=list)

    def run(self, request: WarmUpRequest, stopping: Event) -> WarmUpResult:
        self.before(len(self.results))
        result = LocalJobs.run(self, request, stopping)
        self.results.append(result)
        self.after(len(self.results))
        return result

    @property
    def restored(self) -> int:
        return sum(result.restored for result in self.results)


def _jobs(
    app: Sparkless,
    before: Callable[[int], None] = lambda _: None,
    after: Callable[[int], None] = lambda _: None,
) -> _Jobs:
    return _Jobs(app.folder / "state", before=before, after=after)


def _expand(app: Sparkless, jobs: LocalJobs) -> ProcessorsStatus:
    client = ExpandingClient.of(app.text(2), app.connection, jobs=jobs)
    client.expand(4)
    assert client.expansion.status.processors == 4
    return client.expansion.status


def _restored_by_added(app: Sparkless) -> int:
    """Let all tasks process records; return how many records the added ones restored before."""
    app.restored.clear()
    app.produce(1)
    app.process(4)
    added = [restored for (_, task), restored in app.restored.items() if task in (2, 3)]
    assert len(added) >= 2, app.restored
    return sum(added)


def test_added_processors_restore_nothing_after_the_cut_if_nothing_was_written(app: Sparkless) -> None:
    """The status counts what is restored before the cut."""
    seen: list[ProcessorsStatus] = []
    jobs = _jobs(app, lambda _: seen.append(client.expansion.status))
    client = ExpandingClient.of(app.text(2), app.connection, jobs=jobs)
    client.expand(4)
    assert client.expansion.status.processors == 4
    assert jobs.restored > 0
    assert {status.phase for status in seen} == {ExpansionPhase.CATCH_UP}
    remaining = [status.remaining for status in seen]
    assert remaining == sorted(remaining, reverse=True)
    assert remaining[0] > remaining[-1]
    assert _restored_by_added(app) == 0
    app.check_moved(4)


def test_added_processors_restore_the_rest_after_the_cut(app: Sparkless) -> None:
    """The application processes records after the last warm-up, and before it."""

    def write(number: int) -> None:
        if number == 1:
            app.produce(1)
            app.process(2)

    jobs = _jobs(app, write, write)
    jobs.seconds = _TIMEOUT_SECONDS
    _expand(app, jobs)
    assert 0 < _restored_by_added(app) < jobs.restored
    app.check_moved(4)
    app.check_partitions_can_be_added(4)


def _die(number: int) -> None:
    if number == 2:
        os.kill(os.getpid(), signal.SIGKILL)


def _expand_and_die(text: str, servers: str, state: Path) -> None:
    jobs = _Jobs(state, before=_die)
    ExpandingClient.of(text, Connection(bootstrap_servers=(servers,)), jobs=jobs).expand(4)


def _kill_in_warm_up(app: Sparkless) -> None:
    """Begin an expansion in another process, which is killed after two jobs of the warm-up."""
    state = app.folder / "state"
    context = get_context("forkserver")
    context.set_forkserver_preload([__name__])
    process = context.Process(target=_expand_and_die, args=(app.text(2), app.servers, state))
    process.start()
    process.join(_TIMEOUT_SECONDS)
    assert process.exitcode == -signal.SIGKILL
    mark = processor_status(app.document(4), app.connection).move
    assert mark is not None
    assert mark.phase is MovePhase.CATCH_UP
    assert (state / "0_2").exists()


def test_local_state_of_an_expansion_that_was_killed_is_restored_again(app: Sparkless) -> None:
    _kill_in_warm_up(app)
    app.produce(1)
    app.process(2)
    jobs = _jobs(app)
    _expand(app, jobs)
    assert jobs.restored > 0
    assert _restored_by_added(app) == 0
    app.check_moved(4)


def test_local_state_of_an_expansion_that_was_killed_is_not_used(app: Sparkless) -> None:
    """The next expansion restores nothing before its cut."""
    _kill_in_warm_up(app)
    client = ExpandingClient.of(app.text(2), app.connection)
    client.expand(4)
    assert client.expansion.status.processors == 4
    assert _restored_by_added(app) > 0
    app.check_moved(4)


def test_local_state_that_is_removed_meanwhile_is_restored_again(app: Sparkless) -> None:
    state = app.folder / "state"

    def remove(number: int) -> None:
        if number == 3:
            shutil.rmtree(state)

    jobs = _jobs(app, remove)
    _expand(app, jobs)
    assert len(jobs.results) > 3
    app.check_moved(4)


def test_an_expansion_succeeds_if_local_state_cannot_be_written(app: Sparkless) -> None:
    """The other states are restored; the task restores its state when the folder can be written.

    Another process has the local state of a second task.
    """
    blocked = app.folder / "state" / "0_2"
    blocked.write_text("not a folder")
    jobs = _jobs(app)
    lease = Lease.try_acquire(jobs.state_folder, f"{app.id}-0-3", "")
    assert lease is not None
    with capture_logs() as logs:
        _expand(app, jobs)
    reasons = {log["reason"] for log in logs if log["log_level"] == "warning"}
    assert any(f"{app.id}-0-2: StateNotWrittenError" in reason for reason in reasons), logs
    assert any("another process has the local state" in log.get("reason", "") for log in logs), logs
    blocked.unlink()
    lease.release()
    app.check_moved(4)
    assert jobs.restored > 0
