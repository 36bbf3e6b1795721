"""The parts of Spark jobs, and the CPU time of threads, that `batch_profile` prints."""

import json
import os
import threading
import time
from pathlib import Path

import pytest

from tests.bench.cpu_time import ENDED, thread_seconds, used_by_threads
from tests.bench.runtime.batch_times import (
    PARTS,
    Job,
    Span,
    divided_jobs,
    mean_parts,
    read_durations,
    read_jobs,
)

_SPANS = (
    Span(1, "read", 10.5, 11.0),
    Span(1, "process", 11.0, 12.0),
    Span(2, "read", 10.2, 11.5),
    Span(2, "process", 11.5, 13.0),
    Span(2, "send", 12.0, 12.25),
    Span(2, "commit", 12.25, 12.75),
    Span(2, "save", 12.0, 12.875),
)


def test_the_parts_of_a_job_are_of_the_task_that_ends_last_and_add_up() -> None:
    (parts,) = divided_jobs([Job(8.0, 9.0), Job(10.0, 13.5), Job(13.6, 13.7)], _SPANS)
    assert parts == pytest.approx(
        {
            "between": 1.0,
            "start": 0.2,
            "read": 1.3,
            "process": 0.625,
            "send": 0.25,
            "commit": 0.5,
            "save": 0.125,
            "end": 0.5,
        }
    )
    assert sum(parts.values()) == pytest.approx(13.5 - 9.0)
    assert parts.keys() == PARTS.keys()
    assert mean_parts([parts, {**parts, "read": 3.3}])["read"] == pytest.approx(2.3)


def test_a_log_shows_jobs_and_the_batches_after_a_time(tmp_path: Path) -> None:
    progress = "org.apache.spark.sql.streaming.StreamingQueryListener$QueryProgressEvent"
    events = [
        {"Event": "SparkListenerJobStart", "Job ID": 2, "Submission Time": 5_000},
        {"Event": "SparkListenerJobStart", "Job ID": 1, "Submission Time": 3_000},
        {"Event": "SparkListenerJobEnd", "Job ID": 2, "Completion Time": 6_500},
        {"Event": "SparkListenerJobEnd", "Job ID": 1, "Completion Time": 4_000},
        *(
            {
                "Event": progress,
                "progress": {"timestamp": f"1970-01-01T00:00:0{at}Z", "durationMs": durations},
            }
            for at, durations in ((1, {"addBatch": 1}), (5, {"addBatch": 2}), (6, {"latestOffset": 3}))
        ),
    ]
    log = tmp_path / "log"
    log.write_text("".join(json.dumps(event) + "\n" for event in events), encoding="utf-8")
    assert read_jobs(log) == [Job(3.0, 4.0), Job(5.0, 6.5)]
    assert read_durations(log, 4.0) == [{"addBatch": 2}]


def test_the_cpu_time_of_ended_threads_is_counted_once() -> None:
    def work() -> None:
        while time.thread_time() < 0.2:
            pass
        paused.set()
        resumed.wait()
        while time.thread_time() < 0.6:
            pass

    paused, resumed = threading.Event(), threading.Event()
    thread = threading.Thread(target=work)
    thread.start()
    paused.wait()
    before = thread_seconds(os.getpid())
    resumed.set()
    thread.join()
    used = used_by_threads(before, thread_seconds(os.getpid()))
    # Other tests may have left children of this process, which have threads, too.
    (ended,) = (used[each] for each in used if each.name == ENDED and each.process == os.getpid())
    assert ended == pytest.approx(0.4, abs=0.1)  # 0.6 if it was counted twice; ticks are 10 ms


def test_a_thread_that_ends_while_threads_are_read_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    read_text = Path.read_text

    def read(path: Path) -> str:
        if path.match("/proc/*/task/*/comm"):
            raise FileNotFoundError(path)
        return read_text(path)

    monkeypatch.setattr(Path, "read_text", read)
    found = {each.name: seconds for each, seconds in thread_seconds(os.getpid()).items()}
    assert found[ENDED] > 0
