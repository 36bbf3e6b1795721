"""The time to plan thousands of topics."""

import time

import pytest

from tests.planner.simulated_cluster import AUTOSCALING, SimulatedCluster, application


@pytest.mark.parametrize("expanded", [False, True], ids=["unchanged", "expanded"])
def test_five_thousand_topics_are_planned_within_a_second(*, expanded: bool) -> None:
    documents = [application(id_=f"app{n}", config=AUTOSCALING, steps=9) for n in range(500)]
    cluster = SimulatedCluster.set_up(*documents)
    if expanded:
        sources = {"orders-in": 6}
        documents = [
            application(id_=f"app{n}", config=AUTOSCALING, steps=9, sources=sources) for n in range(500)
        ]
    start = time.process_time()
    plan = cluster.plan(*documents)
    seconds = time.process_time() - start
    assert len(list(plan.actions)) == 5_000
    assert plan.has_changes is expanded
    assert seconds < 1
