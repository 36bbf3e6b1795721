"""`TestInputTopic` and `TestOutputTopic`: as in Kafka Streams' tests."""

from typing import Any

import pytest

from headwater_spark.processors import Record, ValueAndTimestamp
from headwater_spark.testing import (
    DeserializationError,
    SerializationError,
    TestInputTopic,
    TestOutputTopic,
    TopologyTestDriver,
)

_COUNTS = {
    "application": {"id": "cities"},
    "topology": [
        {"stream": {"topic": "orders", "serdes": {"key": "string", "value": "json"}}},
        {"groupBy": {"key": "value.city"}},
        {"count": {"materialized": "per-city"}},
        {"toStream": {}},
        {"to": {"topic": "counts", "serdes": {"key": "string", "value": "long"}}},
    ],
}


def _copies(**serdes: str) -> dict[str, Any]:
    return {
        "application": {"id": "copies"},
        "topology": [
            {"stream": {"topic": "in", "serdes": {"key": "string", "value": "string"} | serdes}},
            {"to": {"topic": "out"}},
        ],
    }


def _copy_topics(start_timestamp: int = 0, auto_advance: int = 0) -> tuple[TestInputTopic, TestOutputTopic]:
    driver = TopologyTestDriver(_copies())
    orders = driver.create_input_topic("in", start_timestamp=start_timestamp, auto_advance=auto_advance)
    return orders, driver.create_output_topic("out")


def test_a_topic_has_its_own_time() -> None:
    """As in `TestInputTopic`: an explicit timestamp does not change the time of the topic."""
    orders, copies = _copy_topics(start_timestamp=100, auto_advance=10)
    orders.pipe_input("a", "1")
    orders.pipe_input("a", "2", 5)
    orders.pipe_value("3")
    orders.advance_time(1_000)
    orders.pipe_input("b", "4", headers=[("h", b"x")])
    assert copies.read_records_to_list() == [
        Record("a", "1", 100),
        Record("a", "2", 5),
        Record(None, "3", 110),
        Record("b", "4", 1_120, (("h", b"x"),)),
    ]


def test_lists_are_piped_with_the_time_of_the_topic_or_with_their_own() -> None:
    orders, copies = _copy_topics(start_timestamp=100, auto_advance=10)
    orders.pipe_key_value_list([("a", "1"), ("b", "2")])
    orders.pipe_key_value_list([("c", "3"), ("d", "4")], start_timestamp=7, advance=2)
    orders.pipe_value_list(["5"])
    orders.pipe_value_list(["6", "7"], start_timestamp=1)
    orders.pipe_record_list([Record("e", "8", 3, (("h", None),))])
    assert [(each.key, each.value, each.timestamp) for each in copies.read_records_to_list()] == [
        *(("a", "1", 100), ("b", "2", 110), ("c", "3", 7), ("d", "4", 9), (None, "5", 120)),
        *((None, "6", 1), (None, "7", 1), ("e", "8", 3)),
    ]


def test_records_are_read_once_one_by_one_or_together() -> None:
    orders, copies = _copy_topics()
    orders.pipe_key_value_list([("a", "1"), ("b", "2"), ("a", "3"), ("b", "4"), ("a", "5")])
    assert (copies.queue_size, copies.is_empty) == (5, False)
    assert copies.read_value() == "1"
    assert copies.read_key_value() == ("b", "2")
    assert copies.read_record() == Record("a", "3", 0)
    assert copies.read_key_values_to_list() == [("b", "4"), ("a", "5")]
    assert copies.is_empty
    with pytest.raises(LookupError, match="out has no record that was not read"):
        copies.read_value()
    assert copies.read_records_to_list() == []


def test_topics_of_one_driver_share_their_records() -> None:
    driver = TopologyTestDriver(_copies())
    one, other = driver.create_output_topic("out"), driver.create_output_topic("out")
    driver.create_input_topic("in").pipe_value_list(["1", "2", "3"])
    assert (one.read_value(), other.read_value()) == ("1", "2")
    assert [each.value for each in driver.read("out")] == ["3"]
    assert one.is_empty


def test_a_map_has_the_latest_value_of_each_key() -> None:
    driver = TopologyTestDriver(_COUNTS)
    driver.create_input_topic("orders").pipe_value_list([{"city": city} for city in ("Rome", "Oslo", "Rome")])
    assert driver.create_output_topic("counts").read_key_values_to_map() == {"Rome": 2, "Oslo": 1}


def test_a_map_has_no_keys_that_are_null_or_objects() -> None:
    orders, copies = _copy_topics()
    orders.pipe_value("1")
    with pytest.raises(ValueError, match="a record of out has no key"):
        copies.read_key_values_to_map()
    driver = TopologyTestDriver(_copies(key="json"))
    driver.pipe("in", {"id": 1}, "1")
    with pytest.raises(TypeError, match=r"a key of out is no key of a dict, but \{'id': 1\}"):
        driver.create_output_topic("out").read_key_values_to_map()


def test_formats_can_differ_from_those_of_the_topology() -> None:
    """So internal topics can be read, and values that the topology cannot read can be written."""
    driver = TopologyTestDriver(_COUNTS)
    driver.create_input_topic("orders").pipe_value({"city": "Rome"})
    changes = driver.create_output_topic("cities-per-city-changelog", key_format="string")
    assert changes.read_record().key == "Rome"
    counts = driver.create_output_topic("counts", value_format="bytes")
    assert counts.read_key_value() == ("Rome", bytes(7) + b"\1")
    driver.create_input_topic("orders", value_format="string").pipe_value('{"city": "Oslo"}')
    assert driver.read("counts")[0].key == "Oslo"
    with pytest.raises(ValueError, match="unknown format txt"):
        driver.create_output_topic("counts", key_format="txt")
    with pytest.raises(SerializationError):
        driver.create_input_topic("orders", value_format="long").pipe_value("text")


def test_a_record_that_is_not_valid_can_be_read_again() -> None:
    driver = TopologyTestDriver(_copies())
    driver.create_input_topic("in").pipe_value("text")
    with pytest.raises(DeserializationError):
        driver.create_output_topic("out", value_format="long").read_value()
    assert driver.create_output_topic("out").read_value() == "text"


def test_topics_that_the_topology_does_not_have_are_refused() -> None:
    driver = TopologyTestDriver(_copies())
    with pytest.raises(KeyError, match="does not read other"):
        driver.create_input_topic("other")
    with pytest.raises(KeyError, match="does not write other"):
        driver.create_output_topic("other")


def test_times_are_not_negative() -> None:
    driver = TopologyTestDriver(_copies())
    with pytest.raises(ValueError, match="start_timestamp is negative: -1"):
        driver.create_input_topic("in", start_timestamp=-1)
    with pytest.raises(ValueError, match="auto_advance is negative: -1"):
        driver.create_input_topic("in", auto_advance=-1)
    with pytest.raises(ValueError, match="milliseconds is negative"):
        driver.create_input_topic("in").advance_time(-1)


def test_a_driver_has_the_topics_the_stores_and_the_number_of_dropped_records() -> None:
    steps = [*_copies()["topology"][:1], {"groupByKey": {}}, {"count": {"materialized": "counts"}}]
    driver = TopologyTestDriver({"application": {"id": "counted"}, "topology": steps})
    assert (driver.produced_topic_names, driver.dropped_records) == (frozenset(), 0)
    orders = driver.create_input_topic("in")
    orders.pipe_input("a", "1")
    orders.pipe_value("without a key")
    assert driver.dropped_records == 1
    driver.create_output_topic("counted-counts-changelog").read_value()
    assert driver.produced_topic_names == {"counted-counts-changelog"}
    assert list(driver.stores) == ["counts"]
    assert driver.stores["counts"].get("a").value == 1


def test_a_store_can_be_filled_before_the_first_record() -> None:
    driver = TopologyTestDriver(_COUNTS)
    driver.store("per-city").put("Rome", ValueAndTimestamp(5, 0))
    driver.create_input_topic("orders").pipe_value({"city": "Rome"})
    assert driver.create_output_topic("counts").read_key_value() == ("Rome", 6)
