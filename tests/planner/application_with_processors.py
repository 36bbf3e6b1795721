"""A compiled application that declares processors, and what a plan or a cluster has of it."""

from collections.abc import Mapping

from headwater.model.compiled import CompiledApplication
from headwater.model.problems import ProblemCode, errors
from headwater.model.topology import Setup
from headwater.planner import Plan
from tests.planner.simulated_cluster import SimulatedCluster, application

GROWING = {"partition.autoscaling.enabled": "true"}
REPARTITION, CHANGELOG = "orders-step1-repartition", "orders-counts-changelog"


def declared(
    processors: int | None,
    partitions: int,
    config: Mapping[str, str] = GROWING,
    setup: Setup | None = None,
    steps: int = 1,
) -> CompiledApplication:
    return application(
        processors=processors, sources={"orders-in": partitions}, config=config, setup=setup, steps=steps
    )


def codes(planned: Plan) -> list[ProblemCode]:
    return [problem.code for problem in errors(planned.problems)]


def partitions(cluster: SimulatedCluster) -> dict[str, int]:
    return {name: topic.partitions for name, topic in cluster.topics.items()}
