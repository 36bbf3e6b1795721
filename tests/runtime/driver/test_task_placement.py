"""Where the tasks of queries run, as executors come and go."""

from typing import Any

import attrs
from structlog.testing import capture_logs

from headwater_spark.driver.placement.task_placement import TaskPlacement


@attrs.define
class _Rows:
    """The executors of a cluster, and how the last rows were placed."""

    found: list[tuple[str, str, int]] = attrs.field(factory=list)
    reads: int = 0
    last: tuple[tuple[str, ...], bool] = ((), False)

    def executors(self) -> list[tuple[str, str, int]]:
        self.reads += 1
        return self.found

    def placed(self, rows: Any, locations: tuple[str, ...], *, by_input_partition: bool) -> Any:  # noqa: ANN401
        self.last = locations, by_input_partition
        return rows


@attrs.define
class _Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def _cluster(*executors: str) -> tuple[_Rows, _Clock, TaskPlacement]:
    rows, clock = _Rows([(id_, f"host{id_}", 1) for id_ in executors]), _Clock()
    return rows, clock, TaskPlacement(rows, clock)


def test_nothing_is_placed_without_executors() -> None:
    rows, clock, placement = _cluster()
    assert placement.locate_tasks("0", 2) is None
    rows.found, clock.now = [("1", "host1", 1)], 1.0
    placed = placement.locate_tasks("0", 2)
    assert placed is not None
    assert placed.locations == ("executor_host1_1",) * 2


def test_executors_are_read_at_most_twice_a_second() -> None:
    rows, clock, placement = _cluster("1")
    for _ in range(10):
        clock.now += 0.1
        placement.locate_tasks("0", 2)
    assert rows.reads == 2


def test_tasks_stay_and_moves_are_logged() -> None:
    rows, clock, placement = _cluster("1", "2")
    first = placement.locate_tasks("0", 2)
    other = placement.locate_tasks("1", 1)
    assert first is not None
    assert sorted(first.locations) == ["executor_host1_1", "executor_host2_2"]
    clock.now = 1.0
    with capture_logs() as logs:
        assert placement.locate_tasks("0", 2) == first
        assert placement.locate_tasks("1", 1) == other
        assert not logs
        rows.found, clock.now = rows.found[:1], 2.0
        moved = placement.locate_tasks("0", 2)
    assert moved is not None
    assert set(moved.locations) == {"executor_host1_1"}
    (log,) = logs
    assert log["event"] == "tasks moved to other executors"
    lost = first.locations.index("executor_host2_2")
    assert f"0_{lost}" in log["tasks"]


def test_fewer_threads_than_tasks_of_one_executor_are_placed_there() -> None:
    """Spark reads several input partitions in a Spark partition then, so these have no number of a task."""
    rows, _, placement = _cluster("1")
    placed = placement.locate_tasks("0", 4)
    assert placed is not None
    assert not placed.is_spread
    results: Any = object()
    placed.place(results, 2, shuffled=False)
    assert rows.last == (("executor_host1_1",) * 2, False)


def test_results_are_placed_by_task_by_input_or_by_group() -> None:
    rows, _, placement = _cluster("1", "2")
    placed, results = placement.locate_tasks("0", 4), object()
    assert placed is not None
    frame: Any = results
    assert placed.place(frame, 4, shuffled=True) is results
    assert rows.last == (placed.locations, False)
    placed.place(frame, 4, shuffled=False)
    assert rows.last == (placed.locations, True)
    placed.place(frame, 2, shuffled=True)
    locations, _ = rows.last
    groups = placed.groups(2)
    assert [locations[group] for group in groups] == list(placed.locations)
