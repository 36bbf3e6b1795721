"""The complete texts of problems with a number of processors."""

from collections.abc import Callable
from pathlib import Path

import pytest

from headwater.model.offset_metadata import MoveMark, MovePhase
from headwater.model.problems import AGENT, APPLICATION, PLAN, Caller, Problem, errors
from headwater.planner import plan
from headwater.report import problems_text
from tests.planner.simulated_cluster import NO_LIMITS, SimulatedCluster, application

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


def expanded(partitions: int) -> SimulatedCluster:
    """Return a cluster with 6 processors after 4, and 8 partitions, of which the input gets more."""
    cluster = SimulatedCluster.set_up(application(processors=4, sources={"orders-in": 4}, config=GROWING))
    cluster.up(application(processors=4, sources={"orders-in": 8}, config=GROWING))
    cluster.change("orders-counts-changelog", partitions=6)
    cluster.up(application(processors=6, sources={"orders-in": partitions}, config=GROWING))
    return cluster


def estimated() -> tuple[Problem, ...]:
    was, now = (
        application(config=GROWING, sources={"orders-in": count}, processors=count) for count in (4, 8)
    )
    cluster = SimulatedCluster.set_up(was)
    cluster.change("orders-counts-changelog", records=1_200_000)
    return cluster.plan(now).problems


def unsafe_between() -> tuple[Problem, ...]:
    """12 partitions would be doubled ones of an application that had 6 at first."""
    now = application(processors=6, sources={"orders-in": 12}, config=GROWING)
    return expanded(8).plan(now).problems


def another_initial() -> tuple[Problem, ...]:
    config = {**GROWING, "static.partitioner.class": "linear-hash"}
    number = "static.partitioner.initial.partitions"
    now = application(processors=6, sources={"orders-in": 8}, config={**config, number: "6"})
    return expanded(8).plan(now).problems


def kept(after: int) -> tuple[Problem, ...]:
    """Return the problems of a state with 2 processors after 4, which the offsets show."""
    cluster = SimulatedCluster.set_up(application(processors=4, sources={"orders-in": 4}, config=GROWING))
    cluster.processors["orders"] = 2
    return cluster.plan(application(processors=after, sources={"orders-in": 4}, config=GROWING)).problems


def expanded_elsewhere(partitions: int, caller: Caller = PLAN) -> tuple[Problem, ...]:
    """Return the problems after another client has expanded the changelog topic of 4 processors to 8."""
    was, now = (
        application(config=GROWING, sources={"orders-in": count}, processors=4) for count in (4, partitions)
    )
    cluster = SimulatedCluster.set_up(was)
    cluster.up(now)
    cluster.change("orders-counts-changelog", partitions=8)
    return plan([now], cluster.snapshot, cluster.records, NO_LIMITS, caller=caller).problems


def undeclared(caller: Caller) -> tuple[Problem, ...]:
    """Return the problems of a document without the 4 processors that tasks have committed."""
    cluster = SimulatedCluster.set_up(application(processors=4, sources={"orders-in": 4}, config=GROWING))
    cluster.undeclared = frozenset({"orders"})
    now = application(sources={"orders-in": 8}, config={**GROWING, "static.partitioner.class": "t:ByTenant"})
    return errors(plan([now], cluster.snapshot, {}, NO_LIMITS, caller=caller).problems)


def undeclared_in_wider_changelogs() -> tuple[Problem, ...]:
    """Return the problems of such a document after another client has expanded the changelog topic to 8."""
    cluster = SimulatedCluster.set_up(application(processors=4, sources={"orders-in": 4}, config=GROWING))
    cluster.change("orders-counts-changelog", partitions=8)
    cluster.undeclared, cluster.processors["orders"] = frozenset({"orders"}), 4
    now = application(sources={"orders-in": 16}, config={**GROWING, "static.partitioner.class": "t:ByTenant"})
    return errors(plan([now], cluster.snapshot, {}, NO_LIMITS).problems)


def expanding(after: int) -> tuple[Problem, ...]:
    """Return the problems while an expansion from 4 to 8 processors copies."""
    was, now = (
        application(config=GROWING, sources={"orders-in": 8}, processors=number) for number in (4, after)
    )
    first = application(config=GROWING, sources={"orders-in": 4}, processors=4)
    cluster = SimulatedCluster.set_up(first)
    cluster.up(was)
    cluster.change("orders-counts-changelog", partitions=8)
    cluster.processors["orders"] = 4
    cluster.moves["orders"] = MoveMark(MovePhase.CATCH_UP, 4, 8)
    return cluster.plan(now).problems


TEXTS: dict[str, Callable[[], tuple[Problem, ...]]] = {
    "unsafe_expansion_to_a_doubled_count": lambda: later(None, None, partitions=(4, 8)),
    "unsafe_expansion_with_processors": lambda: later(4, 4, partitions=(4, 6)),
    "fewer_processors_than_partitions_at_first": lambda: first(2, orders=4),
    "more_processors_than_partitions_at_first": lambda: first(8, orders=4),
    "processors_of_unequal_inputs": lambda: first(4, orders=4, prices=2, steps=0),
    "fewer_processors": lambda: later(4, 2),
    "changelogs_that_another_client_has_expanded": lambda: expanded_elsewhere(4),
    "changelogs_that_another_client_may_have_expanded": lambda: expanded_elsewhere(8),
    "changelogs_that_are_expanded_while_it_runs": lambda: expanded_elsewhere(4, APPLICATION),
    "changelogs_that_may_be_expanded_while_it_runs": lambda: expanded_elsewhere(8, APPLICATION),
    "an_expansion_that_is_not_declared": lambda: expanding(4),
    "an_expansion_that_is_declared": lambda: expanding(8),
    "fewer_processors_than_are_committed": lambda: kept(1),
    "more_processors_than_are_committed": lambda: kept(3),
    "more_processors": lambda: later(4, 8, partitions=(4, 8)),
    "more_processors_with_an_estimate": estimated,
    "more_processors_between_two_doublings": lambda: later(4, 6, partitions=(4, 8)),
    "more_processors_than_partitions_of_the_input": lambda: later(4, 6),
    "unsafe_expansion_between_two_doublings": unsafe_between,
    "another_initial_number": another_initial,
    "processors_no_longer_declared": lambda: later(4, None, partitions=(4, 8)),
    "processors_that_a_stack_without_state_does_not_declare": lambda: undeclared(PLAN),
    "processors_that_an_agent_does_not_declare": lambda: undeclared(AGENT),
    "processors_that_wider_changelogs_do_not_show": undeclared_in_wider_changelogs,
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
