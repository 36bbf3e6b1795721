"""How many records fit into memory, and what is read to find it out."""

from collections.abc import Callable, Iterable

import attrs
import pytest

from headwater.kafka import Connection
from headwater.toolchain.broker import local
from headwater_spark.driver.input.record_sizes import (
    BYTES_AT_ONCE,
    ReadBytes,
    RecordSampler,
    RecordSizes,
)
from headwater_spark.engine.records import Offsets
from tests.runtime.spark.kafka_topics import Topics

_A0, _A1, _B0 = ("a", 0), ("a", 1), ("b", 0)
_LIMIT = 10_000


@attrs.define
class Sample:
    """Returns 10 records of each topic with the given sizes; remembers where it was asked to read."""

    sizes: dict[str, int]
    read: list[Offsets] = attrs.field(factory=list)

    def __call__(self, positions: Offsets) -> Iterable[ReadBytes]:
        self.read.append(positions)
        topics = {topic for topic, _ in positions}
        return [(topic, 10, 10 * self.sizes[topic]) for topic in sorted(topics & self.sizes.keys())]


def test_large_records_are_divided() -> None:
    sample = Sample({"a": 50})
    sizes = RecordSizes(_LIMIT, sample)
    assert sizes.records_at_once({_A0: (5, 205)}) == 200
    assert sizes.records_at_once({_A0: (5, 205), _A1: (0, 600)}) == 200
    assert sample.read == [{_A0: 5}], "the topic is known then"


def test_a_topic_of_small_records_does_not_hide_a_topic_of_large_ones() -> None:
    sizes = RecordSizes(_LIMIT, Sample({"a": 10, "b": 1_000}))
    ranges = {_A0: (0, 500), _B0: (0, 5)}
    assert sizes.records_at_once(ranges) == 505
    assert sizes.records_at_once({_A0: (0, 500), _B0: (0, 95)}) == 595 * _LIMIT // 100_000


def test_few_records_are_not_worth_a_request() -> None:
    sample = Sample({"a": 5_000})
    sizes = RecordSizes(BYTES_AT_ONCE, sample)
    assert sizes.records_at_once({_A0: (0, 64)}) == 64
    assert not sample.read
    sizes.learn([("a", 2, BYTES_AT_ONCE)])
    assert sizes.records_at_once({_A0: (0, 64)}) == 2


def test_few_records_are_sampled_if_they_may_not_fit() -> None:
    """Otherwise the same records would fail again after each restart of the query."""
    assert RecordSizes(_LIMIT, Sample({"a": 5_000})).records_at_once({_A0: (0, 64)}) == 2


def test_one_record_is_always_processed() -> None:
    assert RecordSizes(_LIMIT, Sample({"a": 1_000_000})).records_at_once({_A0: (0, 100)}) == 1
    assert RecordSizes(_LIMIT, Sample({"a": 1_000_000})).most_records({_A0: 0}, 100) == 1


def test_what_tasks_have_received_replaces_the_sample() -> None:
    sizes = RecordSizes(_LIMIT, Sample({"a": 50}))
    assert sizes.records_at_once({_A0: (0, 400)}) == 200
    sizes.learn([("a", 100, 10_000), ("a", 300, 70_000), ("b", 0, 0)])
    assert sizes.records_at_once({_A0: (0, 400)}) == 50
    assert sizes.known_size({_A0: (0, 4), _B0: (0, 9)}) == 800


def test_topics_without_records_are_not_read_again() -> None:
    sample = Sample({})
    sizes = RecordSizes(_LIMIT, sample)
    assert [sizes.records_at_once({_A0: (0, 900), _B0: (3, 3)}) for _ in range(2)] == [900, 900]
    assert sample.read == [{_A0: 0}]


def test_the_limit_of_a_query_is_the_limit_of_its_largest_records() -> None:
    sizes = RecordSizes(_LIMIT, Sample({"a": 10, "b": 100}))
    assert sizes.most_records({_A0: 0, _B0: 7}, 50) == 50
    assert sizes.most_records({_A0: 0, _B0: 7}, 500) == 100


@pytest.mark.broker
def test_records_are_sampled_at_their_offsets(kafka: local.LocalBroker, unique: Callable[[str], str]) -> None:
    topic, empty = unique("sizes"), unique("empty")
    topics = Topics(kafka.bootstrap_servers)
    topics.create({topic: 2, empty: 1})
    topics.put(topic, [(b"k", b"small", 0)] * 5 + [(b"k", bytes(100_000), 0)] * 5)
    sample = RecordSampler(Connection(bootstrap_servers=(kafka.bootstrap_servers,)), topic)
    assert list(sample({(topic, 0): 5, (topic, 1): 0, (empty, 0): 0})) == [(topic, 5, 5 * 100_001)]
    assert next(iter(sample({(topic, 0): 0})))[2] > 5 * 6
