"""`make test` schedules the tests that take minutes: one that it does not know would run alone at the end."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import attrs
import pytest

from tests.scheduling import LongestFirst, is_scheduled

_ROOT = Path(__file__).parents[2]
_SIGNS = ("pytest.mark.broker", "pytest.mark.spark", "spark: SparkSession", "own_broker:")
_LONG = {
    str(path.relative_to(_ROOT))
    for path in sorted((_ROOT / "tests").rglob("test_*.py"))
    if any(sign in path.read_text(encoding="utf-8") for sign in _SIGNS)
}


@pytest.mark.parametrize("path", sorted(_LONG - {"tests/architecture/test_scheduling.py"}))
def test_modules_with_spark_or_brokers_are_scheduled(path: str) -> None:
    assert is_scheduled(path), "add it to tests/scheduling.py"


@attrs.define(eq=False)
class Worker:
    """A worker of xdist: it runs a test when it knows the next one, or that there is none."""

    gateway: Any
    waiting: list[int] = attrs.field(factory=list)
    shutting_down: bool = False

    def send_runtest_some(self, tests: list[int]) -> None:
        self.waiting += tests

    def shutdown(self) -> None:
        self.shutting_down = True

    def run(self) -> int | None:
        """Return the test that runs next; None = the worker waits, or has no more tests."""
        return self.waiting.pop(0) if len(self.waiting) > 1 or (self.waiting and self.shutting_down) else None


@pytest.mark.parametrize("crash_after", range(30))
def test_all_tests_run_when_a_worker_crashes(crash_after: int) -> None:
    tests = [
        f"tests/test_{module}.py::test_{number}" for module in range(16) for number in range(module % 4 + 1)
    ]
    options = SimpleNamespace(loadscopereorder=True)
    scheduler = LongestFirst(SimpleNamespace(getvalue=lambda _: ["3*popen"], option=options))
    workers: list[Worker] = []

    def start_worker(number: int) -> None:
        workers.append(Worker(SimpleNamespace(id=f"gw{number}")))
        scheduler.add_node(workers[-1])
        scheduler.add_node_collection(workers[-1], tests)

    for number in range(3):
        start_worker(number)
    scheduler.schedule()
    completed: set[int] = set()
    has_crashed = False
    while not scheduler.tests_finished:
        if len(completed) >= crash_after and not has_crashed:
            has_crashed = True
            scheduler.remove_node(workers.pop(0))
            start_worker(3)
            scheduler.schedule()
        ran = [(worker, test) for worker in workers if (test := worker.run()) is not None]
        assert ran, "all workers wait"
        for worker, test in ran:
            completed.add(test)
            scheduler.mark_test_complete(worker, test)
    completed |= {test for worker in workers for test in worker.waiting}  # run when they are shut down
    assert completed == set(range(len(tests)))
