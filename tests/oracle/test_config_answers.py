"""Configs are refused as Kafka's recorded answers say.

`test_configs.py` records them, and compares more values with Kafka itself.
"""

import pytest

from headwater.compiler.configs.check import find_refusals
from headwater.model.versions import SUPPORTED, KafkaStreamsVersion
from tests.oracle.config_answers import collect_answers, recorded_answers, tried_configs


@pytest.mark.slow  # 15,000 values of each version
@pytest.mark.parametrize(
    "version",
    [
        SUPPORTED[0],
        *(pytest.param(version, marks=pytest.mark.soak) for version in SUPPORTED[1:-1]),
        SUPPORTED[-1],
    ],
    ids=str,
)
def test_values_are_refused_as_recorded(version: KafkaStreamsVersion) -> None:
    refused = [bool(find_refusals(configs, version)) for configs in tried_configs(version)]
    assert collect_answers(version, refused) == recorded_answers(version)
