"""`make test` assigns the longest tests first, as recorded by earlier runs or estimated from the source."""

import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import attrs
import pytest

from headwater.toolchain.broker.readiness import until
from tests.durations import (
    ALL_VERSIONS,
    KEPT,
    ROOT,
    SECURED_CLUSTER,
    SPARK_SESSION,
    DurationRecorder,
    ModuleDuration,
    estimate_duration,
    load_durations,
    records_durations,
    save_durations,
)
from tests.processor_time import ControlGroup, used_seconds
from tests.scheduling import LongestFirst, Schedule
from tests.workers import count_workers

_SIGNS = ("pytest.mark.broker", "pytest.mark.spark", "spark: SparkSession", "own_broker:")
_LONG = {
    str(path.relative_to(ROOT))
    for path in sorted((ROOT / "tests").rglob("test_*.py"))
    if any(sign in path.read_text(encoding="utf-8") for sign in _SIGNS)
}


def test_modules_with_spark_or_brokers_are_known_or_estimated_to_be_long() -> None:
    schedule = Schedule(load_durations())
    assert len(_LONG) > 100
    unknown = _LONG - schedule.known.keys()
    assert not [path for path in unknown if schedule.duration(path).seconds < 30]


def test_the_kept_file_has_one_module_a_line_in_order(tmp_path: Path) -> None:
    """So two branches that record other modules can be merged."""
    save_durations(load_durations(), tmp_path / "again.json")
    assert (tmp_path / "again.json").read_text() == KEPT.read_text()


@pytest.mark.parametrize(
    ("source", "seconds", "shares"),
    [
        ("def test_query(spark: SparkSession) -> None: ...", 60, SPARK_SESSION),
        ("pytestmark = pytest.mark.spark", 60, ""),
        ("pytestmark = pytest.mark.oracle", 60, ""),
        ("pytestmark = pytest.mark.broker", 30, ""),
        ("def test_sum() -> None: ...", 0, ""),
    ],
)
def test_a_new_module_is_estimated_from_its_source(source: str, seconds: float, shares: str) -> None:
    found = estimate_duration(source)
    assert (found.seconds, found.shares) == (seconds, shares)


def _duration(seconds: float, **fields: Any) -> ModuleDuration:  # noqa: ANN401 - fields of several types
    return ModuleDuration(**{"seconds": seconds, "processor_seconds": seconds, **fields})


@pytest.mark.parametrize(
    ("duration", "scope"),
    [
        (_duration(180, tests=3), "tests/test_a.py::test_one"),
        (_duration(180, tests=3, shared_setup_seconds=40), "tests/test_a.py"),
        (_duration(180, tests=1), "tests/test_a.py"),
        (_duration(100, tests=3), "tests/test_a.py"),
        (_duration(180, tests=3, shares=ALL_VERSIONS), ALL_VERSIONS),
        (_duration(180, tests=3, shares=SECURED_CLUSTER), SECURED_CLUSTER),
        (_duration(180, tests=3, shares=SPARK_SESSION), f"{SPARK_SESSION} 0"),
    ],
    ids=["long", "long with a shared set-up", "one test", "short", "versions", "cluster", "Spark"],
)
def test_the_tests_of_a_long_module_are_separate_unless_they_share_something(
    duration: ModuleDuration, scope: str
) -> None:
    assert Schedule({"tests/test_a.py": duration}).scope_of("tests/test_a.py::test_one") == scope


def test_two_spark_sessions_get_about_the_same_time() -> None:
    lengths = {"a": 50, "b": 40, "c": 30, "d": 20, "e": 10}
    known = {path: _duration(seconds, shares=SPARK_SESSION) for path, seconds in lengths.items()}
    schedule = Schedule(known)
    scopes = {path: schedule.scope_of(f"{path}::test") for path in known}
    assert len(set(scopes.values())) == 2
    assert sorted(schedule.scope(name).seconds for name in set(scopes.values())) == [70, 80]


def test_a_run_records_what_its_modules_took(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    monkeypatch.setattr("tests.durations.RECORDED", tmp_path / "durations.json")
    recorder = DurationRecorder()
    for test, setup in (("one", 5.0), ("two", 0.5)):
        for when, seconds in (("setup", setup), ("call", 2.0), ("teardown", 0.25)):
            properties = [("processor_seconds", 1.0), ("shares", SPARK_SESSION if test == "two" else "")]
            report: Any = SimpleNamespace(
                nodeid=f"tests/test_a.py::{test}", duration=seconds, when=when, user_properties=properties
            )
            recorder.pytest_runtest_logreport(report)
    recorder.pytest_sessionfinish()
    assert load_durations(tmp_path / "durations.json") == {
        "tests/test_a.py": ModuleDuration(
            seconds=10.0, processor_seconds=6.0, shared_setup_seconds=4.5, tests=2, shares=SPARK_SESSION
        )
    }


def test_a_run_prints_what_needed_its_processor_time() -> None:
    recorder = DurationRecorder()
    for worker in ({"collection_seconds": 15.0}, {"collection_seconds": 16.0}, {}):
        recorder.pytest_testnodedown(SimpleNamespace(workeroutput=worker))
    recorder.pytest_testnodedown(SimpleNamespace())  # it has crashed
    report: Any = SimpleNamespace(
        nodeid="tests/test_a.py::one", duration=9, when="call", user_properties=[("processor_seconds", 7.0)]
    )
    recorder.pytest_runtest_logreport(report)
    lines: list[str] = []
    terminal: Any = SimpleNamespace(write_line=lines.append)
    recorder.pytest_terminal_summary(terminal)
    (line,) = lines
    assert line.startswith("CPU time: tests 7 s, collection 31 s, distribution "), line


@pytest.mark.parametrize(
    ("distribution", "is_recorded"), [("loadscope", True), ("loadfile", False), ("no", False)]
)
def test_only_the_run_of_all_tests_records(distribution: str, *, is_recorded: bool) -> None:
    """`make check` runs a part of the tests of many modules."""
    config: Any = SimpleNamespace(getoption=lambda *_: distribution)
    assert records_durations(config) is is_recorded


def test_a_group_counts_what_killed_processes_have_used() -> None:
    """No process waits for the loop, which is killed with the shell that has started it."""
    group = ControlGroup.create(f"headwater-test-{uuid4().hex}", "gw0")
    if group is None:
        pytest.skip("no permission to create control groups")
    program = 'read -r go; sh -c "while :; do :; done" & wait'
    with subprocess.Popen(["sh", "-c", program], stdin=subprocess.PIPE, start_new_session=True) as shell:
        assert group.add(shell.pid)
        assert shell.stdin is not None
        shell.stdin.write(b"go\n")
        shell.stdin.close()
        assert until(lambda: used_seconds(group) > 0.1, 60)
        os.killpg(shell.pid, signal.SIGKILL)
    assert used_seconds(group) > 0.1
    run = ControlGroup(group.folder.parent)

    def is_removed() -> bool:
        run.remove()
        return not run.folder.exists()

    assert until(is_removed, 60), "a killed process leaves its group a moment later"


def test_without_a_group_the_process_itself_counts() -> None:
    before = used_seconds(None)
    assert until(lambda: sum(range(10_000)) and used_seconds(None) > before, 60)


def _first_scopes(known: Mapping[str, ModuleDuration]) -> list[str]:
    """Return what two workers run first."""
    option = SimpleNamespace(loadscopereorder=True)
    config = SimpleNamespace(getvalue=lambda _: ["2*popen"], option=option)
    scheduler = LongestFirst(config, schedule=Schedule(known))
    workers = [Worker(SimpleNamespace(id=f"gw{number}")) for number in range(2)]
    tests = [f"{path}::test_{number}" for path in sorted(known) for number in range(2)]
    for worker in workers:
        scheduler.add_node(worker)
        scheduler.add_node_collection(worker, tests)
    scheduler.schedule()
    return [tests[worker.waiting[0]].partition("::")[0] for worker in workers]


def test_one_worker_begins_with_the_longest_that_computes_the_other_with_the_longest_that_waits() -> None:
    known = {
        "a": _duration(10),
        "b": _duration(40),
        "c": _duration(20, processor_seconds=1),
        "d": _duration(30, processor_seconds=1),
        "e": _duration(1),
    }
    assert _first_scopes(known) == ["b", "d"]


@pytest.mark.parametrize(
    ("processors", "gibibytes", "workers"), [(2, 24, 6), (2, 16, 5), (4, 16, 5), (16, 64, 21), (1, 2, 1)]
)
def test_memory_limits_the_number_of_workers(processors: int, gibibytes: int, workers: int) -> None:
    assert count_workers(3, processors, gibibytes * 1024**3) == workers


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
