"""One secured cluster, and one JVM for real Kafka Streams applications, for all tests of ACLs."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
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
_USING_MODULES: list[str] = []
"""A module keeps its fixtures while its last test, which has failed, runs again."""


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
    is_last = nextitem is None or _FOLDER not in nextitem.path.parents
    if is_last and not _USING_MODULES:
        _STARTED.close()
        _start_cluster.cache_clear()
        _start_streams.cache_clear()


@contextmanager
def _used_by(module: str) -> Iterator[None]:
    _USING_MODULES.append(module)
    yield
    _USING_MODULES.remove(module)


@pytest.fixture(scope="module")
def secured_cluster(
    own_broker: Callable[..., Broker], request: pytest.FixtureRequest
) -> Iterator[SecuredCluster]:
    with _used_by(request.node.name):
        yield _start_cluster(own_broker)


@pytest.fixture(scope="module")
def streams_process(request: pytest.FixtureRequest) -> Iterator[StreamsProcess]:
    with _used_by(request.node.name):
        yield _start_streams()
