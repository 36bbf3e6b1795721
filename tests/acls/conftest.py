"""One secured cluster, and one JVM for real Kafka Streams applications, for all tests of ACLs."""

from collections.abc import Callable, Iterator

import pytest

from headwater.toolchain.broker import Broker, SaslUser, Settings
from tests.acls.secured_cluster import SecuredCluster
from tests.acls.streams_process import StreamsProcess
from tests.broker_version import has_streams_groups

APPLICATION = SaslUser("orders-app", "orders-secret")
HEADWATER = SaslUser("headwater", "headwater-secret")
STREAMS_PROTOCOL = (
    {
        "group.coordinator.rebalance.protocols": "classic,consumer,streams",
        "unstable.api.versions.enable": "true",
        "unstable.feature.versions.enable": "true",
    }
    if has_streams_groups()
    else {}
)
"""Settings of a broker that can have streams groups."""


@pytest.fixture(scope="session")
def secured_cluster(own_broker: Callable[..., Broker]) -> Iterator[SecuredCluster]:
    settings = Settings(
        sasl_users=(APPLICATION, HEADWATER), authorizer=True, overrides=STREAMS_PROTOCOL, heap_mb=384
    )
    with own_broker(settings) as broker:
        yield SecuredCluster(broker)


@pytest.fixture(scope="session")
def streams_process() -> Iterator[StreamsProcess]:
    streams_process = StreamsProcess()
    yield streams_process
    streams_process.close()
