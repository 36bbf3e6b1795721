"""Whether a running application reads the topics of its document."""

import attrs
import pytest

from headwater.model.cluster import ClusterSnapshot, LiveGroup
from headwater.model.problems import Problem, ProblemCode
from headwater.model.records import SetupRecord
from headwater.model.topology import Lifecycle
from headwater.planner import PlanPolicy
from headwater.planner.run import OtherSubscription, Run, expected_cluster, other_subscription
from tests.planner.simulated_cluster import REPARTITION, application

READ = frozenset({"orders-in", REPARTITION})
GROUP = LiveGroup("orders", "Stable", 1, assignor="stream", subscribed=READ)


def test_the_declared_topics_are_no_difference() -> None:
    assert other_subscription(application(), GROUP) is None


def test_topics_of_one_side_are_named() -> None:
    group = attrs.evolve(GROUP, subscribed=frozenset({"orders-in", "old-a", "old-b"}))
    assert other_subscription(application(), group) == OtherSubscription((REPARTITION,), ("old-a", "old-b"))


@pytest.mark.parametrize(
    "group",
    [
        attrs.evolve(GROUP, assignor="range", subscribed=frozenset({"x"})),
        attrs.evolve(GROUP, subscribed=frozenset()),
    ],
    ids=["other assignor", "joining"],
)
def test_what_a_group_does_not_show_is_not_compared(group: LiveGroup) -> None:
    assert other_subscription(application(), group) is None


def test_patterns_observed_topics_and_errors_are_not_compared() -> None:
    group = attrs.evolve(GROUP, subscribed=frozenset({"x"}))
    compiled = application()
    first, *parts = compiled.subtopologies
    pattern = attrs.evolve(first, source_patterns=("in-.*",))
    problem = Problem(code=ProblemCode.MISSING_SOURCE_TOPIC, summary="It is missing.")
    assert other_subscription(compiled, group) is not None
    assert other_subscription(attrs.evolve(compiled, subtopologies=(pattern, *parts)), group) is None
    assert other_subscription(attrs.evolve(compiled, is_observed=True), group) is None
    assert other_subscription(attrs.evolve(compiled, problems=(problem,)), group) is None


def test_global_stores_have_consumers_without_a_group() -> None:
    compiled = application()
    *parts, last = compiled.subtopologies
    only_global = attrs.evolve(last, is_global=True, sources=("rates",))
    group = attrs.evolve(GROUP, subscribed=frozenset({"orders-in"}))
    assert other_subscription(attrs.evolve(compiled, subtopologies=(*parts, only_global)), group) is None


def record(id_: str, cluster_id: str = "c1", *, retired: bool = False) -> SetupRecord:
    return SetupRecord(id_, {}, cluster_id=cluster_id, retired=retired)


@pytest.mark.parametrize(
    ("recorded", "declared", "expected"),
    [
        ((), "", "found"),
        (("found",), "", "found"),
        (("other",), "", "other"),
        (("found", "other"), "", "other"),
        (("", "found"), "", "found"),
        (("other",), "declared", "declared"),
    ],
)
def test_a_declared_cluster_has_priority_over_recorded_ones(
    recorded: tuple[str, ...], declared: str, expected: str
) -> None:
    records = {f"app-{number}": record(f"app-{number}", id_) for number, id_ in enumerate(recorded)}
    assert expected_cluster(records, PlanPolicy(cluster_id=declared), "found") == expected


def test_records_are_sorted_by_what_happens_to_their_applications() -> None:
    compiled = (
        application(id_="active"),
        application(id_="released", lifecycle=Lifecycle.RELEASED),
        application(id_="retiring", lifecycle=Lifecycle.RETIRED),
        application(id_="new-id", renamed_from="old-id"),
        application(id_="never-set-up", lifecycle=Lifecycle.RELEASED),
    )
    ids = ("active", "released", "retiring", "old-id", "removed")
    records = {id_: record(id_) for id_ in ids} | {"deleted": record("deleted", retired=True)}
    run = Run(compiled, (), ClusterSnapshot("c1", 1), records, PlanPolicy())

    def found(chosen: tuple[SetupRecord, ...]) -> list[str]:
        return [each.application_id for each in chosen]

    assert found(run.released) == ["old-id", "released"]
    assert found(run.retiring) == ["retiring"]
    assert found(run.removed) == ["deleted", "removed"]
    assert found(run.deleted) == ["deleted"]
    assert found(run.retired) == ["retiring", "deleted"]


def test_an_id_that_is_used_again_is_not_released() -> None:
    compiled = (application(id_="new-id", renamed_from="old-id"), application(id_="old-id"))
    run = Run(compiled, (), ClusterSnapshot("c1", 1), {"old-id": record("old-id")}, PlanPolicy())
    assert run.released == ()
