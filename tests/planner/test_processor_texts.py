"""The complete texts of problems with a number of processors."""

from collections.abc import Callable
from pathlib import Path

import pytest

from infra.model.problems import Problem
from infra.report import problems_text
from tests.planner.simulated_cluster import SimulatedCluster, application

GOLDEN = Path(__file__).parent / "processor_golden"
GROWING = {"partition.autoscaling.enabled": "true"}


def first(processors: int, *, steps: int = 1, **sources: int) -> tuple[Problem, ...]:
    """Return the problems of a first setup."""
    return SimulatedCluster().plan(application(processors=processors, sources=sources, steps=steps)).problems


def later(
    before: int | None, after: int | None, *, partitions: tuple[int, int] = (4, 4), steps: int = 1
) -> tuple[Problem, ...]:
    """Return the problems of a second run, with processors and partitions before and after."""
    was, now = (
        application(config=GROWING, sources={"orders-in": count}, processors=number, steps=steps)
        for number, count in zip((before, after), partitions, strict=True)
    )
    return SimulatedCluster.set_up(was).plan(now).problems


TEXTS: dict[str, Callable[[], tuple[Problem, ...]]] = {
    "unsafe_expansion_to_a_doubled_count": lambda: later(None, None, partitions=(4, 8)),
    "unsafe_expansion_with_processors": lambda: later(4, 4, partitions=(4, 6)),
    "fewer_processors_than_partitions_at_first": lambda: first(2, orders=4),
    "more_processors_than_partitions_at_first": lambda: first(8, orders=4),
    "processors_of_unequal_inputs": lambda: first(4, orders=4, prices=2, steps=0),
    "fewer_processors": lambda: later(4, 2),
    "more_processors": lambda: later(4, 8, partitions=(4, 8)),
    "more_processors_not_doubled": lambda: later(4, 6, partitions=(4, 8)),
    "processors_no_longer_declared": lambda: later(4, None, partitions=(4, 8)),
    "more_processors_than_partitions": lambda: later(4, 4, partitions=(4, 2), steps=0),
}


@pytest.mark.parametrize("name", TEXTS)
def test_texts(name: str, golden: Callable[[Path, str], None]) -> None:
    problems = TEXTS[name]()
    golden(GOLDEN / f"{name}.txt", problems_text(problems) + "\n")
    for problem in problems:
        assert problem.summary.endswith(".")
        assert problem.why.endswith(".")
        assert problem.fix.endswith(".")
        assert problem.expected
        assert problem.found


def test_each_text_is_still_reported() -> None:
    assert {file.stem for file in GOLDEN.iterdir()} == TEXTS.keys()
