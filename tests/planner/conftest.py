"""Two stacks on one simulated cluster."""

import pytest

from tests.planner.simulated_stacks import Cluster, Stack


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def first(cluster: Cluster) -> Stack:
    return Stack.on(cluster, "first")


@pytest.fixture
def second(cluster: Cluster) -> Stack:
    return Stack.on(cluster, "second")
