"""Test a topology without a broker and without Spark, as with `TopologyTestDriver` of Kafka Streams.

    from headwater_spark.testing import TopologyTestDriver

    def test_totals_are_added_up():
        driver = TopologyTestDriver("totals.yaml")
        driver.pipe("orders", "1", {"amount": 10.0})
        driver.pipe("orders", "1", {"amount": 5.0})
        assert [record.value for record in driver.read("totals")] == [10.0, 15.0]
        assert driver.store("totals").get("1") == 15.0

Expressions, formats and your own classes work as in `headwater run`. Each topic has one partition, and each
update of a store is forwarded: there is no record cache.
"""

from headwater_spark.testing.topology_test_driver import PoisonRecordError, TopologyTestDriver

__all__ = ["PoisonRecordError", "TopologyTestDriver"]
