"""Tasks are balanced over executors, stay where they are, and move only as far as balance requires."""

from collections import Counter
from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from headwater_spark.driver.placement.assignor import Assignment, Executor, TaskId, assign_tasks, group_tasks

_NOWHERE: Mapping[TaskId, frozenset[str]] = {}


def _tasks(counts: Mapping[str, int]) -> list[TaskId]:
    return [(name, number) for name, count in counts.items() for number in range(count)]


def _executors(number: int, cores: int = 1) -> list[Executor]:
    return [Executor(str(each), f"host{each}", cores) for each in range(number)]


def _moved(before: Assignment, after: Assignment) -> set[TaskId]:
    return {task for task in after if before[task] != after[task]}


def _counts(assignment: Assignment, subtopology: str) -> list[int]:
    used = Counter(owner.id for task, owner in assignment.items() if task[0] == subtopology)
    return sorted(used.values())


_COUNTS = st.dictionaries(st.sampled_from("abcd"), st.integers(1, 7), min_size=1)


@given(_COUNTS, st.integers(1, 5))
def test_each_sub_topology_and_the_sum_are_balanced(counts: Mapping[str, int], number: int) -> None:
    executors = _executors(number)
    assigned = assign_tasks(_tasks(counts), executors, {}, _NOWHERE)
    assert set(assigned) == set(_tasks(counts))
    for name, count in counts.items():
        assert max(_counts(assigned, name)) <= -(-count // number)
    used = Counter(owner.id for owner in assigned.values())
    totals = [used[each.id] for each in executors]
    assert max(totals) - min(totals) <= 1


@given(_COUNTS, st.integers(1, 5))
def test_no_task_moves_while_the_executors_are_the_same(counts: Mapping[str, int], number: int) -> None:
    before = assign_tasks(_tasks(counts), _executors(number), {}, _NOWHERE)
    assert assign_tasks(_tasks(counts), _executors(number), before, _NOWHERE) == before


@given(_COUNTS, st.integers(2, 5), st.data())
def test_only_the_tasks_of_a_lost_executor_move(
    counts: Mapping[str, int], number: int, data: st.DataObject
) -> None:
    executors = _executors(number)
    before = assign_tasks(_tasks(counts), executors, {}, _NOWHERE)
    lost = data.draw(st.sampled_from(executors))
    left = [each for each in executors if each != lost]
    after = assign_tasks(_tasks(counts), left, before, _NOWHERE)
    own = {task for task, owner in before.items() if owner == lost}
    assert own <= _moved(before, after)
    # Balance may require that a task of each sub-topology makes room.
    assert len(_moved(before, after) - own) <= len(counts)


def test_a_new_executor_gets_its_share_and_no_other_task_moves() -> None:
    tasks = _tasks({"a": 6, "b": 6})
    before = assign_tasks(tasks, _executors(2), {}, _NOWHERE)
    after = assign_tasks(tasks, _executors(3), before, _NOWHERE)
    moved = _moved(before, after)
    assert len(moved) == 4
    assert {after[task].id for task in moved} == {"2"}
    assert _counts(after, "a") == _counts(after, "b") == [2, 2, 2]


def test_sub_topologies_with_one_task_are_spread() -> None:
    tasks = _tasks(dict.fromkeys("abcd", 1))
    before = assign_tasks(tasks, _executors(1), {}, _NOWHERE)
    after = assign_tasks(tasks, _executors(2), before, _NOWHERE)
    assert sorted(Counter(owner.id for owner in after.values()).values()) == [2, 2]


def test_executors_get_tasks_by_their_cores() -> None:
    executors = [Executor("0", "a", 1), Executor("1", "b", 3)]
    assigned = assign_tasks(_tasks({"a": 8}), executors, {}, _NOWHERE)
    assert Counter(owner.id for owner in assigned.values()) == {"0": 2, "1": 6}


def test_an_executor_that_returns_gets_the_tasks_whose_state_its_host_has() -> None:
    tasks = _tasks({"a": 4})
    first = assign_tasks(tasks, _executors(2), {}, _NOWHERE)
    hosts = {task: frozenset({owner.host}) for task, owner in first.items()}
    alone = assign_tasks(tasks, _executors(1), first, hosts)
    hosts = {task: hosts[task] | {owner.host} for task, owner in alone.items()}
    returned = [*_executors(1), Executor("7", "host1")]
    after = assign_tasks(tasks, returned, alone, hosts)
    assert {task for task, owner in after.items() if owner.id == "7"} == {
        task for task, owner in first.items() if owner.host == "host1"
    }


def test_an_executor_id_on_another_host_is_another_executor() -> None:
    before = {("a", 0): Executor("0", "old"), ("a", 1): Executor("1", "host1")}
    after = assign_tasks(_tasks({"a": 2}), _executors(2), before, _NOWHERE)
    assert after[("a", 0)] == Executor("0", "host0")


def test_nothing_is_assigned_without_executors() -> None:
    assert assign_tasks(_tasks({"a": 2}), [], {}, _NOWHERE) == {}


def test_spark_partitions_contain_tasks_of_one_owner_where_possible() -> None:
    owners = ["x", "y", "x", "y", "x", "y"]
    groups = group_tasks(owners, 2)
    assert {(owner, group) for owner, group in zip(owners, groups, strict=True)} == {("x", 0), ("y", 1)}
    assert sorted(Counter(group_tasks(owners, 4)).values()) == [1, 1, 2, 2]
    assert set(group_tasks(owners, 1)) == {0}
