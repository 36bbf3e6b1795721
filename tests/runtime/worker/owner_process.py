"""A process that owns a task and does not process its batches: `python -m` with the folder of its state."""

import os
import sys
import time
from pathlib import Path
from typing import Any, cast

import attrs

from headwater_spark.worker import task_owner
from headwater_spark.worker.messages import BatchRequest, BatchResult
from headwater_spark.worker.task_input import RecordInput
from headwater_spark.worker.task_owner import TaskOwner

TASK = "app-0-0"


@attrs.frozen
class Request:
    """The part of a `BatchRequest` that task owners use."""

    state_folder: Path
    layout_version: int = 1
    subtopology: str = "0"

    def task_name(self, partition: int) -> str:
        return f"app-0-{partition}"


class IdleTask:
    """A task that returns the process that has it."""

    def __init__(self, request: Request, partition: int) -> None:
        self.layout_version = request.layout_version
        self.partition = partition
        self.is_slow = False

    def process_batch(self, _: Request, input_: RecordInput, *, tick: bool) -> BatchResult:
        return BatchResult(partition=self.partition, read=len(input_), written=os.getpid() + tick)

    def close(self) -> None:
        """Do nothing."""


def process(owner: TaskOwner, folder: Path, value: bytes = b"v") -> BatchResult:
    """Process one record of the task by an owner."""
    record: Any = ("in", 0, 0, 0, b"k", value, ())
    request = cast("BatchRequest", Request(folder))
    return owner.process_or_forward(request, 0, RecordInput([record]), tick=False)


def own_task(folder: Path, *, forks: bool) -> None:
    """Own the task until the process is killed; with `forks`, a child that outlives it is forked first."""
    task_owner.OpenTask = IdleTask  # type: ignore[assignment,attr-defined]
    process(TaskOwner(), folder)
    child = os.fork() if forks else 1
    if child:
        sys.stdout.write(f"{child}\n")
        sys.stdout.flush()
    time.sleep(600)


if __name__ == "__main__":
    own_task(Path(sys.argv[1]), forks=sys.argv[2:] == ["forks"])
