"""What is logged of a batch that takes long: the task, its record, and the line of users' code."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from headwater_spark.engine.records import NO_RECORD
from headwater_spark.processors import Processor, Record
from headwater_spark.worker import slow_batches
from headwater_spark.worker.slow_batches import SlowBatches
from tests.runtime.topology_runner import NO_CACHE, TopologyRunner

_SECONDS = 120


class _Log:
    """The reports, in place of the log."""

    def __init__(self) -> None:
        self.reports: list[dict[str, Any]] = []
        self.changed = threading.Condition()

    def warning(self, event: str, **fields: object) -> None:
        with self.changed:
            self.reports.append({"event": event, **fields})
            self.changed.notify_all()

    def wait_for(self, found: Callable[[], bool]) -> None:
        with self.changed:
            assert self.changed.wait_for(found, _SECONDS)


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> _Log:
    log = _Log()
    monkeypatch.setattr(slow_batches, "_log", log)
    return log


def test_the_line_of_a_processor_that_hangs_is_logged_with_its_record(log: _Log) -> None:
    class User(Processor):
        def process(self, _record: Record) -> None:
            log.wait_for(lambda: bool(log.reports))

    topology = "[stream: {topic: in}, process: {class: User}]"
    runner = TopologyRunner(topology, NO_CACHE, classes={"User": User})
    task = runner.tasks["0"]
    with SlowBatches(0.01).watched("0_0", lambda: task.context.current.record):
        runner.feed(runner.record("in", b"k", b"v", 1))
    report = log.reports[0]
    assert (report["event"], report["task"]) == ("task takes long", "0_0")
    assert report["record"] == "in, partition 0, offset 0"
    assert report["code"].startswith(f"{__name__}, line ")


def test_reports_are_repeated_after_twice_the_time_as_long_as_the_batch_runs(log: _Log) -> None:
    batches = SlowBatches(0.01)
    with batches.watched("0_0", lambda: NO_RECORD):
        log.wait_for(lambda: len(log.reports) == 3)
    assert {report["record"] for report in log.reports} == {"not known"}
    known = len(log.reports)
    with batches.watched("0_1", lambda: NO_RECORD):
        log.wait_for(lambda: len(log.reports) > known)
    assert log.reports[-1]["task"] == "0_1"
    assert len({report["task"] for report in log.reports[known:]}) == 1


def test_a_short_batch_is_not_logged(log: _Log) -> None:
    batches = SlowBatches(0.2)
    with batches.watched("0_0", lambda: NO_RECORD):
        pass
    with batches.watched("0_1", lambda: NO_RECORD):
        log.wait_for(lambda: bool(log.reports))
    assert {report["task"] for report in log.reports} == {"0_1"}
