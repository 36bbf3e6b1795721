"""Assigns tasks to executors with the goals of Kafka Streams' assignors: balance, stickiness, few moves.

A task stays with its executor as long as the executor lives and does not have too many tasks. Each
sub-topology is balanced by itself, because its tasks run at the same time, and the sum of all tasks is
balanced, too. Executors with more cores get more tasks. A task that has to move prefers a host that has had
it: its state is on the disk there.
"""

from collections.abc import Iterable, Mapping, Sequence

import attrs

TaskId = tuple[str, int]
"""The sub-topology, and the number of the task in it."""


@attrs.frozen(order=True)
class Executor:
    """An executor that gets tasks. Executors of one `host` share its disk."""

    id: str
    host: str
    cores: int = 1


Assignment = Mapping[TaskId, Executor]


def assign_tasks(
    tasks: Iterable[TaskId],
    executors: Iterable[Executor],
    previous: Assignment,
    hosts: Mapping[TaskId, frozenset[str]],
) -> Assignment:
    """Return the executor of each task; empty without executors.

    `executors` live. `hosts` is task → the hosts that have had it, whose disks may have its state.
    """
    by_id = {executor.id: executor for executor in sorted(executors)}
    if not by_id:
        return {}
    assigning = _AssignmentBuilder(tuple(by_id.values()), hosts)
    wanted = sorted(tasks)
    for task in wanted:
        kept = previous.get(task)
        if kept is not None and (now := by_id.get(kept.id)) is not None and now.host == kept.host:
            assigning.assign_task(task, now)
    for task in wanted:
        if task not in assigning.owners:
            assigning.assign_task(task, assigning.best_for(task))
    assigning.balance_tasks()
    return assigning.owners


def group_tasks(owners: Sequence[str], limit: int) -> tuple[int, ...]:
    """Return the Spark partition of each task, so that few tasks of different owners share one.

    Args:
        owners: The location of each task.
        limit: The number of Spark tasks that may run at once, less than the number of tasks.
    """
    by_owner = sorted(range(len(owners)), key=lambda task: (owners[task], task))
    groups = [0] * len(owners)
    for rank, task in enumerate(by_owner):
        groups[task] = rank * limit // len(owners)
    return tuple(groups)


@attrs.define
class _AssignmentBuilder:
    """The assignment as it is built: tasks are given to executors, then balanced."""

    executors: tuple[Executor, ...]
    hosts: Mapping[TaskId, frozenset[str]]
    owners: dict[TaskId, Executor] = attrs.field(factory=dict)
    _counts: dict[tuple[str, str], int] = attrs.field(factory=dict)
    """Executor and sub-topology → the number of tasks; the empty sub-topology has the sum."""

    def assign_task(self, task: TaskId, executor: Executor) -> None:
        before = self.owners.get(task)
        self.owners[task] = executor
        for subtopology in (task[0], ""):
            if before is not None:
                self._counts[before.id, subtopology] -= 1
            self._counts[executor.id, subtopology] = self.count(executor, subtopology) + 1

    def count(self, executor: Executor, subtopology: str) -> int:
        return self._counts.get((executor.id, subtopology), 0)

    def best_for(self, task: TaskId) -> Executor:
        """Return the executor with the fewest tasks for its cores, preferably on a host that had the task."""
        known = self.hosts.get(task, frozenset())
        return min(
            self.executors,
            key=lambda each: (
                self._load_with(each, task[0]),
                self._load_with(each, ""),
                each.host not in known,
                each,
            ),
        )

    def balance_tasks(self) -> None:
        """Move tasks until no move makes a sub-topology, or the sum of all, more balanced."""
        for subtopology in sorted({task[0] for task in self.owners}):
            while self._balance_once(subtopology, (subtopology,)):
                pass
        while self._balance_once("", sorted({task[0] for task in self.owners})):
            pass

    def _balance_once(self, measured: str, movable: Sequence[str]) -> bool:
        """Move one task from an executor with too many tasks to one with few; return whether one moved."""
        by_load = sorted(self.executors, key=lambda each: (self._load(each, measured), each))
        for source in reversed(by_load):
            for target in by_load:
                if self._load(source, measured) <= self._load_with(target, measured):
                    continue
                moved = self._movable_task(source, target, movable)
                if moved is not None:
                    self.assign_task(moved, target)
                    return True
        return False

    def _movable_task(self, source: Executor, target: Executor, movable: Sequence[str]) -> TaskId | None:
        """Return a task whose move keeps its sub-topology balanced, if possible one the target had."""
        found = [
            task
            for task, owner in self.owners.items()
            if owner == source
            and task[0] in movable
            and self._load(source, task[0]) >= self._load_with(target, task[0])
        ]
        known = self.hosts
        return min(
            found,
            key=lambda task: (target.host not in known.get(task, frozenset()), task[0], -task[1]),
            default=None,
        )

    def _load(self, executor: Executor, subtopology: str) -> float:
        return self.count(executor, subtopology) / executor.cores

    def _load_with(self, executor: Executor, subtopology: str) -> float:
        """Return the load of an executor with one more task."""
        return (self.count(executor, subtopology) + 1) / executor.cores
