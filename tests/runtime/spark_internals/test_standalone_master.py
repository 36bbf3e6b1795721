"""Which masters a URL names, and which applications are never ended."""

import pytest
from pyspark.sql import SparkSession

from headwater_spark.spark_internals.standalone_master import (
    end_application,
    master_addresses,
    standalone_application,
)


def test_the_masters_of_a_url() -> None:
    assert master_addresses("spark://first:7077") == (("first", 7077),)
    assert master_addresses("spark://first:7078,10.0.0.2:7079") == (("first", 7078), ("10.0.0.2", 7079))


@pytest.mark.spark
def test_an_application_without_a_master_ends_no_other(spark: SparkSession) -> None:
    assert standalone_application(spark) == ""
    assert not end_application(spark, "spark://first:7077 app-20261126093056-0000")
    assert not end_application(spark, "")
