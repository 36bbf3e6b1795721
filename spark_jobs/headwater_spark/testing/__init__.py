"""Test a topology without a broker, as with `TopologyTestDriver` of Kafka Streams.

    from headwater_spark.testing import TopologyTestDriver

    def test_totals_are_added_up():
        with TopologyTestDriver("totals.yaml") as driver:
            driver.pipe("orders", "1", {"amount": 10.0})
            driver.pipe("orders", "1", {"amount": 5.0})
            assert [record.value for record in driver.read("totals")] == [10.0, 15.0]
            assert driver.store("totals").get("1").value == 15.0  # ValueAndTimestamp, of `reduce`

Expressions, formats and your own classes work as in `headwater run`. Each topic has one partition, and each
update of a store is forwarded: there is no record cache. The package `headwater[spark]` must be installed; no
Spark and no JVM is started.
"""

from headwater_spark.testing.topology_test_driver import (
    DeserializationError,
    PoisonRecordError,
    SerializationError,
    TestInputTopic,
    TestOutputTopic,
    TopologyTestDriver,
)

__all__ = [
    "DeserializationError",
    "PoisonRecordError",
    "SerializationError",
    "TestInputTopic",
    "TestOutputTopic",
    "TopologyTestDriver",
]
