"""KIP-287: foreign-key joins get more processors while they run, on real Spark and Kafka.

The results must equal the results of a run without added processors. Without Spark:
`runtime/driver/test_moved_foreign_keys`, and on a broker `runtime/driver/test_expansions_on_a_broker`.
"""

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headwater.toolchain.broker.local import LocalBroker
from headwater.toolchain.broker.readiness import until
from headwater_spark.driver.application import StreamsApplication
from tests.runtime.spark.growing import TIMEOUT_SECONDS, Growing
from tests.runtime.spark.joined_tables import DOCUMENT, JoinedTables
from tests.runtime.spark.kafka_topics import Topics

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.soak, pytest.mark.timeout(900)]


def _check_results(tables: JoinedTables, client: StreamsApplication) -> None:
    client.wait_until_idle()
    assert not client.state.is_final, client.problems
    assert tables.results() == tables.expected()


def test_joins_by_foreign_key_get_processors_while_all_tables_change(
    spark: SparkSession, kafka: LocalBroker, tmp_path: Path, unique: Callable[[str], str]
) -> None:
    topics = Topics(kafka.bootstrap_servers, keeps_producer=True)
    tables = JoinedTables(unique("app"), topics, random.Random(1))  # noqa: S311
    tables.create(2)
    app = Growing(spark, kafka.bootstrap_servers, tables.id, tmp_path, topics)
    with app.run(DOCUMENT) as client:
        tables.change(300)
        client.wait_until_idle()
        tables.expand(4)
        tables.change(100)
        _check_results(tables, client)
        client.expand_processors(4)

        def has_ended() -> bool:
            tables.change(10)
            return client.state.is_final or client.processors().target is None

        assert until(has_ended, TIMEOUT_SECONDS), client.processors()
        assert client.processors().processors == 4, client.processors()
        tables.change(100)
        _check_results(tables, client)
        assert {part["parallelism"] for part in client.subtopology_status()} == {4}
    with app.run(DOCUMENT.replace("processors: 2", "processors: 4")) as client:
        tables.change(100)
        _check_results(tables, client)
