"""More processors than at the first setup: what a plan accepts, shows and refuses (KIP-287)."""

from collections.abc import Mapping

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.model.linear_hashing import bucket_of
from headwater.model.offset_metadata import MoveMark, MovePhase
from headwater.model.problems import APPLICATION, PLAN, ProblemCode, Severity
from headwater.planner import plan
from headwater.planner.drift import FindingKind, find_drift
from tests.planner.application_with_processors import (
    CHANGELOG,
    GROWING,
    REPARTITION,
    codes,
    declared,
    partitions,
)
from tests.planner.simulated_cluster import AUTOSCALING, MANUAL, NO_LIMITS, SimulatedCluster


@pytest.mark.parametrize(
    ("processors", "partitions", "config"),
    [(1, 4, GROWING), (1, 4, MANUAL), (1, 4, AUTOSCALING), (4, 4, AUTOSCALING)],
    ids=["growing", "manual", "static", "more static"],
)
def test_the_number_cannot_change_without_a_move(
    processors: int, partitions: int, config: Mapping[str, str]
) -> None:
    cluster = SimulatedCluster.set_up(declared(2, 2, config))
    cluster.change(REPARTITION, partitions=partitions)
    planned = cluster.plan(declared(processors, partitions, config))
    assert codes(planned) == [ProblemCode.PROCESSOR_COUNT]
    assert "processors: 2" in planned.problems[0].fix
    assert not [action for action in planned.actions if action.added_partitions]


def test_more_processors_are_accepted_when_the_state_has_moved() -> None:
    cluster = SimulatedCluster.set_up(declared(2, 2))
    cluster.up(declared(2, 4))
    cluster.change(CHANGELOG, partitions=4)
    assert codes(cluster.plan(declared(2, 4))) == [ProblemCode.PROCESSOR_COUNT]
    planned = cluster.up(declared(4, 4))
    assert planned.applications[0].notes == ("sub-topology 1: 4 processors for 4 partitions",)
    assert cluster.records["orders"].initial == {REPARTITION: 2}
    for count in (8, 16):
        cluster.up(declared(4, count))
        assert partitions(cluster) == {REPARTITION: count, CHANGELOG: 4}
    assert codes(cluster.plan(declared(4, 20))) == [ProblemCode.UNSAFE_EXPANSION]
    cluster.records.clear()
    cluster.up(declared(4, 16))


@pytest.mark.parametrize("config", [GROWING, MANUAL], ids=["growing", "manual"])
def test_more_processors_are_declared_before_the_application_adds_them(config: Mapping[str, str]) -> None:
    """A run changes nothing of the state: it says how many processors are missing."""
    cluster = SimulatedCluster.set_up(declared(2, 2, config))
    cluster.change(REPARTITION, partitions=4)
    for _ in range(2):
        planned = cluster.up(declared(4, 4, config))
        [problem] = planned.problems
        assert (problem.code, problem.severity) == (ProblemCode.PROCESSOR_COUNT, Severity.WARNING)
        assert (problem.expected, problem.found) == ("4 processors", "2 processors")
        assert planned.applications[0].notes[-1] == "sub-topology 1: 2 of 4 processors for 4 partitions"
        assert partitions(cluster) == {REPARTITION: 4, CHANGELOG: 2}
        assert cluster.records["orders"].initial == {REPARTITION: 2}
    cluster.change(CHANGELOG, partitions=4)
    assert not cluster.up(declared(4, 4, config)).problems


def expanding() -> SimulatedCluster:
    """Return a cluster with 2 processors of 8 partitions, while an expansion to 6 copies."""
    cluster = SimulatedCluster.set_up(declared(2, 2))
    cluster.up(declared(2, 8))
    cluster.change(CHANGELOG, partitions=6)
    cluster.processors["orders"] = 2
    cluster.moves["orders"] = MoveMark(MovePhase.CATCH_UP, 2, 6)
    return cluster


@pytest.mark.parametrize(
    ("processors", "severity", "shown", "fix"),
    [
        (2, Severity.ERROR, 6, "Declare `processors: 6`."),
        (4, Severity.ERROR, 6, "Declare `processors: 6`."),
        (6, Severity.WARNING, 6, "Wait until the application has 6 processors"),
        (8, Severity.WARNING, 8, "Wait until the application has 6 processors"),
    ],
)
def test_a_plan_shows_the_present_number_and_the_target_while_an_expansion_copies(
    processors: int, severity: Severity, shown: int, fix: str
) -> None:
    """The changelog topics have the partitions of the added processors already."""
    planned = expanding().plan(declared(processors, 8))
    [problem] = planned.problems
    assert (problem.code, problem.severity) == (ProblemCode.PROCESSOR_COUNT, severity)
    assert problem.fix.startswith(fix)
    note = planned.applications[0].notes[-1]
    assert note.startswith(f"sub-topology 1: 2 of {shown} processors for 8 partitions")
    assert note.endswith(", being expanded to 6")
    assert "keep" not in note
    assert not [action for action in planned.actions if action.added_partitions]


@pytest.mark.parametrize("processors", [2, 6])
def test_drift_shows_an_expansion_while_it_copies(processors: int) -> None:
    cluster = expanding()
    application = declared(processors, 8)
    found = find_drift([application], cluster.snapshot, cluster.records)
    [finding] = found.findings
    assert finding.topic == CHANGELOG
    if processors == 6:
        assert finding.kind is FindingKind.UNDER_PARTITIONED
        assert (finding.expected, finding.found) == ("6 processors", "2 processors")
    else:
        assert finding.what == "orders is being expanded from 2 to 6 processors."


@pytest.mark.parametrize(
    ("records", "estimate"),
    [
        (1_234_567, "about 1.2 million changelog records to read (about 20 seconds)"),
        (1_600_000, "about 1.6 million changelog records to read (about 20 seconds)"),
        (1_600_001, "about 1.6 million changelog records to read (about 30 seconds)"),
        (345_678, "about 350,000 changelog records to read (about 10 seconds)"),
        (12, "about 12 changelog records to read (about 10 seconds)"),
        (9_876_543_210, "about 9,900.0 million changelog records to read (about 34.3 hours)"),
    ],
)
def test_a_plan_estimates_what_an_expansion_takes(records: int, estimate: str) -> None:
    cluster = SimulatedCluster.set_up(declared(2, 2))
    cluster.change(REPARTITION, partitions=4)
    cluster.change(CHANGELOG, records=records)
    planned = cluster.plan(declared(4, 4))
    note = "sub-topology 1: 2 of 4 processors for 4 partitions"
    assert planned.applications[0].notes == (f"{note}, {estimate}",)
    assert estimate.replace(" to read", " for it") in planned.problems[0].why


def test_nothing_is_estimated_without_numbers_or_state() -> None:
    cluster = SimulatedCluster.set_up(declared(2, 2))
    cluster.change(REPARTITION, partitions=4)
    for records in (None, 0):
        cluster.change(CHANGELOG, records=records)
        planned = cluster.plan(declared(4, 4))
        assert planned.applications[0].notes == ("sub-topology 1: 2 of 4 processors for 4 partitions",)
        assert planned.problems[0].why.endswith("while it runs.")
    cluster.change(CHANGELOG, records=1_000)
    assert cluster.plan(declared(2, 4)).applications[0].notes == (
        "sub-topology 1: 2 processors for 4 partitions",
    )


def test_more_processors_than_partitions_cannot_be_declared() -> None:
    cluster = SimulatedCluster.set_up(declared(2, 2, steps=0))
    assert codes(cluster.plan(declared(4, 2, steps=0))) == [ProblemCode.PROCESSOR_COUNT]


def test_a_changelog_that_lost_partitions_does_not_count_as_an_expansion() -> None:
    cluster = SimulatedCluster.set_up(declared(4, 4))
    cluster.change(CHANGELOG, partitions=2)
    assert codes(cluster.plan(declared(4, 4))) == [ProblemCode.PROCESSOR_COUNT]


def between() -> SimulatedCluster:
    """Return a cluster with 6 processors after 4, for 8 partitions."""
    cluster = SimulatedCluster.set_up(declared(4, 4))
    cluster.up(declared(4, 8))
    cluster.change(CHANGELOG, partitions=6)
    cluster.up(declared(6, 8))
    return cluster


def test_a_number_between_two_doublings_is_accepted_when_the_state_has_moved() -> None:
    cluster = between()
    assert cluster.records["orders"].initial == {REPARTITION: 4}
    [application] = cluster.plan(declared(6, 8)).applications
    assert application.notes == (
        "sub-topology 1: 6 processors for 8 partitions, 2 of them with twice as many keys as the others",
    )
    assert codes(cluster.plan(declared(6, 12))) == [ProblemCode.UNSAFE_EXPANSION]
    cluster.up(declared(6, 16))
    assert partitions(cluster) == {REPARTITION: 16, CHANGELOG: 6}
    assert codes(cluster.plan(declared(4, 16))) == [ProblemCode.PROCESSOR_COUNT]


def test_more_processors_need_as_many_partitions_first() -> None:
    cluster = between()
    [problem] = cluster.plan(declared(9, 8)).problems
    assert problem.code is ProblemCode.PROCESSOR_COUNT
    assert problem.fix.startswith("First expand the source topics to 16 partitions with `processors: 6`.")


def test_without_a_record_the_initial_number_follows_from_the_partitions() -> None:
    cluster = between()
    cluster.records.clear()
    assert codes(cluster.plan(declared(6, 14))) == [ProblemCode.UNSAFE_EXPANSION]
    cluster.up(declared(6, 8))
    assert cluster.records["orders"].initial == {REPARTITION: 4}


def test_a_running_application_knows_the_initial_number_from_its_offsets() -> None:
    cluster = between()
    for initial, expected in ((4, [ProblemCode.UNSAFE_EXPANSION]), (3, []), (6, []), (None, [])):
        known = declared(6, 12)
        known = attrs.evolve(known, application=attrs.evolve(known.application, initial_processors=initial))
        planned = plan([known], cluster.snapshot, {}, NO_LIMITS, caller=APPLICATION)
        assert codes(planned) == expected, initial


def test_a_running_client_that_did_not_add_the_processors_is_to_be_started_again() -> None:
    cluster = SimulatedCluster.set_up(declared(2, 2))
    cluster.up(declared(2, 4))
    cluster.change(CHANGELOG, partitions=4)
    for caller, is_expected in ((APPLICATION, True), (PLAN, False)):
        [problem] = plan([declared(2, 4)], cluster.snapshot, {}, NO_LIMITS, caller=caller).problems
        assert (problem.code, problem.found) == (ProblemCode.PROCESSOR_COUNT, "2 processors")
        assert problem.fix.startswith("If another client of the application adds processors") == is_expected


def test_a_lost_changelog_is_created_again_between_two_doublings() -> None:
    cluster = between()
    del cluster.topics[CHANGELOG]
    cluster.up(declared(6, 8))
    assert partitions(cluster)[CHANGELOG] == 6
    assert cluster.records["orders"].initial == {REPARTITION: 4}


def test_the_example_of_the_kip_with_linear_hashing() -> None:
    """10 partitions and processors, 15 partitions, 15 processors, 18 partitions; the initial number stays."""
    config = {
        **GROWING,
        "static.partitioner.class": "linear-hash",
        "static.partitioner.initial.partitions": "10",
    }
    cluster = SimulatedCluster.set_up(declared(10, 10, config))
    cluster.up(declared(10, 15, config))
    cluster.change(CHANGELOG, partitions=15)
    for count in (15, 18):
        cluster.up(declared(15, count, config))
        assert partitions(cluster) == {REPARTITION: count, CHANGELOG: 15}
        assert cluster.records["orders"].initial == {REPARTITION: 10}
    for number, expected in (("5", []), ("15", [ProblemCode.UNSAFE_EXPANSION])):
        other = {**config, "static.partitioner.initial.partitions": number}
        assert codes(cluster.plan(declared(15, 18, other))) == expected


def test_processors_that_were_added_need_as_many_partitions_too() -> None:
    cluster = SimulatedCluster.set_up(declared(2, 2, steps=0))
    cluster.up(declared(2, 4, steps=0))
    cluster.change(CHANGELOG, partitions=4)
    cluster.up(declared(4, 4, steps=0))
    assert codes(cluster.plan(declared(4, 2, steps=0))) == [ProblemCode.PROCESSOR_COUNT]


@given(
    st.integers(1, 6),
    st.lists(st.tuples(st.integers(1, 50), st.integers(0, 6)), max_size=4),
    st.lists(st.integers(0, 2**31 - 1), min_size=1),
)
def test_keys_stay_with_their_processors_when_processors_are_added_in_between(
    initial: int, steps: list[tuple[int, int]], hashes: list[int]
) -> None:
    """Partitions and any number of processors in turns, as far as the planner accepts them."""
    cluster, processors = SimulatedCluster.set_up(declared(initial, initial)), initial
    for count, added in steps:
        planned = cluster.plan(declared(processors, count))
        if planned.is_applicable:
            cluster.apply(planned)
        count = partitions(cluster)[REPARTITION]  # noqa: PLW2901 - what was accepted
        processors = min(processors + added, count)
        cluster.change(CHANGELOG, partitions=processors)
        cluster.up(declared(processors, count))
        recorded = cluster.records["orders"].initial[REPARTITION]
        for key in hashes:
            assert bucket_of(key % count, recorded, processors) == bucket_of(key, initial, processors)
