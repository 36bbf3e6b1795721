"""A reshard that is not complete: the agent expands nothing, and says to complete it."""

import pytest

from headwater.agent.decide.values import Observe, ReadOffsetMetadata
from headwater.agent.events import ApplicationRefused, ProblemsSolved
from headwater.agent.state import Phase
from headwater.model.problems import ProblemCode
from tests.agent.simulation import CHANGELOG, ORDERS, RANKS, REPARTITION, leading_agent

_OFF = ORDERS.replace("enabled: true", "enabled: false")
_READ = {CHANGELOG: 1, REPARTITION: 4}


@pytest.mark.parametrize("after", [{}, {CHANGELOG: 8}], ids=["no topic", "the first topic"])
def test_nothing_is_expanded_until_the_reshard_is_complete(after: dict[str, int]) -> None:
    """The source topic is expanded while the reshard is interrupted, or another agent starts then."""
    simulation = leading_agent(ORDERS)
    simulation.resharded = frozenset({"totals-app"})
    simulation.counts |= {"orders": 8, **after}
    before = dict(simulation.counts)
    simulation.pass_time(60_000)
    simulation.crash()
    simulation.lead()
    simulation.pass_time(60_000)
    assert simulation.counts == before
    assert not simulation.journal
    assert simulation.app().phase is Phase.REFUSED
    [problem] = simulation.app().problems
    assert problem.code is ProblemCode.UNSAFE_EXPANSION
    assert "run `headwater reshard` again, with the same options" in problem.fix
    assert [type(event) for event in simulation.events].count(ApplicationRefused) == 2
    assert simulation.state.processors == {}  # the journal has the counts of topics, no number of processors
    simulation.resharded = frozenset()
    simulation.pass_time(60_000)
    assert simulation.counts[CHANGELOG] == simulation.counts[REPARTITION] == 8
    assert simulation.app().phase is Phase.STEADY
    assert simulation.reported(ProblemsSolved)


def test_topics_that_a_reshard_has_expanded_are_not_to_be_deleted() -> None:
    """The source topic still has its old count. Without the journal, the fix is to delete a topic."""
    simulation = leading_agent(ORDERS)
    simulation.counts[CHANGELOG] = 8
    simulation.pass_time(30_000)
    [problem] = simulation.app().problems
    assert problem.code is ProblemCode.OVER_PARTITIONED
    assert "--delete" in problem.fix
    simulation.resharded = frozenset({"totals-app"})
    simulation.pass_time(30_000)
    [problem] = simulation.app().problems
    assert problem.code is ProblemCode.OVER_PARTITIONED
    assert "--delete" not in problem.fix
    assert "run `headwater reshard` again, with the same options" in problem.fix


def test_nothing_is_expanded_if_the_journal_of_a_reshard_cannot_be_read() -> None:
    simulation = leading_agent(ORDERS)
    simulation.are_offsets_unreadable = True
    simulation.counts["orders"] = 8
    simulation.pass_time(60_000)
    [problem] = simulation.app().problems
    assert problem.code is ProblemCode.CLUSTER_UNREACHABLE
    assert "It is not known whether a reshard of totals-app is complete" in problem.why
    assert simulation.counts[CHANGELOG] == 4
    simulation.are_offsets_unreadable = False
    simulation.pass_time(30_000)
    assert simulation.counts[CHANGELOG] == 8
    assert not simulation.app().problems


def test_an_unread_journal_does_not_hide_that_autoscaling_is_off() -> None:
    simulation = leading_agent(_OFF)
    simulation.are_offsets_unreadable = True
    simulation.counts["orders"] = 8
    simulation.pass_time(60_000)
    assert simulation.app().phase is Phase.STOPPED
    assert all(problem.fix.startswith("It is not known") for problem in simulation.app().problems)


def test_other_applications_are_expanded_meanwhile() -> None:
    """An application that reads a sink of the other one waits for it."""
    other = RANKS.replace("ranks", "sums").replace("topic: totals", "topic: orders")
    simulation = leading_agent(ORDERS, RANKS, other)
    simulation.resharded = frozenset({"totals-app"})
    simulation.counts["orders"] = 8
    simulation.pass_time(60_000)
    assert simulation.app("sums-app").phase is Phase.STEADY
    assert simulation.counts["sums-app-latest-changelog"] == 8
    assert simulation.counts[CHANGELOG] == simulation.counts["ranks-app-latest-changelog"] == 4


def test_the_journal_of_a_reshard_is_only_read_if_a_count_is_wrong() -> None:
    simulation = leading_agent(ORDERS)
    simulation.pass_time(60_000)
    assert not [action for action in simulation.actions if isinstance(action, ReadOffsetMetadata)]
    simulation.counts["orders"] = 8
    simulation.actions.clear()
    simulation.pass_time(30_000)
    assert simulation.actions[:2] == [Observe(), ReadOffsetMetadata({"totals-app": _READ})]
