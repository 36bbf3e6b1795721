"""A cluster in memory, and a real one."""

from typing import TYPE_CHECKING

import pytest

from tests.contract.fake_cluster import FakeCluster
from tests.contract.real_cluster import RealCluster

if TYPE_CHECKING:
    from headwater.toolchain.broker.local import LocalBroker


@pytest.fixture(
    params=["memory", pytest.param("broker", marks=[pytest.mark.broker, pytest.mark.every_broker])]
)
def cluster(request: pytest.FixtureRequest) -> FakeCluster | RealCluster:
    if request.param == "memory":
        return FakeCluster()
    broker: LocalBroker = request.getfixturevalue("kafka")
    return RealCluster(broker.bootstrap_servers)
