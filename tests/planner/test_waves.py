"""Expansion waves: downstream topics first, within and across applications."""

from headwater.model.compiled import CompiledApplication
from headwater.model.topology import Sink
from headwater.planner.waves import wave_numbers
from tests.planner.simulated_cluster import SimulatedCluster, application


def test_waves_are_numbered_from_the_end_of_the_topology() -> None:
    compiled = application(steps=3)
    expanded = [topic.name for topic in compiled.internal_topics]
    assert wave_numbers([compiled], expanded) == {
        "orders-counts-changelog": 0,
        "orders-step3-repartition": 1,
        "orders-step2-repartition": 2,
        "orders-step1-repartition": 3,
    }


def test_wave_numbers_have_no_gaps() -> None:
    compiled = application(steps=3)
    assert wave_numbers([compiled], ["orders-step3-repartition", "orders-step1-repartition"]) == {
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
    numbers = wave_numbers(cycle, ["start", "x", "y"])
    assert numbers["start"] > min(numbers["x"], numbers["y"])
    assert numbers == wave_numbers(reversed(cycle), ["y", "x", "start"])


def test_a_cycle_is_cut_after_the_topic_that_is_farthest_from_the_sources() -> None:
    cycle = [
        application(id_="first", stateful=False, sources={"a": 1, "start": 1}, steps=0, sink=Sink("z", 1)),
        application(id_="second", stateful=False, sources={"z": 1}, steps=0, sink=Sink("a", 1)),
    ]
    assert wave_numbers(cycle, ["start", "a", "z"]) == {"a": 0, "z": 1, "start": 2}


def test_a_topic_of_several_readers_comes_after_the_topics_of_all() -> None:
    readers = [
        application(id_="long", sources={"mid": 1}, steps=2),
        application(id_="short", sources={"mid": 1}),
    ]
    for order in (readers, readers[::-1]):
        growing = [topic.name for each in readers for topic in each.internal_topics]
        numbers = wave_numbers(order, ["mid", *growing])
        assert numbers["mid"] == 3
        assert max(numbers[name] for name in growing) == 2


def test_a_topic_that_no_application_knows_is_expanded_first() -> None:
    numbers = wave_numbers(
        [application()], ["unknown", "orders-counts-changelog", "orders-step1-repartition"]
    )
    assert numbers == {"unknown": 0, "orders-counts-changelog": 0, "orders-step1-repartition": 1}


def test_a_very_long_topology_does_not_exceed_the_recursion_limit() -> None:
    compiled = application(steps=3_000)
    expanded = [topic.name for topic in compiled.internal_topics]
    assert wave_numbers([compiled], expanded)["orders-step1-repartition"] == 3_000
