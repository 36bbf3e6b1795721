"""A Spark session that interprets expressions instead of compiling them."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    # each expression is evaluated once per row: compiling it takes longer
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


@pytest.fixture(scope="module")
def interpreted(spark: SparkSession) -> Iterator[SparkSession]:
    """The Spark session without code generation."""
    known = {key: spark.conf.get(key, None) for key in _SETTINGS}
    for key, value in _SETTINGS.items():
        spark.conf.set(key, value)
    yield spark
    for key, before in known.items():
        if before is None:
            spark.conf.unset(key)
        else:
            spark.conf.set(key, before)
