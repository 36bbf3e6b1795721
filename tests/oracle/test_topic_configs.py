"""Which topic configs are refused offline is what all supported brokers refuse (`LogConfig`)."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import infra.spec
from infra.model.versions import SUPPORTED
from infra.spec.topic_configs import allowed_values, topic_configs
from tests.oracle.kafka_streams import KafkaStreams
from tests.oracle.topic_config_table import generated

pytestmark = pytest.mark.oracle
_TABLE = Path(infra.spec.__file__).parent / "kafka_topic_configs.json"
_TEXTS: tuple[str, ...] = (
    "",
    "yes",
    "TRUE",
    " false ",
    "+5",
    "-0",
    "1e3",
    "0x1",
    "1.5",
    "0.5f",
    ".5",
    "5.",
    "NaN",
    "Infinity",
)
_TEXTS += ("compact", "compact, delete", "compact,", "COMPACT", "bogus", "gzip", "CreateTime", "createtime")
_TEXTS += ("*", "0:1", "0:1, 1:2", "0:1,", "*,0:1", "9" * 30)
_NUMBERS = [
    -(2**63) - 1,
    -(2**63),
    -(2**31) - 1,
    -(2**31),
    -131073,
    -131072,
    *range(-4, 24),
    1048575,
    1048576,
]
_NUMBERS += [2**31 - 1, 2**31, 2**63 - 1, 2**63]


_BROKERS = SUPPORTED[2:]
"""Headwater runs with brokers since 3.9; the program that asks them is of Kafka Streams."""


@pytest.fixture(scope="module")
def brokers(kafka_streams_of: Callable[[str], KafkaStreams]) -> dict[str, KafkaStreams]:
    return {version.release: kafka_streams_of(str(version)) for version in _BROKERS}


def test_the_table_is_that_of_kafka(brokers: dict[str, KafkaStreams]) -> None:
    tables = {release: broker.topic_configs()[0] for release, broker in brokers.items()}
    if "UPDATE_GOLDEN" in os.environ:
        _TABLE.write_text(generated(tables), encoding="utf-8")
    assert _TABLE.read_text(encoding="utf-8") == generated(tables)


def test_values_are_refused_that_no_broker_accepts(brokers: dict[str, KafkaStreams]) -> None:
    texts = (*_TEXTS, *map(str, _NUMBERS))
    tried = [(name, text) for name in topic_configs() for text in texts]
    configs = [{name: text} for name, text in tried]
    refusals = [broker.topic_configs(configs)[1] for broker in brokers.values()]

    ours = {pair for pair in tried if allowed_values(*pair) is not None}
    refused = zip(tried, *refusals, strict=True)
    assert ours == {pair for pair, *by_brokers in refused if None not in by_brokers}


def test_an_unknown_name_is_refused_by_a_broker(brokers: dict[str, KafkaStreams]) -> None:
    for broker in brokers.values():
        (refusal,) = broker.topic_configs([{"no.such.config": "1"}])[1]
        assert refusal is not None
        assert "no.such.config" in refusal
