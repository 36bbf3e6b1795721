"""The runtime says for each config of each supported Kafka Streams whether it implements it."""

from collections.abc import Callable

import pytest

from infra.compiler.configs.table import has_config
from infra.model.versions import SUPPORTED
from spark_jobs.runtime.engine.program.config_support import SUPPORT
from tests.oracle.kafka_streams import KafkaStreams


@pytest.mark.oracle
@pytest.mark.timeout(0)
def test_each_config_is_classified(kafka_streams_of: Callable[[str], KafkaStreams]) -> None:
    every = frozenset[str]()
    for version in SUPPORTED:
        known = kafka_streams_of(str(version)).config_keys()
        assert known <= SUPPORT.keys(), (version, known - SUPPORT.keys())
        missing = {key for key in known if not has_config(key, version)}
        assert not missing, (version, missing)
        every |= known
    assert SUPPORT.keys() == every
