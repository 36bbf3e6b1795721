from collections.abc import Iterator

import pytest

from tests.oracle.kafka_streams import KafkaStreams


@pytest.fixture(scope="session")
def kafka_streams() -> Iterator[KafkaStreams]:
    oracle = KafkaStreams()
    yield oracle
    oracle.close()
