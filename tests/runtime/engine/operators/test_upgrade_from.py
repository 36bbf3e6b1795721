"""Records of an application that is being upgraded; the expected bytes are those of 3.9.2 and 4.1.1."""

from collections.abc import Mapping

import pytest

from tests.runtime.topology_runner import TopologyRunner

_GROUPED = """
- table: {topic: t, serdes: {key: string, value: string}}
- groupBy: {key: "value[:1]", value: value}
- count: {materialized: counts}
- toStream:
- to: {topic: out}
"""


@pytest.mark.parametrize(
    ("config", "in_one_group", "counts"),
    [
        ({}, [b"\x04fgff\x02"], [1, 1]),
        ({"upgrade.from": "3.5"}, [b"\x04fgff\x02"], [1, 1]),
        ({"upgrade.from": "3.4"}, [b"ff\x00", b"fg\x01"], [1, 0, 1]),
        ({"upgrade.from": "2.8"}, [b"ff\x00", b"fg\x01"], [1, 0, 1]),
    ],
)
def test_an_update_within_a_group_is_two_records_for_releases_that_cannot_read_one(
    config: Mapping[str, str], in_one_group: list[bytes], counts: list[int]
) -> None:
    runner = TopologyRunner(_GROUPED, config=config)
    written = [
        output
        for time, value in enumerate((b"ff", b"fg"))
        for output in runner.feed(runner.record("t", b"k", value, time))
    ]
    sent = [value for topic, _, _, value, *_ in written if topic == "app-counts-repartition"]
    assert sent == [b"ff\x01", *in_one_group]
    results = [int.from_bytes(value or b"") for topic, _, _, value, *_ in written if topic == "out"]
    assert results == counts


@pytest.mark.parametrize("config", [{}, {"upgrade.from": "3.4"}])
def test_an_update_that_changes_its_group_is_always_two_records(config: Mapping[str, str]) -> None:
    runner = TopologyRunner(_GROUPED, config=config)
    runner.feed(runner.record("t", b"k", b"ff", 0))
    written = runner.feed(runner.record("t", b"k", b"gg", 1))
    assert [value for topic, _, _, value, *_ in written if topic == "app-counts-repartition"] == [
        b"ff\x00",
        b"gg\x01",
    ]


@pytest.mark.parametrize("release", ["3.3", "2.8"])
def test_subscriptions_of_foreign_key_joins_name_their_partition(release: str) -> None:
    """Kafka Streams never configures `SubscriptionWrapperSerde`, so `upgrade.from` has no effect on it."""
    runner = TopologyRunner(
        """
        - table: {topic: l, serdes: {key: string, value: string}, materialized: left, as: l}
        - table: {topic: r, serdes: {key: string, value: string}, materialized: right, as: r}
        - join: {from: l, with: r, foreignKey: value, value: left + right}
        """,
        config={"upgrade.from": release},
    )
    written = runner.feed(runner.record("l", b"k", b"f", 0))
    sent = [value for topic, _, _, value, *_ in written if "REGISTRATION" in topic]
    assert sent == [bytes.fromhex("0103052db27de9df266e8adc51d27311dfd86b00000000")]
