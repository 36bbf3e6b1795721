"""Results that depend on the version of Kafka Streams: the engine writes what the declared version writes."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from headwater.compiler.version_differences import RESULT_DIFFERENCES
from headwater.model.versions import DEFAULT_VERSION, SUPPORTED
from tests.oracle.kafka_streams import KafkaStreams
from tests.runtime.engine.fuzzing.functions import PARTIAL, TOTAL
from tests.runtime.engine.fuzzing.test_data import differences, ours, theirs

Records = list[tuple[str, str | None, int]]
_FIRST_WITH_A_DIFFERENCE = 2_000
_OTHERS = [str(version) for version in SUPPORTED if version != DEFAULT_VERSION]


def _foreign_key(call: str) -> list[dict[str, Any]]:
    return [
        {"table": {"topic": "left", "materialized": "left", "as": "l"}},
        {"table": {"topic": "right", "materialized": "right", "as": "r"}},
        {call: {"from": "l", "with": "r", "foreignKey": PARTIAL.foreign_key, "value": TOTAL.join}},
        {"toStream": {}},
        {"to": {"topic": "out"}},
    ]


def _global() -> list[dict[str, Any]]:
    return [
        {"globalTable": {"topic": "right", "materialized": "right", "as": "r"}},
        {"stream": {"topic": "left"}},
        {"leftJoin": {"with": "r", "key": PARTIAL.foreign_key, "value": TOTAL.join}},
        {"to": {"topic": "out"}},
    ]


def _outer(before: int, after: int) -> list[dict[str, Any]]:
    window = {"before": before, "after": after, "grace": 0}
    return [
        {"stream": {"topic": "right", "as": "r"}},
        {"stream": {"topic": "left"}},
        {"outerJoin": {"with": "r", "window": window, "value": TOTAL.join}},
        {"to": {"topic": "out"}},
    ]


# The foreign key of a row is the text before the colon; that of a row that begins with d is null.
MOVED: Records = [
    ("right", "b:1", 1_000),
    ("left", "b:2", 2_000),
    ("left", "c:3", 3_000),
    ("left", "c:4", 4_000),
    ("left", "d:5", 5_000),
    ("left", "b:6", 6_000),
    ("left", None, 7_000),
]
STREAMS: Records = [
    ("left", "a:1", 1_000),
    ("right", "a:2", 60_000),
    ("left", "a:3", 80_000),
    ("right", "a:4", 200_000),
    ("left", "a:5", 300_000),
]
TOPOLOGIES = {
    "inner": (_foreign_key("join"), MOVED),
    "left": (_foreign_key("leftJoin"), MOVED),
    "global": (_global(), MOVED),
    "before": (_outer(30_000, 0), STREAMS),
    "after": (_outer(0, 30_000), STREAMS),
}


def _situation(name: str, version: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    topology, records = TOPOLOGIES[name]
    data = [
        {
            "topic": topic,
            "key": "k" if name in ("before", "after") or topic == "left" else str(value).partition(":")[0],
            "value": value,
            "timestamp": time,
            "headers": ["one"],
        }
        for topic, value, time in records
    ]
    advances = [{"advance": 2_000}] * len(data)  # records without a partner are emitted once per second
    together = [each for pair in zip(advances, data, strict=True) for each in pair]
    return {"application": {"id": "app", "kafkaStreams": version}, "topology": topology}, together


def _results(name: str, version: str) -> dict[str, list[tuple[str | None, int | None]]]:
    """Return value and timestamp of the records of each topic."""
    return {
        topic: [(record[2], record[3]) for record in records]
        for topic, records in ours(*_situation(name, version)).items()
    }


def test_the_results_of_each_row_of_the_table_differ_between_versions() -> None:
    differing = {
        difference.name
        for difference in RESULT_DIFFERENCES
        for name in TOPOLOGIES
        for old, new in pairwise(SUPPORTED)
        if difference.is_in(new) and not difference.is_in(old)
        if ours(*_situation(name, str(old))) != ours(*_situation(name, str(new)))
    }
    assert differing == {each.name for each in RESULT_DIFFERENCES}


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_the_results_of_later_versions_are_equal(name: str) -> None:
    assert _results(name, "4.1") == _results(name, "4.3")


def test_a_patch_has_the_fix_of_foreign_key_joins() -> None:
    assert _results("inner", "4.0.0") == _results("inner", "3.8")
    assert _results("inner", "4.0.1") == _results("inner", "3.9.1") == _results("inner", "4.1.0")


def test_a_patch_has_the_fix_of_joins_with_a_global_table() -> None:
    assert _results("global", "4.0.0") == _results("global", "3.9.2") == _results("global", "3.7.2")
    assert _results("global", "4.0.1") == _results("global", "4.1.0")
    assert len(_results("global", "4.0.1")["out"]) == len(_results("global", "4.0.0")["out"]) + 1


@pytest.fixture(scope="module", params=[*_OTHERS, "4.0.0"])
def other_version(
    request: pytest.FixtureRequest, kafka_streams_of: Callable[[str], KafkaStreams]
) -> KafkaStreams:
    return kafka_streams_of(request.param)


@pytest.mark.oracle
@pytest.mark.timeout(0)
@pytest.mark.parametrize("name", TOPOLOGIES)
def test_same_results_in_other_versions(other_version: KafkaStreams, name: str) -> None:
    document, data = _situation(name, other_version.version)
    answer = other_version.run(document, data)
    assert isinstance(answer, list), answer
    assert ours(document, data) == theirs(answer)


@pytest.mark.oracle
@pytest.mark.timeout(0)
@pytest.mark.parametrize("seed", range(_FIRST_WITH_A_DIFFERENCE, _FIRST_WITH_A_DIFFERENCE + 5))
def test_same_results_of_random_topologies_in_other_versions(other_version: KafkaStreams, seed: int) -> None:
    found = next(differences(other_version, seed), None)
    assert found is None, found
