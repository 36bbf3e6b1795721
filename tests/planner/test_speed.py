"""A plan of thousands of topics must not be noticed."""

import time

import pytest

from tests.planner.simulated_cluster import AUTOSCALING, SimulatedCluster, application


@pytest.mark.parametrize("grown", [False, True], ids=["unchanged", "expanded"])
def test_five_thousand_topics_take_well_under_a_second(*, grown: bool) -> None:
    documents = [application(id_=f"app{n}", config=AUTOSCALING, steps=9) for n in range(500)]
    cluster = SimulatedCluster.set_up(*documents)
    if grown:
        sources = {"orders-in": 6}
        documents = [
            application(id_=f"app{n}", config=AUTOSCALING, steps=9, sources=sources) for n in range(500)
        ]
    start = time.process_time()
    plan = cluster.plan(*documents)
    seconds = time.process_time() - start
    assert len(list(plan.actions)) == 5_000
    assert plan.has_changes is grown
    assert seconds < 1
