"""Which applications of a run are released, retired or removed, and which cluster it belongs to."""

import pytest

from headwater.model.cluster import ClusterSnapshot
from headwater.model.records import SetupRecord
from headwater.model.topology import Lifecycle
from headwater.planner import PlanPolicy
from headwater.planner.run import Run, expected_cluster
from tests.planner.simulated_cluster import application


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
