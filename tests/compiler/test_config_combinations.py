"""Configs that are refused in combination although each value is valid, and how the fix makes them valid.

Kafka's own answers are compared in `tests/oracle/test_configs.py`.
"""

from collections.abc import Mapping

import pytest

from headwater.compiler.configs.check import find_refusals
from headwater.model.versions import DEFAULT_VERSION, KafkaStreamsVersion, read_version

EXACTLY_ONCE = {"processing.guarantee": "exactly_once_v2"}
Config = Mapping[str, str]


def refused_keys(config: Config, version: KafkaStreamsVersion = DEFAULT_VERSION) -> list[str]:
    return [refusal.key for refusal in find_refusals(config, version)]


@pytest.mark.parametrize(
    ("config", "key", "fixed"),
    [
        pytest.param(
            {"rack.aware.assignment.tags": "zone"},
            "rack.aware.assignment.tags",
            {"client.tag.zone": "a"},
            id="a tag without a value",
        ),
        pytest.param(
            {f"client.tag.t{number}": "a" for number in range(6)},
            "client.tag.t5",
            None,
            id="six tags",
        ),
        pytest.param({f"client.tag.{'x' * 21}": "a"}, f"client.tag.{'x' * 21}", None, id="a long tag"),
        pytest.param(
            {"enable.metrics.push": "true", "admin.enable.metrics.push": "false"},
            "admin.enable.metrics.push",
            {"enable.metrics.push": "false"},
            id="metrics that only one client pushes",
        ),
        pytest.param(
            {"topic.segment.bytes": "1000", "producer.batch.size": "2000"},
            "topic.segment.bytes",
            {"topic.segment.bytes": "2000"},
            id="batches larger than segments",
        ),
        pytest.param(
            {**EXACTLY_ONCE, "commit.interval.ms": "20000"},
            "commit.interval.ms",
            {"producer.transaction.timeout.ms": "20000"},
            id="commits later than the transaction timeout",
        ),
        pytest.param(
            {**EXACTLY_ONCE, "consumer.max.in.flight.requests.per.connection": "6"},
            "consumer.max.in.flight.requests.per.connection",
            {"consumer.max.in.flight.requests.per.connection": "5"},
            id="more requests in flight than exactly once allows",
        ),
        pytest.param(
            {"heartbeat.interval.ms": "50000"},
            "heartbeat.interval.ms",
            {"session.timeout.ms": "60000"},
            id="heartbeats rarer than the session timeout",
        ),
        pytest.param(
            {"group.protocol": "streams", "group.instance.id": "one"},
            "group.instance.id",
            {"group.protocol": "classic"},
            id="static members of a streams group",
        ),
        pytest.param(
            {"delivery.timeout.ms": "100", "request.timeout.ms": "200"},
            "delivery.timeout.ms",
            {"delivery.timeout.ms": "10000"},
            id="a delivery timeout below the request timeout",
        ),
        pytest.param(
            {**EXACTLY_ONCE, "producer.acks": "1"},
            "producer.acks",
            {"producer.acks": "all"},
            id="exactly once without all acknowledgments",
        ),
        pytest.param(
            {"producer.enable.idempotence": "true", "producer.retries": "0"},
            "producer.retries",
            {"producer.retries": "1"},
            id="an idempotent producer without retries",
        ),
    ],
)
def test_a_refused_combination_is_named_and_its_fix_is_accepted(
    config: Config, key: str, fixed: Config | None
) -> None:
    assert refused_keys(config) == [key]
    if fixed is not None:
        assert refused_keys({**config, **fixed}) == []


@pytest.mark.parametrize(
    ("config", "first"),
    [
        ({"enable.metrics.push": "true", "admin.enable.metrics.push": "false"}, "4.0"),
        ({"group.protocol": "streams", "group.instance.id": "one"}, "4.1"),
        ({**EXACTLY_ONCE, "global.consumer.max.in.flight.requests.per.connection": "6"}, "4.2"),
        ({"client.tag.zone": ""}, "4.3"),
    ],
    ids=str,
)
def test_earlier_versions_do_not_check_it(config: Config, first: str) -> None:
    since = read_version(first)
    before = read_version({"4.0": "3.9", "4.1": "4.0", "4.2": "4.1", "4.3": "4.2"}[first])
    assert since is not None
    assert before is not None
    assert refused_keys(config, since)
    assert not [key for key in refused_keys(config, before) if key != "group.protocol"]


def test_a_value_that_is_invalid_by_itself_is_refused_once() -> None:
    assert refused_keys({**EXACTLY_ONCE, "commit.interval.ms": "soon"}) == ["commit.interval.ms"]
