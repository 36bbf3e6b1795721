"""`headwater reshard` and the real Kafka Streams: as if the application had the new count from the start."""

from collections.abc import Callable

import pytest

from headwater.toolchain.broker.local import LocalBroker
from tests.runtime.reshard.compared_applications import Compared, all_stores, batches
from tests.runtime.spark.kafka_topics import Topics

pytestmark = [pytest.mark.broker, pytest.mark.oracle, pytest.mark.timeout(600)]

_COUNTS = {"orders": 2, "payments": 2, "customers": 3, "contracts": 2}
_NEW_COUNTS = {"orders": 5, "payments": 5, "customers": 4, "contracts": 6}


def test_each_kind_of_store_is_as_if_it_had_the_new_count_from_the_start(
    kafka: LocalBroker, unique: Callable[[str], str]
) -> None:
    servers = kafka.bootstrap_servers
    compared = Compared(servers, Topics(servers), unique, all_stores(), _COUNTS, _NEW_COUNTS)
    series = batches(_COUNTS, keys=60, size=150, seed=38)
    first, second = next(series), next(series)
    for name in compared.names:
        compared.put(name, first)
        compared.process(name)

    result = compared.reshard()
    assert result.written
    assert compared.entries(compared.moved) == compared.entries(compared.fresh)
    assert compared.reshard().counts == {}

    written = {name: compared.written(name) for name in compared.names}
    for name in compared.names:
        compared.put(name, second)
        compared.process(name)
    moved, fresh = (compared.outputs(name, written[name]) for name in compared.names)
    assert moved == fresh
    assert compared.entries(compared.moved) == compared.entries(compared.fresh)
