"""Released, retired and renamed applications, and runs that were interrupted."""

from typing import Any

import attrs
import pytest

from headwater.compiler.renumbering import origin_digests
from headwater.model.problems import ProblemCode
from headwater.model.records import RecordedTopic, SetupRecord
from headwater.model.topology import Leftovers, Lifecycle, Sink
from headwater.planner import ActionKind, Plan, TopicAction
from tests.planner.plans import kinds
from tests.planner.simulated_cluster import (
    AUTOSCALING,
    COMPACTED,
    MANUAL,
    SimulatedCluster,
    application,
    changelog,
    repartition,
)

REPARTITION, CHANGELOG, SINK = "orders-step1-repartition", "orders-counts-changelog", "orders-out"
WITH_SINK = Sink(SINK, 4)
RETIRED = application(lifecycle=Lifecycle.RETIRED)
RELEASED = application(lifecycle=Lifecycle.RELEASED)


def codes(plan: Plan) -> list[ProblemCode]:
    return [problem.code for problem in plan.problems]


def test_an_application_without_a_document_is_an_error() -> None:
    cluster = SimulatedCluster.set_up(application())
    plan = cluster.plan()
    assert codes(plan) == [ProblemCode.APPLICATION_REMOVED]
    assert plan.problems[0].application == "orders"
    assert not list(plan.actions)


def test_releasing_removes_the_record_and_keeps_the_topics() -> None:
    cluster = SimulatedCluster.set_up(application())
    plan = cluster.up(RELEASED)
    assert kinds(plan) == {REPARTITION: ActionKind.RELEASE, CHANGELOG: ActionKind.RELEASE}
    (part,) = plan.applications
    assert (part.compiled, part.record) == (RELEASED, None)
    assert part.notes == ("released: 2 topics no longer managed, nothing is deleted",)
    assert {action.note for action in plan.actions} == {"it stays"}
    assert set(cluster.topics) == {REPARTITION, CHANGELOG}
    assert not cluster.records
    assert not cluster.plan(RELEASED).has_changes
    assert not cluster.plan().problems


def test_a_released_application_may_be_running_without_its_sources() -> None:
    cluster = SimulatedCluster.set_up(application())
    cluster.run_group("orders")
    assert cluster.plan(attrs.evolve(RELEASED, missing_sources=("orders-in",))).is_applicable


def test_retiring_deletes_internal_topics_in_two_steps() -> None:
    cluster = SimulatedCluster.set_up(application(sink=WITH_SINK))
    set_up = cluster.records["orders"]
    first = cluster.up(RETIRED)
    assert first.has_changes
    (part,) = first.applications
    assert (part.compiled, part.recorded) == (RETIRED, set_up)
    assert "; ".join(part.notes) == (
        "retired, step 1 of 2: nothing is deleted yet. Remove the document and run again to delete "
        "2 internal topics"
    )
    prepared = "it is deleted once the document is removed"
    assert {action.name: action.note for action in first.actions} == {
        REPARTITION: prepared,
        CHANGELOG: prepared,
        SINK: "it stays",
    }
    assert kinds(first) == {
        REPARTITION: ActionKind.RETIRE,
        CHANGELOG: ActionKind.RETIRE,
        SINK: ActionKind.RELEASE,
    }
    assert set(cluster.topics) == {REPARTITION, CHANGELOG, SINK}
    assert not cluster.plan(RETIRED).has_changes
    second = cluster.up()
    assert kinds(second) == {REPARTITION: ActionKind.DELETE, CHANGELOG: ActionKind.DELETE}
    (part,) = second.applications
    assert part.notes == ("retired, step 2 of 2: 2 internal topics deleted",)
    assert part.recorded is not None
    assert set(cluster.topics) == {SINK}
    assert not cluster.plan().has_changes


def test_retiring_needs_an_inactive_group_in_both_steps() -> None:
    cluster = SimulatedCluster.set_up(application())
    cluster.run_group("orders")
    assert codes(cluster.plan(RETIRED)) == [ProblemCode.GROUP_ACTIVE]
    cluster.run_group("orders", members=0)
    cluster.up(RETIRED)
    cluster.run_group("orders")
    assert codes(cluster.plan()) == [ProblemCode.GROUP_ACTIVE]


def test_a_retired_application_can_become_active_again() -> None:
    cluster = SimulatedCluster.set_up(application(config=MANUAL))
    cluster.up(RETIRED)
    cluster.up(application(config=MANUAL))
    assert codes(cluster.plan()) == [ProblemCode.APPLICATION_REMOVED]


def test_retired_topics_that_no_longer_exist_are_released() -> None:
    cluster = SimulatedCluster.set_up(application())
    cluster.up(RETIRED)
    del cluster.topics[CHANGELOG]
    assert kinds(cluster.up()) == {REPARTITION: ActionKind.DELETE, CHANGELOG: ActionKind.RELEASE}
    assert not cluster.topics


def test_a_sink_that_was_re_created_does_not_stop_a_deletion() -> None:
    """Sinks are never deleted, so their ids do not matter."""
    sink = Sink("orders-out", 4)
    cluster = SimulatedCluster.set_up(application(sink=sink))
    cluster.recreate("orders-out", is_empty=False)
    assert codes(cluster.plan(application(sink=sink, lifecycle=Lifecycle.RETIRED))) == []
    record = cluster.records["orders"]
    cluster.records["orders"] = attrs.evolve(record, retired=True)
    assert codes(cluster.plan()) == []
    cluster.up()
    assert set(cluster.topics) == {"orders-out"}


def test_a_topic_that_was_re_created_after_the_first_step_is_not_deleted() -> None:
    cluster = SimulatedCluster.set_up(application())
    cluster.up(RETIRED)
    cluster.recreate(CHANGELOG, is_empty=False)
    plan = cluster.plan()
    assert codes(plan) == [ProblemCode.TOPIC_REPLACED]
    assert (plan.problems[0].topic, plan.is_applicable) == (CHANGELOG, False)
    cluster.up(RETIRED)
    cluster.up()
    assert not cluster.topics


def test_a_topic_whose_id_was_not_recorded_is_not_deleted() -> None:
    cluster = SimulatedCluster.set_up(application())
    cluster.up(RETIRED)
    record = cluster.records["orders"]
    cluster.records["orders"] = attrs.evolve(
        record, topics={**record.topics, CHANGELOG: RecordedTopic(CHANGELOG, "", 4)}
    )
    plan = cluster.plan()
    assert not plan.is_applicable
    assert [problem.expected for problem in plan.problems] == ["topic id unknown: none was recorded"]


def test_a_sink_in_the_record_of_a_retired_application_is_not_deleted() -> None:
    """Records of earlier versions contain the sinks, too."""
    cluster = SimulatedCluster.set_up(application(sink=WITH_SINK))
    sink = cluster.records["orders"].topics[SINK]
    cluster.up(RETIRED)
    record = cluster.records["orders"]
    cluster.records["orders"] = attrs.evolve(record, topics={**record.topics, SINK: sink})
    plan = cluster.up()
    assert kinds(plan)[SINK] is ActionKind.RELEASE
    assert {action.note for action in plan.actions} == {"it was retired"}
    assert set(cluster.topics) == {SINK}


def test_the_first_step_of_retiring_records_the_ids_that_it_finds() -> None:
    cluster = SimulatedCluster.set_up(application())
    cluster.recreate(CHANGELOG, is_empty=True)
    plan = cluster.plan(RETIRED)
    assert codes(plan) == [ProblemCode.TOPIC_REPLACED]
    assert plan.is_applicable
    (part,) = plan.applications
    assert part.record is not None
    assert part.record.topics[CHANGELOG].topic_id == cluster.topics[CHANGELOG].topic_id


def test_a_released_application_may_have_topics_that_were_re_created() -> None:
    cluster = SimulatedCluster.set_up(application())
    cluster.up(RETIRED)
    cluster.recreate(CHANGELOG, is_empty=False)
    assert not cluster.up(RELEASED).problems
    assert CHANGELOG in cluster.topics


def test_renaming_releases_the_old_topics_and_keeps_the_initial_processors() -> None:
    cluster = SimulatedCluster.set_up(application())
    cluster.records["orders"] = attrs.evolve(cluster.records["orders"], initial_processors=3)
    renamed = application(id_="sales", renamed_from="orders")
    plan = cluster.up(renamed)
    assert kinds(plan) == {
        REPARTITION: ActionKind.RELEASE,
        CHANGELOG: ActionKind.RELEASE,
        "sales-step1-repartition": ActionKind.CREATE,
        "sales-counts-changelog": ActionKind.CREATE,
    }
    assert set(cluster.records) == {"sales"}
    assert cluster.records["sales"].initial_processors == 3
    assert not cluster.plan(renamed).has_changes


def test_the_initial_processors_never_change() -> None:
    cluster = SimulatedCluster.set_up(application(config=AUTOSCALING))
    cluster.up(application(config=AUTOSCALING, sources={"orders-in": 12}))
    assert cluster.records["orders"].initial_processors == 4


def test_a_topic_that_the_topology_no_longer_has_is_kept_and_can_be_used_again() -> None:
    cluster = SimulatedCluster.set_up(application(config=MANUAL))
    plan = cluster.up(application(config=MANUAL, stateful=False))
    assert kinds(plan) == {REPARTITION: ActionKind.KEEP, CHANGELOG: ActionKind.KEEP}
    assert not cluster.plan(application(config=MANUAL, stateful=False)).has_changes
    assert not cluster.plan(application(config=MANUAL)).problems


def test_a_sink_that_the_document_no_longer_declares_stays_until_leftovers_keep_lists_it() -> None:
    cluster = SimulatedCluster.set_up(application(sink=WITH_SINK))
    plan = cluster.up(application())
    (kept,) = (action for action in plan.actions if action.name == SINK)
    assert kept.kind is ActionKind.KEEP
    assert kept.note.endswith("it stays; `leftovers.keep` removes it from the stack")
    declared = application()
    listed = attrs.evolve(declared.application, leftovers=Leftovers(keep=(SINK,)))
    assert kinds(cluster.up(attrs.evolve(declared, application=listed)))[SINK] is ActionKind.RELEASE
    assert SINK not in cluster.records["orders"].topics
    assert SINK in cluster.topics


def test_a_topic_that_the_topology_no_longer_has_is_kept_as_it_is() -> None:
    cluster = SimulatedCluster.set_up(application(config=MANUAL))
    cluster.change(CHANGELOG, partitions=9, replication_factor=2)
    live = cluster.topics[CHANGELOG]
    plan = cluster.plan(application(config=MANUAL, stateful=False))
    kept = next(action for action in plan.actions if action.name == CHANGELOG)
    note = "the topology no longer has it; it stays unless `leftovers` retires it"
    assert kept == TopicAction(
        kind=ActionKind.KEEP,
        name=CHANGELOG,
        live=live,
        partitions=9,
        config=live.config,
        replication_factor=2,
        note=note,
    )
    del cluster.topics[CHANGELOG]
    plan = cluster.plan(application(config=MANUAL, stateful=False))
    gone = next(action for action in plan.actions if action.name == CHANGELOG)
    assert gone == TopicAction(
        kind=ActionKind.RELEASE,
        name=CHANGELOG,
        partitions=4,
        config={},
        replication_factor=-1,
        note="no longer on the cluster: removed from the record",
    )


def test_a_topic_that_the_topology_no_longer_has_keeps_its_kind_in_the_record() -> None:
    cluster = SimulatedCluster.set_up(application(config=MANUAL, sink=WITH_SINK))
    cluster.up(application(config=MANUAL, stateful=False))
    kept = {name: topic.is_sink for name, topic in cluster.records["orders"].topics.items()}
    assert kept == {REPARTITION: False, CHANGELOG: False, SINK: True}


def test_the_record_contains_where_the_topics_are_from() -> None:
    generated = "orders-KSTREAM-AGGREGATE-STATE-STORE-0000000003-changelog"
    topics = [repartition(REPARTITION, 4), attrs.evolve(changelog(generated, 4), generated=True)]
    compiled = application(topics=topics)
    record = SimulatedCluster.set_up(compiled).records["orders"]
    assert record.generated == {generated}
    assert record.origins == origin_digests(compiled)
    assert record.origins


@pytest.mark.parametrize(
    ("change", "processors"),
    [({}, 4), ({"subtopologies": ()}, 1), ({"is_observed": True}, 0)],
    ids=["tasks", "no tasks", "not known"],
)
def test_the_initial_processors_are_the_tasks_of_the_first_setup(
    change: dict[str, Any], processors: int
) -> None:
    [part] = SimulatedCluster().plan(attrs.evolve(application(), **change)).applications
    assert part.record is not None
    assert part.record.initial_processors == processors


def test_a_topic_that_the_topology_no_longer_has_is_released_after_its_deletion() -> None:
    cluster = SimulatedCluster.set_up(application(config=MANUAL))
    cluster.up(application(config=MANUAL, stateful=False))
    del cluster.topics[CHANGELOG]
    assert kinds(cluster.up(application(config=MANUAL, stateful=False)))[CHANGELOG] is ActionKind.RELEASE
    assert CHANGELOG not in cluster.records["orders"].topics
    assert kinds(cluster.plan(application(config=MANUAL)))[CHANGELOG] is ActionKind.CREATE


def test_new_topics_of_a_changed_topology_are_created_in_manual_mode() -> None:
    cluster = SimulatedCluster.set_up(application(config=MANUAL, stateful=False))
    assert kinds(cluster.up(application(config=MANUAL)))[CHANGELOG] is ActionKind.CREATE


def test_a_new_topic_that_already_exists_must_be_adopted() -> None:
    cluster = SimulatedCluster.set_up(application(config=MANUAL, stateful=False))
    cluster.create(CHANGELOG, 4, COMPACTED)
    assert codes(cluster.plan(application(config=MANUAL))) == [ProblemCode.INTERNAL_TOPICS_ALREADY_SETUP]


def test_the_next_run_completes_an_interrupted_first_run() -> None:
    cluster = SimulatedCluster()
    compiled = application(config=MANUAL)
    cluster.create(REPARTITION, 4, compiled.internal_topics[0].config)
    cluster.records["orders"] = SetupRecord("orders", {}, 0, unfinished=True)
    plan = cluster.up(compiled)
    assert not plan.problems
    assert set(cluster.topics) == {REPARTITION, CHANGELOG}
    assert not cluster.records["orders"].unfinished
    assert cluster.records["orders"].initial_processors == 4
    assert not cluster.plan(compiled).has_changes


def test_topics_of_an_interrupted_later_run_are_not_reported_as_lost() -> None:
    cluster = SimulatedCluster.set_up(application(config=MANUAL, stateful=False))
    record = cluster.records["orders"]
    recorded = {**record.topics, CHANGELOG: RecordedTopic(CHANGELOG, "", 4)}
    cluster.records["orders"] = attrs.evolve(record, topics=recorded)
    plan = cluster.up(application(config=MANUAL))
    assert not plan.problems
    assert kinds(plan)[CHANGELOG] is ActionKind.CREATE
