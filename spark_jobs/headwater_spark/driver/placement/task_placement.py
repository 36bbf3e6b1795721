"""Where the tasks of an application run: it reads the executors of Spark, and assigns the tasks to them."""

import time
from collections.abc import Callable, Iterable
from threading import Lock
from typing import Protocol

import attrs
import structlog
from pyspark.sql import DataFrame

from headwater_spark.driver.placement.assignor import Assignment, Executor, TaskId, assign_tasks, group_tasks
from headwater_spark.spark_internals.placement import executor_location

_log = structlog.get_logger(__name__)
_READ_SECONDS = 0.5
"""How old the list of executors may be. To read it takes a few milliseconds for each executor."""


class _RowPlacement(Protocol):
    """The part of `spark_internals.placement.RowPlacement` that is used."""

    def executors(self) -> list[tuple[str, str, int]]: ...

    def placed(
        self, rows: DataFrame, locations: tuple[str, ...], *, by_input_partition: bool
    ) -> DataFrame: ...


@attrs.frozen
class PlacedTasks:
    """The locations of the tasks of a sub-topology, in the order of their numbers."""

    locations: tuple[str, ...]
    _rows: _RowPlacement

    @property
    def is_spread(self) -> bool:
        """Return whether several executors have tasks."""
        return len(set(self.locations)) > 1

    def groups(self, limit: int) -> tuple[int, ...]:
        """Return the Spark partition of each task, if only `limit` of them may run at once."""
        return group_tasks(self.locations, limit)

    def place(self, results: DataFrame, limit: int, *, shuffled: bool) -> DataFrame:
        """Return `results`, computed where the tasks are.

        Without `shuffled`, each Spark partition reads one partition of Kafka, which has the number of its
        task. With it, Spark's partition is the task. If there are fewer Spark partitions than tasks
        (`limit`), Spark's partition is the group of the task; without `shuffled`, all tasks are on one
        executor then.
        """
        locations = self.locations
        are_grouped = limit < len(locations)
        if are_grouped:
            groups = self.groups(limit)
            locations = tuple(_most_frequent(locations, groups, group) for group in range(limit))
        return self._rows.placed(results, locations, by_input_partition=not shuffled and not are_grouped)


def _most_frequent(locations: tuple[str, ...], groups: tuple[int, ...], group: int) -> str:
    own = [each for each, of in zip(locations, groups, strict=True) if of == group]
    return max(sorted(set(own)), key=own.count)


class TaskPlacement:
    """The assignment of all tasks; the threads of all queries use it."""

    def __init__(self, rows: _RowPlacement, clock: Callable[[], float] = time.monotonic) -> None:
        self._rows, self._clock = rows, clock
        self._lock = Lock()
        self._read_at = float("-inf")
        self._executors: tuple[Executor, ...] = ()
        self._tasks: dict[str, int] = {}
        self._assignment: Assignment = {}
        self._hosts: dict[TaskId, frozenset[str]] = {}

    def locate_tasks(self, subtopology: str, tasks: int) -> PlacedTasks | None:
        """Return where the tasks of a sub-topology are; None if Spark has no executors yet."""
        with self._lock:
            executors = self._current_executors()
            if executors != self._executors or self._tasks.get(subtopology) != tasks:
                self._executors = executors
                self._tasks[subtopology] = tasks
                self._assign()
            owners = [self._assignment.get((subtopology, task)) for task in range(tasks)]
        if None in owners:
            return None
        return PlacedTasks(
            tuple(executor_location(owner.id, owner.host) for owner in owners if owner is not None),
            self._rows,
        )

    def _current_executors(self) -> tuple[Executor, ...]:
        now = self._clock()
        if now - self._read_at < _READ_SECONDS:
            return self._executors
        self._read_at = now
        return tuple(
            sorted(Executor(id_, host, max(1, cores)) for id_, host, cores in self._rows.executors())
        )

    def _assign(self) -> None:
        tasks = [(name, task) for name, count in self._tasks.items() for task in range(count)]
        before = self._assignment
        self._assignment = assign_tasks(tasks, self._executors, before, self._hosts)
        for task, owner in self._assignment.items():
            self._hosts[task] = self._hosts.get(task, frozenset()) | {owner.host}
        _report_moves(tasks, before, self._assignment)


def _report_moves(tasks: Iterable[TaskId], before: Assignment, after: Assignment) -> None:
    moved = [task for task in tasks if task in before and task in after and before[task] != after[task]]
    if moved:
        _log.info(
            "tasks moved to other executors",
            tasks=[f"{subtopology}_{number}" for subtopology, number in moved],
            executors=len(set(after.values())),
        )
