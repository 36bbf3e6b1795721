"""The comparison of two versions of Kafka Streams, and what it prints."""

from collections.abc import Callable

import pytest

from tests.oracle.kafka_streams import KafkaStreams
from tests.oracle.neighbors import Pair, kind, shrink
from tests.oracle.situations import Situation

pytestmark = pytest.mark.oracle
_WINDOW = {"difference": 1000}


@pytest.fixture(scope="module")
def neighbors(kafka_streams_of: Callable[[str], KafkaStreams]) -> Pair:
    return Pair(kafka_streams_of("4.2.2"), kafka_streams_of("4.3.1"))


def _situation(*steps: object) -> Situation:
    return Situation({"application": {"id": "app"}, "topology": list(steps)}, ({"a": 2, "b": 2, "c": 2},))


def test_equal_topologies_do_not_differ(neighbors: Pair) -> None:
    assert neighbors.differences(_situation({"table": {"topic": "a", "as": "a"}})) == ()


def test_smallest_topology_that_differs_is_found(neighbors: Pair) -> None:
    join = {"from": "a", "with": "b", "window": _WINDOW, "as": "j"}
    supplied = join | {"otherStore": {"name": "s", "retention": 2000, "windowSize": 2000}}
    situation = _situation(
        {"stream": {"topic": "a", "as": "a"}},
        {"stream": {"topic": "b", "as": "b"}},
        {"table": {"topic": "c", "as": "c"}},
        {"peek": {"from": "b", "as": "p"}},
        {"join": supplied | {"with": "p", "name": "named"}},
    )
    (difference,) = neighbors.differences(situation)
    assert kind(difference) == (
        'insides:\n+      "cleanup.policy": "compact,delete",\n-      "cleanup.policy": "delete",'
    )
    smallest = shrink(neighbors, situation, "insides")
    steps = smallest.document["topology"]
    assert [operator for step in steps for operator in step] == ["stream", "stream", "join"]
    assert "name" not in steps[2]["join"]
    assert steps[2]["join"]["otherStore"] == supplied["otherStore"]
