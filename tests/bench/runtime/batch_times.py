"""The time line of batches, from Spark's event log and the spans of the Python workers.

Each Spark job is divided along the task that ends last, so its parts add up to the time between the ends of
two jobs.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from statistics import mean
from typing import Any

import attrs

_PROGRESS = "org.apache.spark.sql.streaming.StreamingQueryListener$QueryProgressEvent"
PARTS: Mapping[str, str] = {
    "between": "between two jobs: Spark's micro-batch and our driver",
    "start": "until the last task has a worker: Spark's job, stage and task",
    "read": "read: Kafka, records packed by the JVM, received by Python",
    "process": "process",
    "send": "pass the results to librdkafka",
    "commit": "wait until they are written, commit",
    "save": "save the state",
    "end": "until the driver has the results",
}
"""Part of a job → what is printed."""


@attrs.frozen
class Span:
    """What a Python worker did, in seconds since 1970: `read`, or `process` with its parts."""

    process: int
    what: str
    start: float
    end: float

    @property
    def seconds(self) -> float:
        return self.end - self.start


@attrs.frozen
class Job:
    """A Spark job, in seconds since 1970."""

    submitted: float
    ended: float


def read_spans(folder: Path) -> list[Span]:
    """Return the spans that the workers have written to `folder`."""
    lines = (line for file in folder.iterdir() for line in file.read_text(encoding="utf-8").splitlines())
    return [Span(**json.loads(line)) for line in lines]


def read_jobs(log: Path) -> list[Job]:
    """Return the jobs of an event log, in the order of their ends."""
    submitted: dict[int, float] = {}
    jobs: list[Job] = []
    for event in _events(log):
        if event["Event"] == "SparkListenerJobStart":
            submitted[event["Job ID"]] = event["Submission Time"] / 1000
        elif event["Event"] == "SparkListenerJobEnd":
            jobs.append(Job(submitted[event["Job ID"]], event["Completion Time"] / 1000))
    return sorted(jobs, key=lambda job: job.ended)


def read_durations(log: Path, start: float) -> list[Mapping[str, int]]:
    """Return what Spark reports for each micro-batch that began after `start`: phase → milliseconds."""
    progress = (event["progress"] for event in _events(log) if event["Event"] == _PROGRESS)
    return [
        each["durationMs"]
        for each in progress
        if "addBatch" in each["durationMs"] and datetime.fromisoformat(each["timestamp"]).timestamp() > start
    ]


def _events(log: Path) -> Iterator[dict[str, Any]]:
    for line in log.read_text(encoding="utf-8").splitlines():
        yield json.loads(line)


def divided_jobs(jobs: Sequence[Job], spans: Iterable[Span]) -> list[Mapping[str, float]]:
    """Return the parts of each job but the first one: part → seconds; none if no task reads."""
    found = sorted(spans, key=lambda span: span.end)
    return [
        parts
        for before, job in pairwise(jobs)
        if (parts := _divided(before, job, [each for each in found if _is_within(each, job)]))
    ]


def _is_within(span: Span, job: Job) -> bool:
    return span.start >= job.submitted and span.end <= job.ended


def _divided(before: Job, job: Job, spans: Sequence[Span]) -> Mapping[str, float]:
    processed = [span for span in spans if span.what == "process"]
    if not processed:
        return {}
    last = processed[-1]
    read = [span for span in spans if span.what == "read" and span.end <= last.start]
    if not read:
        return {}
    own = [span for span in read if span.process == last.process] or read
    inner = {what: _seconds_in(spans, what, last) for what in ("save", "send", "commit")}
    saved = max(0.0, inner["save"] - inner["send"] - inner["commit"])
    return {
        "between": job.submitted - before.ended,
        "start": own[-1].start - job.submitted,
        "read": last.start - own[-1].start,
        "process": last.seconds - inner["save"],
        "send": inner["send"],
        "commit": inner["commit"],
        "save": saved,
        "end": job.ended - last.end,
    }


def _seconds_in(spans: Iterable[Span], what: str, outer: Span) -> float:
    return sum(
        span.seconds
        for span in spans
        if span.what == what
        and span.process == outer.process
        and outer.start <= span.start <= span.end <= outer.end
    )


def mean_parts(parts: Sequence[Mapping[str, float]]) -> Mapping[str, float]:
    """Return the mean of each part, in seconds: means add up, medians do not."""
    names = dict.fromkeys(name for each in parts for name in each)
    return {name: mean(each.get(name, 0.0) for each in parts) for name in names}
