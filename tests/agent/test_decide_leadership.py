"""Only a confirmed leader acts, and the next leader resumes from the journal."""

import attrs
import pytest

from headwater.agent.decide.values import Deposed, Metadata, Notify, Observe, TermObserved
from headwater.agent.events import LeadershipGained, Notified
from headwater.agent.state import AgentState, Outcome, Parallelism, Phase
from headwater.model.expansions import Stage
from tests.agent.simulation import CHANGELOG, ORDERS, REPARTITION, leading_agent

TIMEOUT_MS = 900_000


def test_follower_only_reads_cluster() -> None:
    simulation = leading_agent(ORDERS)
    simulation.run(TermObserved(None))
    simulation.counts["orders"] = 8
    simulation.pass_time(60_000)
    assert simulation.app().phase is Phase.WAITING
    assert simulation.app().parallelism[1] == Parallelism(1, 4, 8)
    assert simulation.counts[CHANGELOG] == 4


def test_leader_is_reported_with_its_term() -> None:
    simulation = leading_agent(ORDERS)
    simulation.lead()
    assert simulation.reported(LeadershipGained) == [LeadershipGained(1), LeadershipGained(2)]
    reads = [action for action in simulation.actions if isinstance(action, Observe)]
    assert simulation.state.reads == len(reads)


def test_leader_waits_until_it_has_read_the_journal() -> None:
    simulation = leading_agent(ORDERS)
    simulation.is_journal_down = True
    simulation.counts["orders"] = 8
    simulation.lead()
    simulation.pass_time(60_000)
    assert simulation.app().phase is Phase.WAITING
    assert simulation.app().expansion is None
    simulation.is_journal_down = False
    simulation.pass_time(60_000)
    assert simulation.calls == [("totals-app", 1, 4, 8)]


def test_follower_that_is_deposed_may_lead_its_first_term() -> None:
    simulation = leading_agent(ORDERS)
    simulation.state = AgentState()
    simulation.run(Deposed())
    assert simulation.state.deposed_term < 0
    simulation.run(TermObserved(1))
    simulation.run(Deposed())
    assert simulation.state.deposed_term == 1


def test_unconfirmed_leader_does_not_call_callback() -> None:
    simulation = leading_agent(ORDERS)
    simulation.is_unconfirmed = True
    simulation.counts["orders"] = 8
    simulation.pass_time(60_000)
    assert not simulation.calls
    simulation.is_unconfirmed = False
    simulation.pass_time(5_000)
    assert simulation.calls == [("totals-app", 1, 4, 8)]


def test_nothing_is_expanded_without_journal() -> None:
    simulation = leading_agent(ORDERS)
    simulation.is_journal_down = True
    simulation.counts["orders"] = 8
    simulation.pass_time(60_000)
    assert simulation.counts[CHANGELOG] == 4
    assert simulation.app().expansion is not None
    simulation.is_journal_down = False
    simulation.pass_time(60_000)
    assert simulation.calls == [("totals-app", 1, 4, 8)]


def test_callback_is_not_repeated_when_only_journal_failed() -> None:
    simulation = leading_agent(ORDERS)
    simulation.counts["orders"] = 8
    simulation.pass_time(35_000)
    simulation.is_journal_down = True
    simulation.pass_time(60_000)
    assert len(simulation.calls) == 1
    assert len(simulation.reported(Notified)) == 1
    simulation.lead()
    simulation.is_journal_down = False
    simulation.pass_time(120_000)
    assert len(simulation.calls) == 1
    assert simulation.stages()[-1] is Stage.NOTIFIED


def test_pending_journal_entries_are_dropped_with_leadership() -> None:
    simulation = leading_agent(ORDERS)
    simulation.is_journal_down = True
    simulation.counts["orders"] = 8
    simulation.pass_time(31_000)
    assert simulation.state.outbox
    simulation.lead()
    simulation.is_journal_down = False
    simulation.pass_time(60_000)
    assert simulation.stages() == [Stage.STARTED, Stage.EXPANDED, Stage.NOTIFIED]


def test_expansion_after_unrecorded_callback_has_its_own_callback() -> None:
    simulation = leading_agent(ORDERS)
    simulation.counts["orders"] = 8
    simulation.pass_time(35_000)
    simulation.is_journal_down = True
    simulation.pass_time(10_000)
    assert simulation.calls == [("totals-app", 1, 4, 8)]
    simulation.is_journal_down = False
    simulation.counts["orders"] = 10
    simulation.lead()
    simulation.pass_time(60_000)
    assert simulation.calls == [("totals-app", 1, 4, 8), ("totals-app", 2, 8, 10)]
    assert simulation.stages() == [
        *(Stage.STARTED, Stage.EXPANDED, Stage.NOTIFIED),
        *(Stage.STARTED, Stage.EXPANDED, Stage.NOTIFIED),
    ]


def test_source_expanded_after_callback_starts_another_expansion() -> None:
    simulation = leading_agent(ORDERS)
    simulation.counts["orders"] = 8
    simulation.pass_time(31_000)
    app = simulation.app()
    assert app.expansion is not None
    called = attrs.evolve(app, called_number=app.expansion.number)
    simulation.state = attrs.evolve(simulation.state, applications={app.id: called})
    simulation.counts["orders"] = 10
    simulation.run(Metadata(dict(simulation.counts), simulation.documents))
    simulation.pass_time(60_000)
    assert simulation.calls == [("totals-app", 2, 8, 10)]
    notified = [event for event in simulation.reported(Notified) if isinstance(event, Notified)]
    assert [event.number for event in notified] == [1, 2]
    assert [(entry.number, entry.stage) for entry in simulation.journal] == [
        (number, stage) for number in (1, 2) for stage in (Stage.STARTED, Stage.EXPANDED, Stage.NOTIFIED)
    ]


def test_topics_expanded_before_giving_up_belong_to_next_successful_expansion() -> None:
    simulation = leading_agent(ORDERS)
    simulation.outcome = lambda topic: Outcome.FAILED if topic == REPARTITION else None
    simulation.counts["orders"] = 8
    simulation.pass_time(40_000 + TIMEOUT_MS)
    assert simulation.stages()[-1] is Stage.GIVEN_UP
    simulation.crash()
    simulation.outcome = lambda _: None
    simulation.counts["orders"] = 10
    simulation.run(TermObserved(simulation.term))
    simulation.pass_time(60_000)
    assert simulation.journal[-1].before == {REPARTITION: 4, CHANGELOG: 4, "totals": 4}
    assert simulation.calls == [("totals-app", 2, 4, 10)]


@pytest.mark.parametrize("step", range(12))
def test_another_agent_finishes_after_kill_at_any_step(step: int) -> None:
    simulation = leading_agent()
    simulation.crash_after = step
    simulation.counts["orders"] = 8
    simulation.pass_time(120_000)
    assert {name for name, count in simulation.counts.items() if count != 8} == {"returns"}
    assert {entry.stage for entry in simulation.last_entries().values()} == {Stage.NOTIFIED}
    for application in ("totals-app", "ranks-app"):
        calls = [call for call in simulation.calls if call[0] == application]
        assert set(calls) == {(application, 1, 4, 8)}
        assert len(calls) <= 2


def test_callback_repeats_only_after_kill_before_journal_entry() -> None:
    simulation = leading_agent(ORDERS)
    simulation.counts["orders"] = 8
    simulation.pass_time(35_000)
    simulation.crash_after = 2
    simulation.pass_time(120_000)
    assert [type(action) for action in simulation.actions].count(Notify) == 2
    assert len(simulation.calls) == 2
