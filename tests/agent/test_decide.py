"""The agent's decisions: when it reads the cluster, what it expands and what it records in the journal."""

import attrs

from headwater.agent.decide.apply_observation import update_requirements
from headwater.agent.decide.values import AgentPolicy, Expand, Observe, TermObserved
from headwater.agent.events import Expanded, ExpansionStarted
from headwater.agent.state import Outcome, Parallelism, Phase, Requirements
from headwater.model.expansions import Stage
from tests.agent.simulation import CHANGELOG, ORDERS, RANKS, REPARTITION, documents, leading_agent, set_up


def test_no_action_while_counts_match() -> None:
    simulation = leading_agent()
    simulation.pass_time(600_000)
    assert {type(action) for action in simulation.actions[1:]} == {Observe}
    assert not simulation.journal
    assert {app.phase for app in simulation.state.applications.values()} == {Phase.STEADY}


def test_cluster_is_read_once_per_interval() -> None:
    simulation = leading_agent()
    simulation.actions.clear()
    simulation.pass_time(10 * 30_000)
    assert simulation.actions == [Observe()] * 10


def test_interval_is_least_metadata_max_age_of_applications() -> None:
    simulation = leading_agent(ORDERS.replace("config: {", "config: {metadata.max.age.ms: 7000, "), RANKS)
    simulation.policy = attrs.evolve(simulation.policy, poll_ms=None)
    simulation.run(TermObserved(simulation.term))
    simulation.actions.clear()
    simulation.pass_time(70_000)
    assert simulation.actions == [Observe()] * 10


def test_without_applications_the_interval_is_that_of_kafka() -> None:
    assert AgentPolicy(client_id="agent-1").interval_ms(()) == 300_000


def test_a_pattern_can_match_any_topic_except_internal_ones() -> None:
    [document] = documents(ORDERS.replace("topics: [orders, returns]", 'pattern: "(orders|returns).*"'))
    counts = {"orders": 4, REPARTITION: 4, CHANGELOG: 4, "totals": 4, "another-topic": 1}
    found = update_requirements((document,), counts, Requirements())
    assert found.counts == {"orders": 4, "totals": 4, "another-topic": 1}
    assert update_requirements(found.documents, counts | {CHANGELOG: 5}, found) is found
    grown = update_requirements(found.documents, counts | {"returns-of-today": 6}, found)
    assert {topic.partitions for topic in grown.applications[0].internal_topics} == {6}


def test_a_missing_source_topic_may_be_hidden_from_the_agent() -> None:
    [application] = update_requirements(documents(ORDERS), {"orders": 4}, Requirements()).applications
    [problem] = application.problems
    assert problem.topic == "returns"
    assert problem.fix.endswith("If it exists, grant the agent's user permission to describe it.")


def test_documents_are_compiled_again_only_when_relevant_count_changes() -> None:
    simulation = leading_agent()
    before = simulation.state.requirements
    simulation.counts |= {"topic-of-another-app": 7, CHANGELOG: 4}
    simulation.pass_time(60_000)
    assert simulation.state.requirements is before
    simulation.counts["orders"] = 5
    simulation.pass_time(60_000)
    assert simulation.state.requirements is not before


def test_first_expanded_source_starts_expansion_downstream_first_across_applications() -> None:
    simulation = leading_agent()
    simulation.counts["returns"] = 6
    simulation.pass_time(30_000)
    (expand,) = [action for action in simulation.actions if isinstance(action, Expand)]
    topics = [sorted(item.topic for item in wave) for wave in expand.waves]
    assert topics == [["ranks-app-latest-changelog", CHANGELOG], ["totals"], [REPARTITION]]
    assert {simulation.counts[topic] for wave in topics for topic in wave} == {6}


def test_journal_is_written_first_and_callback_follows_after_ten_seconds() -> None:
    simulation = leading_agent(ORDERS)
    simulation.counts["orders"] = 9
    simulation.pass_time(30_000)
    assert simulation.stages() == [Stage.STARTED, Stage.EXPANDED]
    assert simulation.app().phase is Phase.SETTLING
    simulation.pass_time(9_999)
    assert not simulation.calls
    simulation.pass_time(1)
    assert simulation.calls == [("totals-app", 1, 4, 9)]
    assert simulation.stages() == [Stage.STARTED, Stage.EXPANDED, Stage.NOTIFIED]
    assert simulation.app().phase is Phase.STEADY
    kinds = [type(action).__name__ for action in simulation.actions]
    assert kinds == [
        *("Recover", "Observe"),
        *("Observe", "ReadOffsetMetadata", "Record", "Expand", "Record"),
        *("Observe", "Notify", "Record"),
    ]


def test_journal_contains_agent_topics_time_and_reason() -> None:
    simulation = leading_agent(ORDERS)
    simulation.counts["orders"] = 9
    simulation.pass_time(60_000)
    first, last = simulation.journal[0], simulation.journal[-1]
    assert first.client_id == "agent-1"
    assert (first.before, first.after) == (
        {REPARTITION: 4, CHANGELOG: 4, "totals": 4},
        {REPARTITION: 9, CHANGELOG: 9, "totals": 9},
    )
    assert (first.sources_before["orders"], first.sources_after["orders"]) == (4, 9)
    assert (first.reason, first.wall_ms) == ("orders grew from 4 to 9", 30_000)
    assert last.after == first.after
    assert set(last.done) == {REPARTITION, CHANGELOG, "totals"}


def test_parallelism_is_current_and_expected() -> None:
    simulation = leading_agent(ORDERS)
    simulation.outcome = lambda topic: Outcome.FAILED if topic == CHANGELOG else None
    simulation.counts["orders"] = 9
    simulation.pass_time(30_000)
    assert simulation.app().parallelism == (Parallelism(0, 9, 9), Parallelism(1, 4, 9))
    simulation.outcome = lambda _: None
    simulation.pass_time(30_000)
    assert simulation.app().parallelism == (Parallelism(0, 9, 9), Parallelism(1, 9, 9))


def test_callback_waits_until_metadata_shows_all_partitions() -> None:
    simulation = leading_agent(ORDERS)
    before = dict(simulation.counts)
    simulation.counts["orders"] = 8
    simulation.pass_time(30_000)
    simulation.stale = {**simulation.counts, CHANGELOG: before[CHANGELOG]}
    simulation.pass_time(15_000)
    assert not simulation.calls
    simulation.stale = None
    simulation.pass_time(1_000)
    assert simulation.calls


def test_callback_is_called_for_expansion_by_another_client() -> None:
    simulation = leading_agent(ORDERS)
    simulation.counts = set_up(simulation.documents, {"orders": 8, "returns": 4})
    simulation.pass_time(60_000)
    assert not [action for action in simulation.actions if isinstance(action, Expand)]
    assert simulation.calls == [("totals-app", 1, 4, 8)]
    assert simulation.journal[-1].done == ()


def test_expansion_by_another_client_is_in_the_journal() -> None:
    simulation = leading_agent(ORDERS)
    simulation.counts |= {"orders": 8, "totals": 8, REPARTITION: 8, CHANGELOG: 8}
    simulation.pass_time(60_000)
    assert simulation.app().phase is Phase.STEADY
    assert [entry.after.get(CHANGELOG) for entry in simulation.journal] == [8, 8, 8]


def test_no_callback_for_expansion_by_another_client_with_autoscaling_off() -> None:
    simulation = leading_agent(ORDERS.replace("enabled: true", "enabled: false"))
    simulation.counts = set_up(simulation.documents, {"orders": 8, "returns": 4})
    simulation.pass_time(60_000)
    assert simulation.app().phase is Phase.STEADY
    assert not simulation.calls
    assert not simulation.journal


def test_source_expanded_again_while_settling_continues_expansion() -> None:
    simulation = leading_agent(ORDERS)
    simulation.policy = attrs.evolve(simulation.policy, poll_ms=2_000)
    simulation.counts["orders"] = 8
    simulation.pass_time(34_000)
    assert simulation.app().phase is Phase.SETTLING
    simulation.counts["orders"] = 12
    simulation.pass_time(60_000)
    assert simulation.calls == [("totals-app", 1, 4, 12)]
    assert len(simulation.reported(Expanded)) == 2
    assert len(simulation.reported(ExpansionStarted)) == 1
