"""Which configs are refused offline is what Kafka Streams refuses when an application starts.

The table is compared with the `ConfigDef`s of all versions, our verdicts with the real constructors.
"""

import os
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import headwater.compiler.configs
from headwater.compiler.configs.check import find_refusals
from headwater.compiler.configs.table import known_keys
from headwater.compiler.version_differences import has_config
from headwater.model.versions import SUPPORTED, KafkaStreamsVersion
from headwater_spark.engine.program.config_support import SUPPORT
from tests.oracle.config_answers import ANSWERS, answers_text, collect_answers, tried_configs
from tests.oracle.config_table import generated
from tests.oracle.config_values import comparable_configs, random_configs
from tests.oracle.kafka_streams import KafkaStreams

pytestmark = [pytest.mark.oracle, pytest.mark.timeout(900)]  # it may compile a program for each version
_TABLE = Path(headwater.compiler.configs.__file__).parent / "kafka_configs.json"
_VERSIONS = pytest.mark.parametrize("version", SUPPORTED, ids=str)
_STEP = 7
"""Of the systematic values `make test` tries one in seven with Kafka."""

Oracles = Callable[[str], KafkaStreams]


def test_the_table_is_that_of_kafka(kafka_streams_of: Oracles) -> None:
    tables = {version.release: kafka_streams_of(str(version)).config_tables() for version in SUPPORTED}
    if "UPDATE_GOLDEN" in os.environ:
        _TABLE.write_text(generated(tables), encoding="utf-8")
    assert _TABLE.read_text(encoding="utf-8") == generated(tables)


@_VERSIONS
def test_values_are_refused_as_by_kafka(version: KafkaStreamsVersion, kafka_streams_of: Oracles) -> None:
    tried = tried_configs(version)[::_STEP]
    assert _differences(tried, version, kafka_streams_of(str(version))) == []


@_VERSIONS
def test_combinations_are_refused_as_by_kafka(
    version: KafkaStreamsVersion, kafka_streams_of: Oracles
) -> None:
    tried = list(_random_series(version, seed=7, length=500))
    assert _differences(tried, version, kafka_streams_of(str(version))) == []


@pytest.mark.soak
def test_the_recorded_answers_are_those_of_kafka(kafka_streams_of: Oracles) -> None:
    answers = {}
    for version in SUPPORTED:
        refusals = kafka_streams_of(str(version)).config_refusals(tried_configs(version))
        answers[version.release] = collect_answers(version, [refusal is not None for refusal in refusals])
    if "UPDATE_GOLDEN" in os.environ:
        ANSWERS.write_text(answers_text(answers), encoding="utf-8")
    assert ANSWERS.read_text(encoding="utf-8") == answers_text(answers)


@pytest.mark.soak
@_VERSIONS
def test_long_series_of_combinations(version: KafkaStreamsVersion, kafka_streams_of: Oracles) -> None:
    oracle = kafka_streams_of(str(version))
    for seed in range(20):
        assert _differences(list(_random_series(version, seed, length=5_000)), version, oracle) == []


_PAIRS = st.dictionaries(
    st.sampled_from(sorted(known_keys())),
    st.text(max_size=8)
    | st.integers().map(str)
    | st.floats().map(str)
    | st.text("0123456789+-._eE \t", max_size=6),
    min_size=1,
    max_size=1,
)


@pytest.mark.soak
@_VERSIONS
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(tried=st.lists(_PAIRS, min_size=50, max_size=200))
def test_random_texts(
    version: KafkaStreamsVersion, kafka_streams_of: Oracles, tried: list[dict[str, str]]
) -> None:
    own = (
        "internal.topics",
        "partition.autoscaling",
        "static.partitioner",
        "uncaught.",
        "__",
        "replication.f",
    )
    compared = [
        configs for configs in tried if not any(key.startswith((*own, "application.id")) for key in configs)
    ]
    oracle = kafka_streams_of(str(version))
    refusals = oracle.config_refusals(compared)
    for configs, refusal in zip(compared, refusals, strict=True):
        if refusal is None or "could not be found" not in refusal[1]:  # whether a class exists is not known
            assert bool(refusal) == bool(list(find_refusals(configs, version))), (configs, refusal)


def _random_series(version: KafkaStreamsVersion, seed: int, length: int) -> Iterator[dict[str, str]]:
    source, keys = random.Random(seed), comparable_configs(version)  # noqa: S311 - no secret
    return (random_configs(source, keys) for _ in range(length))


def _differences(
    tried: Sequence[Mapping[str, str]], version: KafkaStreamsVersion, oracle: KafkaStreams
) -> list[tuple[Mapping[str, str], object, list[str]]]:
    refusals = oracle.config_refusals(tried)
    ours = [[refusal.summary for refusal in find_refusals(configs, version)] for configs in tried]
    assert any(ours)
    assert not all(ours)
    return [
        (configs, refusal, summaries)
        for configs, refusal, summaries in zip(tried, refusals, ours, strict=True)
        if bool(refusal) != bool(summaries)
    ]


@pytest.mark.oracle
@pytest.mark.timeout(0)
def test_each_config_is_classified(kafka_streams_of: Callable[[str], KafkaStreams]) -> None:
    known = {version: kafka_streams_of(str(version)).config_keys() for version in SUPPORTED}
    assert frozenset[str]().union(*known.values()) == SUPPORT.keys()
    missing = {
        (key, str(version)) for version in known for key in known[version] if not has_config(key, version)
    }
    assert not missing
