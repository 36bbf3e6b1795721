"""Expansion waves: downstream topics first, within and across applications."""

from infra.model.compiled import CompiledApplication
from infra.model.topology import Sink
from infra.planner.waves import waves
from tests.planner.simulated_cluster import SimulatedCluster, application


def test_waves_are_numbered_from_the_end_of_the_topology() -> None:
    compiled = application(steps=3)
    expanded = [topic.name for topic in compiled.internal_topics]
    assert waves([compiled], expanded) == {
        "orders-counts-changelog": 0,
        "orders-step3-repartition": 1,
        "orders-step2-repartition": 2,
        "orders-step1-repartition": 3,
    }


def test_wave_numbers_have_no_gaps() -> None:
    compiled = application(steps=3)
    assert waves([compiled], ["orders-step3-repartition", "orders-step1-repartition"]) == {
        "orders-step3-repartition": 0,
        "orders-step1-repartition": 1,
    }


def test_the_reader_of_a_sink_is_expanded_before_its_writer() -> None:
    config = {"partition.autoscaling.enabled": "true"}

    def applications(partitions: int) -> tuple[CompiledApplication, CompiledApplication]:
        writer = application(
            id_="a", config=config, stateful=False, sources={"in": partitions}, sink=Sink("mid", partitions)
        )
        return writer, application(id_="b", config=config, stateful=False, sources={"mid": partitions})

    cluster = SimulatedCluster.set_up(*applications(2))
    plan = cluster.plan(*applications(4))
    assert {action.name: action.wave for action in plan.actions} == {
        "b-step1-repartition": 0,
        "mid": 1,
        "a-step1-repartition": 2,
    }


def test_a_cycle_is_ignored_and_topics_upstream_of_it_come_last() -> None:
    cycle = [
        application(id_="a", stateful=False, sources={"y": 1, "start": 1}, steps=0, sink=Sink("x", 1)),
        application(id_="b", stateful=False, sources={"x": 1}, steps=0, sink=Sink("y", 1)),
    ]
    numbers = waves(cycle, ["start", "x", "y"])
    assert numbers["start"] > min(numbers["x"], numbers["y"])
    assert numbers == waves(reversed(cycle), ["y", "x", "start"])


def test_a_very_long_topology_does_not_exceed_the_recursion_limit() -> None:
    compiled = application(steps=3_000)
    expanded = [topic.name for topic in compiled.internal_topics]
    assert waves([compiled], expanded)["orders-step1-repartition"] == 3_000
