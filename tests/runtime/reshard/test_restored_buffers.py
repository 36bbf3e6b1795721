"""What Kafka Streams restores of the buffer of a join with a versioned table: nothing that it finds again.

It reads the keys of the changelog topic as if they were in another layout
(`RocksDBTimeOrderedKeyValueBytesStore.getWriteBatches`).
"""

from collections.abc import Callable, Sequence
from functools import partial

import pytest

from headwater.toolchain.broker.local import LocalBroker
from headwater.toolchain.broker.readiness import until
from tests.oracle.running_application import running_application
from tests.runtime.reshard.compared_applications import START_MS, Compared, versions_and_buffer
from tests.runtime.spark.kafka_topics import Topics

pytestmark = [pytest.mark.broker, pytest.mark.oracle, pytest.mark.soak, pytest.mark.timeout(600)]

_SECONDS = 120.0
_MINUTE = 60_000
"""The grace period is 10 s: each record evicts those that are older by a minute."""


@pytest.mark.parametrize("other", [b"k1", b"customer-10"])
def test_kafka_streams_loses_buffered_records_that_it_restores(
    other: bytes, kafka: LocalBroker, unique: Callable[[str], str]
) -> None:
    """No topic gets more partitions. Both applications are started twice, without their local state."""
    servers, counts = kafka.bootstrap_servers, {"orders": 1, "prices": 1}
    compared = Compared(servers, Topics(servers), unique, versions_and_buffer(), counts, counts)
    key_of = dict(zip(compared.names, (b"k10", other), strict=True))
    for name, key in key_of.items():
        compared.put(name, {"prices": [(key, b"a:1", START_MS - 1)]})

    def process(minutes: Sequence[int]) -> dict[bytes, list[int]]:
        """Process a record for each minute; return key → minutes of all joined records."""
        for name, key in key_of.items():
            compared.put(name, {"orders": [(key, b"b:1", START_MS + each * _MINUTE) for each in minutes]})
        with running_application(servers, *map(compared.json, compared.names)):
            for name in compared.names:
                assert until(partial(compared.is_processed, name), _SECONDS)
        return {
            key: [(record[3] - START_MS) // _MINUTE for record in compared.topics.get(f"{name}.out-late")]
            for name, key in key_of.items()
        }

    assert process([0, 1]) == {b"k10": [0], other: [0]}
    # The last record waits again. With the other key, none waits: the stream time is in the far future.
    assert process([2, 3]) == {b"k10": [0, 2], other: [0, 2, 3]}
    (place,) = [place for place in compared.entries(compared.moved) if place[0] == "late-Buffer"]
    assert len(compared.entries(compared.moved)[place]) == 2, "the record of minute 1 is still there"
