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
    with SlowBatches(0.01).watch_batch("0_0", lambda: task.context.current.record):
        runner.feed(runner.record("in", b"k", b"v", 1))
    report = log.reports[0]
    assert (report["event"], report["task"]) == ("task takes long", "0_0")
    assert report["record"] == "in, partition 0, offset 0"
    assert report["code"].startswith(f"{__name__}, line ")


def test_the_record_is_not_known_while_none_is_processed(log: _Log) -> None:
    """While a batch waits for brokers, the task has the last record that it has processed."""
    runner = TopologyRunner("[stream: {topic: in}, to: {topic: out}]", NO_CACHE)
    runner.feed(runner.record("in", b"k", b"v", 1))
    current = runner.tasks["0"].context.current
    assert current.record is not NO_RECORD
    with SlowBatches(0.01).watch_batch("0_0", lambda: current.record):
        log.wait_for(lambda: bool(log.reports))
    assert log.reports[0]["record"] == "not known"


class _Clock:
    """The time of the thread that reports."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now

    time = monotonic


def test_a_batch_is_logged_in_time_while_another_one_waits_for_its_next_report(
    log: _Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, batches = _Clock(), SlowBatches(0.01)
    monkeypatch.setattr(slow_batches, "time", clock)
    with batches.watch_batch("0_0", lambda: NO_RECORD):
        clock.now = 1_000.0
        log.wait_for(lambda: len(log.reports) == 1)
        with batches.watch_batch("0_1", lambda: NO_RECORD):
            clock.now = 1_001.0
            log.wait_for(lambda: len(log.reports) == 2)
    assert [(report["task"], report["seconds"]) for report in log.reports] == [("0_0", 1_000), ("0_1", 1)]


def test_reports_are_repeated_after_twice_the_time_as_long_as_the_batch_runs(log: _Log) -> None:
    batches = SlowBatches(0.01)
    with batches.watch_batch("0_0", lambda: NO_RECORD):
        log.wait_for(lambda: len(log.reports) == 3)
    assert {report["record"] for report in log.reports} == {"not known"}
    with batches.watch_batch("0_1", lambda: NO_RECORD):
        log.wait_for(lambda: sum(report["task"] == "0_1" for report in log.reports) == 2)
    tasks = [report["task"] for report in log.reports]
    assert tasks == sorted(tasks), "a batch that has ended is not logged"


def test_a_short_batch_is_not_logged(log: _Log) -> None:
    batches = SlowBatches(0.2)
    with batches.watch_batch("0_0", lambda: NO_RECORD):
        pass
    with batches.watch_batch("0_1", lambda: NO_RECORD):
        log.wait_for(lambda: bool(log.reports))
    assert {report["task"] for report in log.reports} == {"0_1"}
