"""One secured cluster, and one JVM for real Kafka Streams applications, for all tests of ACLs."""

from collections.abc import Callable
from contextlib import ExitStack
from functools import cache
from pathlib import Path

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


_FOLDER = Path(__file__).parent
_STARTED = ExitStack()
"""What the tests of this folder have started: it ends after the last of them.

At the end of the session, it would have taken 2 % of a processor for the whole time.
"""


@cache
def _start_cluster(own_broker: Callable[..., Broker]) -> SecuredCluster:
    settings = Settings(
        sasl_users=(APPLICATION, HEADWATER), authorizer=True, overrides=STREAMS_PROTOCOL, heap_mb=384
    )
    return SecuredCluster(_STARTED.enter_context(own_broker(settings)))


@cache
def _start_streams() -> StreamsProcess:
    streams_process = StreamsProcess()
    _STARTED.callback(streams_process.close)
    return streams_process


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    if nextitem is None or _FOLDER not in nextitem.path.parents:
        _STARTED.close()
        _start_cluster.cache_clear()
        _start_streams.cache_clear()


@pytest.fixture(scope="module")
def secured_cluster(own_broker: Callable[..., Broker]) -> SecuredCluster:
    return _start_cluster(own_broker)


@pytest.fixture(scope="module")
def streams_process() -> StreamsProcess:
    return _start_streams()
