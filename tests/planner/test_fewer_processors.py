"""KIP-287: fewer processors than the changelog topics have partitions, as committed offsets show."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.model.problems import APPLICATION, PLAN, Caller, Problem, ProblemCode, Severity
from headwater.planner import ActionKind, plan
from headwater.planner.drift import find_drift
from tests.planner.application_with_processors import (
    CHANGELOG,
    GROWING,
    REPARTITION,
    codes,
    declared,
    partitions,
)
from tests.planner.simulated_cluster import AUTOSCALING, MANUAL, NO_LIMITS, SimulatedCluster


def shrunk(config: Mapping[str, str] = GROWING) -> SimulatedCluster:
    """Return a cluster with 2 processors after 4, of which the document declares 4."""
    cluster = SimulatedCluster.set_up(declared(4, 4, config))
    cluster.processors["orders"] = 2
    return cluster


@pytest.mark.parametrize("config", [GROWING, MANUAL], ids=["growing", "manual"])
def test_a_changelog_topic_keeps_its_partitions(config: Mapping[str, str]) -> None:
    cluster = shrunk(config)
    for count in (4, 4, 8):
        cluster.change(REPARTITION, partitions=count)
        planned = cluster.up(declared(2, count, config))
        assert not planned.problems
        assert [action.kind for action in planned.actions if action.name == CHANGELOG] == [ActionKind.KEEP]
        [note] = planned.applications[0].notes
        assert note == f"sub-topology 1: 2 processors for {count} partitions (changelog topics keep 4)"
        assert partitions(cluster) == {REPARTITION: count, CHANGELOG: 4}
        assert cluster.records["orders"].initial == {REPARTITION: 4}
    drift = find_drift([declared(2, 8, config)], cluster.snapshot, cluster.records)
    assert not drift.problems
    assert not [finding for application in drift.applications for finding in application.findings]


@pytest.mark.parametrize("present", [None, 4], ids=["not committed", "not moved"])
@pytest.mark.parametrize("caller", [PLAN, APPLICATION])
def test_fewer_processors_need_a_move(present: int | None, caller: Caller) -> None:
    cluster = SimulatedCluster.set_up(declared(4, 4))
    if present is not None:
        cluster.processors["orders"] = present
    records = cluster.records if caller is PLAN else {}
    planned = plan([declared(2, 4)], cluster.snapshot, records, NO_LIMITS, caller=caller)
    assert codes(planned) == [ProblemCode.PROCESSOR_COUNT]
    [problem] = planned.problems
    assert (problem.expected, problem.found) == ("4 processors", "2 processors")
    assert "run `headwater processors move --offline` with the document" in problem.fix
    assert {action.kind for action in planned.actions} <= {ActionKind.KEEP, ActionKind.ADOPT}


def test_it_is_said_why_the_committed_number_is_not_known() -> None:
    cluster = SimulatedCluster.set_up(declared(4, 4))
    summary = "The brokers do not let this user read the offsets of group orders."
    cluster.unread_processors["orders"] = Problem(code=ProblemCode.NOT_AUTHORIZED, summary=summary)
    [problem] = cluster.plan(declared(2, 4)).problems
    assert problem.why.endswith("could not be read: " + summary)


def test_keys_of_other_partitioners_cannot_move() -> None:
    cluster = SimulatedCluster.set_up(declared(4, 4, AUTOSCALING))
    [problem] = cluster.plan(declared(2, 4, AUTOSCALING)).problems
    assert "move --offline" not in problem.fix


@pytest.mark.parametrize(("count", "kept"), [(3, " (changelog topics keep 4)"), (4, ""), (8, "")])
def test_more_processors_are_added_again(count: int, kept: str) -> None:
    cluster = shrunk()
    cluster.up(declared(2, 8))
    cluster.change(CHANGELOG, records=12)
    planned = cluster.up(declared(count, 8))
    [problem] = planned.problems
    assert (problem.code, problem.severity) == (ProblemCode.PROCESSOR_COUNT, Severity.WARNING)
    assert problem.found == "2 processors"
    [note] = planned.applications[0].notes
    assert note.startswith(f"sub-topology 1: 2 of {count} processors for 8 partitions")
    assert kept in note
    assert ("keep" in note) == bool(kept)
    assert "about 12 changelog records to read" in note
    cluster.change(CHANGELOG, partitions=max(4, count))
    cluster.processors["orders"] = count
    assert not cluster.up(declared(count, 8)).problems


def test_the_number_of_the_state_is_the_committed_one() -> None:
    """Not that of the changelog topic, in either direction."""
    cluster = shrunk()
    for count in (1, 8):
        [problem] = cluster.plan(declared(count, 4)).problems
        assert (problem.code, problem.expected) == (ProblemCode.PROCESSOR_COUNT, "2 processors")
    del cluster.topics[CHANGELOG]
    planned = cluster.plan(declared(2, 4))
    assert [action.partitions for action in planned.actions if action.name == CHANGELOG] == [2]


def test_a_changelog_topic_with_fewer_partitions_than_processors_is_refused() -> None:
    cluster = shrunk()
    cluster.change(CHANGELOG, partitions=1)
    assert codes(cluster.plan(declared(2, 4))) == [ProblemCode.PROCESSOR_COUNT]


@given(st.integers(1, 8), st.integers(1, 8), st.integers(1, 8))
def test_a_changelog_topic_is_never_changed(live: int, present: int, processors: int) -> None:
    """Whatever is declared and committed; the state has at most as many processors as it has partitions."""
    present = min(present, live)
    cluster = SimulatedCluster.set_up(declared(live, live))
    count = live * 8
    cluster.up(declared(live, count))
    cluster.processors["orders"] = present
    planned = cluster.plan(declared(processors, count))
    expected = {True: [Severity.WARNING], False: [Severity.ERROR]}[processors > present]
    assert [problem.severity for problem in planned.problems] == ([] if processors == present else expected)
    [action] = [action for action in planned.actions if action.name == CHANGELOG]
    assert (action.kind, action.partitions) == (ActionKind.KEEP, live)
