"""A whole application with batches that are large enough to be packed, and with smaller ones."""

from collections.abc import Callable
from pathlib import Path

import pytest

from headwater.toolchain.broker import Broker
from headwater_spark.driver.queries.row_distribution import FEWEST_PACKED
from tests.runtime.spark.kafka_topics import Topics
from tests.runtime.spark.process_application import ProcessApplication

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

_LARGE = 5 * FEWEST_PACKED
"""Spark SQL writes a quarter of them in one transaction to one partition."""
_SMALL = FEWEST_PACKED // 4
_OPTIONS = (
    *("--log-level", "debug"),
    # Spark's defaults: the test run lets Spark generate no code.
    *("--conf", "spark.sql.codegen.wholeStage=true"),
    *("--conf", "spark.sql.codegen.factoryMode=FALLBACK"),
)
_DOCUMENT = """
application:
  id: counted
  config:
    processing.guarantee: GUARANTEE
    statestore.cache.max.bytes: 0
    repartition.purge.interval.ms: 200
topology:
  - stream: {topic: in, serdes: {key: string, value: string}}
  - filter: {where: "value is not null"}
  - mapValues: {value: "trim(value)"}
  - to: {topic: passed}
  - stream: {topic: passed, serdes: {key: string, value: string}}
  - selectKey: {key: "split(value, '-')[0]"}
  - groupByKey:
  - count: {materialized: counts}
  - toStream:
  - to: {topic: counted, serdes: {key: string, value: long}}
"""


def test_results_of_packed_batches_are_exact(
    own_broker: Callable[[], Broker], spark_jars: tuple[str, ...], tmp_path: Path
) -> None:
    """Large batches are packed, with and without an evaluation by Spark SQL; smaller ones are not.

    The first one is read in two steps.
    """
    with own_broker() as broker:
        topics = Topics(broker.bootstrap_servers)
        application = ProcessApplication(broker, topics, tmp_path, spark_jars, document=_DOCUMENT)
        application.set_up()
        application.feed(_LARGE)
        before = 0
        with application.run(until_idle=False, max_records=_LARGE // 2, options=_OPTIONS) as process:
            for records in (_LARGE, _SMALL):
                if records == _SMALL:
                    application.feed(_SMALL)
                application.await_results(process)
                lines = application.log_lines()[before:]
                before += len(lines)
                packed = [line for line in lines if "records packed" in line]
                assert any("evaluated=True" in line for line in packed) == (records == _LARGE)
                assert any("evaluated=False" in line for line in packed) == (records == _LARGE)
            application.stop(process)
        assert not [
            line for line in application.log_lines() if "not packed" in line or "query failed" in line
        ]
        application.check_results()
        application.check_counts("counted-counts-changelog")
        application.check_log()
