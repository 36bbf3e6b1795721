"""What counts as a change of a plan."""

import attrs
import pytest

from headwater.model.cluster import LiveTopic
from headwater.model.problems import Problem, ProblemCode, Severity
from headwater.model.records import SetupRecord
from headwater.model.topology import Sink
from headwater.planner import ActionKind, Plan, TopicAction
from headwater.planner.plans import ApplicationPlan
from tests.planner.simulated_cluster import changelog

RECORD = SetupRecord("orders", {})
KEPT = TopicAction(kind=ActionKind.KEEP, name="t", partitions=4, config={})
UNCHANGED = ApplicationPlan("orders", None, (KEPT,), RECORD, RECORD)


@pytest.mark.parametrize("kind", ActionKind)
def test_only_keeping_and_the_first_step_of_a_deletion_change_nothing(kind: ActionKind) -> None:
    planned = attrs.evolve(UNCHANGED, actions=(attrs.evolve(KEPT, kind=kind),))
    assert planned.has_changes is (kind not in (ActionKind.KEEP, ActionKind.RETIRE))


def test_another_record_is_a_change() -> None:
    assert not UNCHANGED.has_changes
    assert attrs.evolve(UNCHANGED, recorded=None).has_changes
    assert attrs.evolve(UNCHANGED, record=SetupRecord("orders", {}, 4)).has_changes


def test_partitions_are_added_to_existing_topics_only() -> None:
    live = LiveTopic("t", "id", 3, 1)
    assert attrs.evolve(KEPT, live=live).added_partitions == 1
    assert KEPT.added_partitions == 0


def test_the_title_names_the_kind_of_the_topic() -> None:
    assert attrs.evolve(KEPT, topic=changelog("t", 4)).title == "Internal topic t"
    assert attrs.evolve(KEPT, topic=Sink("t", 4)).title == "Sink topic t"


@pytest.mark.parametrize("severity", Severity)
def test_a_plan_is_applicable_without_an_error(severity: Severity) -> None:
    problem = Problem(code=ProblemCode.TIMEOUT, summary="It took long.", severity=severity)
    plan = Plan((UNCHANGED,), (problem,), "c")
    assert plan.is_applicable is (severity is not Severity.ERROR)
    assert not plan.has_changes
    assert list(plan.actions) == [KEPT]
