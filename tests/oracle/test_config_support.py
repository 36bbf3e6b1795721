"""The runtime says for each config of each supported Kafka Streams whether it implements it."""

from collections.abc import Callable

import pytest

from headwater.compiler.version_differences import has_config
from headwater.model.versions import SUPPORTED
from headwater_spark.engine.program.config_support import SUPPORT
from tests.oracle.kafka_streams import KafkaStreams


@pytest.mark.oracle
@pytest.mark.timeout(0)
def test_each_config_is_classified(kafka_streams_of: Callable[[str], KafkaStreams]) -> None:
    known = {version: kafka_streams_of(str(version)).config_keys() for version in SUPPORTED}
    assert frozenset[str]().union(*known.values()) == SUPPORT.keys()
    missing = {
        (key, str(version)) for version in known for key in known[version] if not has_config(key, version)
    }
    assert not missing
