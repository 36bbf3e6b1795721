"""A fixed number of processors: first setup, growth of the inputs, and what is refused (KIP-287)."""

from collections.abc import Mapping

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.model.linear_hashing import bucket_of
from headwater.model.problems import APPLICATION, ProblemCode
from headwater.model.topology import Setup
from headwater.planner import ActionKind, plan
from headwater.report.plan_text import plan_text
from tests.planner.application_with_processors import (
    CHANGELOG,
    GROWING,
    REPARTITION,
    codes,
    declared,
    partitions,
)
from tests.planner.simulated_cluster import AUTOSCALING, MANUAL, NO_LIMITS, SimulatedCluster, application


def test_the_first_setup_records_the_initial_processors_of_each_input() -> None:
    cluster = SimulatedCluster.set_up(declared(2, 2))
    assert partitions(cluster) == {REPARTITION: 2, CHANGELOG: 2}
    assert cluster.records["orders"].initial == {REPARTITION: 2}
    assert not cluster.plan(declared(2, 2)).has_changes


def test_nothing_is_recorded_without_a_number() -> None:
    assert SimulatedCluster.set_up(declared(None, 2)).records["orders"].initial == {}


@pytest.mark.parametrize("processors", [1, 3])
def test_the_first_setup_requires_as_many_processors_as_partitions(processors: int) -> None:
    planned = SimulatedCluster().plan(declared(processors, 2))
    assert codes(planned) == [ProblemCode.PROCESSOR_COUNT]
    assert planned.problems[0].fix.startswith("Set `processors: 2`.")


def test_doubled_inputs_grow_the_repartition_topics_and_not_the_changelogs() -> None:
    cluster = SimulatedCluster.set_up(declared(2, 2))
    for count in (4, 8, 16):
        planned = cluster.up(declared(2, count))
        assert not planned.problems
        assert {action.name for action in planned.actions if action.added_partitions} == {REPARTITION}
        assert partitions(cluster) == {REPARTITION: count, CHANGELOG: 2}
        assert cluster.records["orders"].initial == {REPARTITION: 2}


def test_the_plan_shows_processors_and_partitions() -> None:
    cluster = SimulatedCluster.set_up(declared(2, 2))
    planned = cluster.plan(declared(2, 4))
    assert planned.applications[0].notes == ("sub-topology 1: 2 processors for 4 partitions",)
    assert "orders: sub-topology 1: 2 processors for 4 partitions" in plan_text(planned)


@pytest.mark.parametrize("count", [3, 5, 6, 12])
def test_other_counts_are_refused(count: int) -> None:
    cluster = SimulatedCluster.set_up(declared(2, 2))
    planned = cluster.plan(declared(2, count))
    assert codes(planned) == [ProblemCode.UNSAFE_EXPANSION]
    assert "2, 4, 8, 16" in (planned.problems[0].expected or "")


def test_other_counts_of_inputs_without_internal_topics_are_refused_too() -> None:
    cluster = SimulatedCluster.set_up(declared(2, 2, steps=0))
    assert codes(cluster.plan(declared(2, 3, steps=0))) == [ProblemCode.UNSAFE_EXPANSION]
    assert not cluster.plan(declared(2, 4, steps=0)).problems


def test_other_counts_are_accepted_with_a_static_partitioner() -> None:
    cluster = SimulatedCluster.set_up(declared(2, 2, AUTOSCALING))
    cluster.up(declared(2, 3, AUTOSCALING))
    assert partitions(cluster) == {REPARTITION: 3, CHANGELOG: 2}


def test_other_counts_are_accepted_with_linear_hashing() -> None:
    config = {**GROWING, "static.partitioner.class": "linear-hash"}
    cluster = SimulatedCluster.set_up(declared(2, 2, config))
    cluster.up(declared(2, 3, config))
    assert partitions(cluster) == {REPARTITION: 3, CHANGELOG: 2}


def test_linear_hashing_without_processors_is_no_static_partitioner() -> None:
    config = {**GROWING, "static.partitioner.class": "linear-hash"}
    cluster = SimulatedCluster.set_up(declared(None, 2, config))
    assert codes(cluster.plan(declared(None, 4, config))) == [ProblemCode.UNSAFE_EXPANSION]


def test_other_counts_can_be_forced() -> None:
    cluster = SimulatedCluster.set_up(declared(2, 2))
    cluster.up(declared(2, 3, setup=Setup(allow_unsafe_expansion=True)))
    assert partitions(cluster) == {REPARTITION: 3, CHANGELOG: 2}


def test_an_application_that_was_set_up_without_a_number_gets_the_count_of_its_changelogs() -> None:
    cluster = SimulatedCluster.set_up(declared(None, 2))
    refused = cluster.plan(declared(None, 4))
    assert codes(refused) == [ProblemCode.UNSAFE_EXPANSION]
    assert "`processors: 2`: keys stay with their state" in refused.problems[0].fix
    cluster.up(declared(2, 4))
    assert partitions(cluster) == {REPARTITION: 4, CHANGELOG: 2}
    assert cluster.records["orders"].initial == {REPARTITION: 2}


def test_the_way_out_names_the_next_count_that_keeps_keys() -> None:
    cluster = SimulatedCluster.set_up(declared(None, 2))
    [problem] = cluster.plan(declared(None, 3)).problems
    assert "expand the source topics to 4 partitions and set " in problem.fix


def test_adopted_topics_keep_their_number() -> None:
    """The initial number survives the loss of the stack: the changelogs show it."""
    cluster = SimulatedCluster.set_up(declared(2, 2))
    cluster.up(declared(2, 4))
    cluster.records.clear()
    [problem] = cluster.plan(declared(4, 4)).problems
    assert (problem.code, problem.found) == (ProblemCode.PROCESSOR_COUNT, "2 processors")
    cluster.up(declared(2, 4))
    assert cluster.records["orders"].initial == {REPARTITION: 2}


def test_the_number_can_be_removed_while_each_partition_has_its_processor() -> None:
    cluster = SimulatedCluster.set_up(declared(2, 2))
    cluster.up(declared(None, 2))
    assert cluster.records["orders"].initial == {}


@pytest.mark.parametrize("config", [GROWING, MANUAL, AUTOSCALING], ids=["growing", "manual", "static"])
def test_the_number_cannot_be_removed_after_partitions_were_added(config: Mapping[str, str]) -> None:
    cluster = SimulatedCluster.set_up(declared(2, 2, config))
    cluster.change(REPARTITION, partitions=4)
    assert codes(cluster.plan(declared(None, 4, config))) == [ProblemCode.PROCESSOR_COUNT]


def test_the_number_can_be_removed_by_force() -> None:
    cluster = SimulatedCluster.set_up(declared(2, 2))
    cluster.up(declared(2, 4))
    cluster.up(declared(None, 4, setup=Setup(allow_unsafe_expansion=True)))
    assert partitions(cluster) == {REPARTITION: 4, CHANGELOG: 4}
    assert cluster.records["orders"].initial == {}


def test_an_application_without_its_state_starts_again_with_another_number() -> None:
    manual = {**MANUAL, **GROWING}
    cluster = SimulatedCluster.set_up(declared(2, 2, manual))
    del cluster.topics[CHANGELOG]
    again = declared(4, 4, manual, Setup(reinitialize=True))
    cluster.up(again)
    assert partitions(cluster) == {REPARTITION: 4, CHANGELOG: 4}
    assert cluster.records["orders"].initial == {REPARTITION: 4}


def test_a_lost_changelog_is_created_again_with_the_number_of_processors() -> None:
    cluster = SimulatedCluster.set_up(declared(2, 2))
    cluster.up(declared(2, 4))
    del cluster.topics[CHANGELOG]
    cluster.up(declared(2, 4))
    assert partitions(cluster)[CHANGELOG] == 2
    assert cluster.records["orders"].initial == {REPARTITION: 2}


def test_a_sub_topology_that_is_added_later_starts_with_the_number_of_the_application() -> None:
    cluster = SimulatedCluster.set_up(declared(2, 2))
    cluster.up(declared(2, 4))
    grown, added = declared(2, 4), declared(2, 4, steps=2)
    parts = (
        *grown.subtopologies,
        attrs.evolve(added.subtopologies[2], changelog_topics=("orders-x-changelog",)),
    )
    counts = added.internal_topics[-1]
    topics = (*grown.internal_topics, added.internal_topics[1])
    extended = attrs.evolve(
        grown, subtopologies=parts, internal_topics=(*topics, attrs.evolve(counts, name="orders-x-changelog"))
    )
    cluster.up(extended)
    assert partitions(cluster)["orders-x-changelog"] == 2
    assert cluster.records["orders"].initial == {REPARTITION: 2, "orders-step2-repartition": 2}


def test_the_number_is_remembered_while_the_topology_has_no_state() -> None:
    cluster = SimulatedCluster.set_up(declared(2, 2))
    cluster.up(application(processors=2, sources={"orders-in": 2}, config=GROWING, stateful=False))
    assert cluster.records["orders"].initial == {REPARTITION: 2}
    cluster.up(declared(2, 4))
    assert partitions(cluster) == {REPARTITION: 4, CHANGELOG: 2}


def test_a_changelog_that_another_client_expanded_is_refused() -> None:
    cluster = SimulatedCluster.set_up(declared(2, 2))
    cluster.change(CHANGELOG, partitions=3)
    planned = cluster.plan(declared(2, 2))
    assert codes(planned) == [ProblemCode.PROCESSOR_COUNT]
    assert planned.problems[0].topic == CHANGELOG


def test_processors_of_a_narrower_input_are_refused() -> None:
    cluster = SimulatedCluster.set_up(declared(4, 4, steps=0))
    assert codes(cluster.plan(declared(4, 2, steps=0))) == [ProblemCode.PROCESSOR_COUNT]


def test_without_a_record_doubled_inputs_may_be_those_of_a_later_setup() -> None:
    """The runtime re-creates a lost changelog with the declared number."""
    snapshot = SimulatedCluster().snapshot
    for count, expected in ((4, []), (6, [ProblemCode.PROCESSOR_COUNT]), (1, [ProblemCode.PROCESSOR_COUNT])):
        planned = plan([declared(2, count)], snapshot, {}, NO_LIMITS, caller=APPLICATION)
        assert codes(planned) == expected


def test_topics_are_kept_if_nothing_grew() -> None:
    cluster = SimulatedCluster.set_up(declared(2, 2))
    assert {action.kind for action in cluster.plan(declared(2, 2)).actions} == {ActionKind.KEEP}


@given(
    st.integers(1, 8),
    st.lists(st.integers(1, 40), max_size=4),
    st.lists(st.integers(0, 2**31 - 1), min_size=1),
)
def test_an_accepted_growth_keeps_each_key_with_its_processor(
    initial: int, counts: list[int], hashes: list[int]
) -> None:
    """KIP-287, goal 1, for every series of expansions that the planner accepts and ordinary producers."""
    cluster = SimulatedCluster.set_up(declared(initial, initial))
    for count in counts:
        planned = cluster.plan(declared(initial, count))
        if not planned.is_applicable:
            continue
        cluster.apply(planned)
        recorded = cluster.records["orders"].initial[REPARTITION]
        live = partitions(cluster)
        for key in hashes:
            processor = bucket_of(key % live[REPARTITION], recorded, live[CHANGELOG])
            assert processor == key % initial
