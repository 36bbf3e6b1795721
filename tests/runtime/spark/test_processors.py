"""KIP-287: processors keep their keys while partitions are added to their input, on real Spark and Kafka.

The producers choose partitions by linear hashing of the key; at doubled counts that is Kafka's default
partitioner. The results must equal the results of a run without added partitions.
"""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headwater.model.problems import ProblemCode, ProblemsError
from headwater.toolchain.broker.local import LocalBroker
from headwater.toolchain.broker.readiness import until
from headwater_spark.driver.application import StreamsApplication
from headwater_spark.partitioners import linear_partition
from tests.runtime.spark.growing import DOCUMENT, KEYS, SOURCES, TIMEOUT_SECONDS, Growing, new_growing

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.timeout(900),
    pytest.mark.usefixtures("packed_batches"),
]


@pytest.fixture
def growing(spark: SparkSession, kafka: LocalBroker, tmp_path: Path, unique: Callable[[str], str]) -> Growing:
    return new_growing(spark, kafka.bootstrap_servers, unique("app"), tmp_path)


@pytest.mark.soak  # in short: `test_processor_expansion` and `test_expansion_kills`
def test_keys_stay_with_their_state_while_partitions_are_added(growing: Growing) -> None:
    with growing.run() as client:
        growing.name_customers("named")
        client.wait_until_idle()
        growing.order(20)
        growing.await_results(client)
        growing.expand(4)
        growing.order(20)
        growing.await_results(client)
        growing.name_customers("renamed")
        client.wait_until_idle()
        growing.expand_repartition_topic(4)
        growing.order(20)
        growing.await_results(client)
        growing.expand(8)
        growing.expand_repartition_topic(8)
        growing.order(20)
        growing.await_results(client)
    parallelism = {part["parallelism"] for part in client.subtopology_status()}
    assert parallelism == {2}
    for store in ("counts", "customers", "regions"):
        assert growing.topics.partitions(f"{growing.id}-{store}-changelog") == 2
    # without checkpoint and state
    for folder in ("checkpoint", "state"):
        shutil.rmtree(growing.folder / folder)
    with growing.run() as client:
        growing.order(20)
        growing.await_results(client)


def test_records_of_a_key_keep_their_order_across_an_expansion(growing: Growing) -> None:
    """The partitions are added while the application does not run; later records have earlier times."""
    with growing.run() as client:
        growing.name_customers("named")
        growing.order(1)
        growing.await_results(client)
    growing.order(6)
    growing.expand(4, SOURCES)
    growing.go_back()
    growing.order(6)
    with growing.run(records_at_once=40) as client:
        growing.await_results(client)
    assert growing.written("joined") == growing.joined
    with pytest.raises(ProblemsError) as raised, growing.run(DOCUMENT.replace("  processors: 2\n", "")):
        pass
    assert {problem.code for problem in raised.value.problems} == {ProblemCode.UNSAFE_EXPANSION}
    assert all("set `processors: 2`" in problem.fix for problem in raised.value.problems)


@pytest.mark.soak  # in short: `test_processor_expansion::test_the_example_of_the_kip_runs`
def test_linear_hash_keeps_keys_with_their_state_at_any_count(growing: Growing) -> None:
    linear_hash = "static.partitioner.class: linear-hash\n    static.partitioner.initial.partitions: 2"
    document = DOCUMENT.replace("statestore", f"{linear_hash}\n    statestore")
    with growing.run(document) as client:
        growing.name_customers("named")
        client.wait_until_idle()
        growing.order(5)
        growing.await_results(client)
        for count in (3, 5):
            growing.expand(count)
            growing.expand_repartition_topic(count)
            for _ in range(2):
                growing.order(5)
                growing.await_results(client)
        # The application learns of the last partitions at its next topic check.
        until(lambda: _order_and_find_added(growing, client), TIMEOUT_SECONDS)
    regions = growing.topics.get(f"{growing.id}-regions-repartition")
    assert {record[1] for record in regions} - {0, 1}, "keys on added partitions"
    for record in regions:
        assert record[1] in {linear_partition(record[4] or b"", 2, count) for count in (2, 3, 5)}


def _order_and_find_added(growing: Growing, client: StreamsApplication) -> bool:
    """Produce orders, and return whether a record of a region is on an added partition."""
    growing.order(1)
    growing.await_results(client)
    return any(record[1] > 1 for record in growing.topics.get(f"{growing.id}-regions-repartition"))


def test_processors_are_added_while_the_application_is_stopped(growing: Growing) -> None:
    """The results are those of a run that did not scale; the first processors find their local state.

    Users' processors with stores and punctuations: `test_processor_expansion`, and without Spark
    `runtime/driver/test_moved_state`.
    """
    more = DOCUMENT.replace("processors: 2", "processors: 4")
    with growing.run() as client:
        growing.name_customers("named")
        client.wait_until_idle()
        growing.order(10)
        growing.await_results(client)
        growing.expand(4)
        growing.expand_repartition_topic(4)
        growing.order(10)
        growing.await_results(client)
    assert growing.move(4) == 2
    with growing.run(more) as client:
        growing.order(10)
        growing.await_results(client)
        growing.name_customers("renamed")
        client.wait_until_idle()
        growing.order(10)
        growing.await_results(client)
    assert {part["parallelism"] for part in client.subtopology_status()} == {4}


_FOREIGN_KEY = """
application:
  id: APP
  processors: 2
  config:
    partition.autoscaling.enabled: true
    processing.guarantee: exactly_once_v2
    statestore.cache.max.bytes: 0
topology:
  - table: {topic: orders-APP, serdes: TEXTS, as: orders, materialized: orders}
  - table: {topic: customers-APP, serdes: TEXTS, as: customers, materialized: customers}
  - join:
      from: orders
      with: customers
      foreignKey: "substring_index(value, '|', 1)"
      value: "concat(left, '+', right)"
      name: by-customer
  - toStream:
  - to: {topic: joined-APP}
""".replace("TEXTS", "{key: string, value: string}")


@pytest.mark.soak  # without processors: `test_kip_878_test_plan`
def test_foreign_keys_find_their_rows_while_partitions_are_added(growing: Growing) -> None:
    """Both sides of the join have processors, and responses go to the processor that subscribed."""
    expected: dict[str, str] = {}

    def renew(number: int) -> None:
        """Change all customers, then the orders of every other key."""
        growing.name_customers(f"name {number}")
        orders = [(f"o{each}", f"k{(each + number) % KEYS}|{number}") for each in range(number % 2, 60, 2)]
        growing.put("orders", orders)
        latest.update(orders)
        expected.update(
            {key: f"{value}+{growing.customers[value.partition('|')[0]]}" for key, value in latest.items()}
        )

    def is_joined() -> bool:
        if client.state.is_final:
            return True
        found = growing.written("joined")
        return {key: values[-1] for key, values in found.items()} == expected

    latest: dict[str, str] = {}
    growth: Sequence[Sequence[str]] = (
        (),
        [growing.name(topic) for topic in SOURCES],
        [f"{growing.id}-by-customer-subscription-{kind}-topic" for kind in ("registration", "response")],
    )
    with growing.run(_FOREIGN_KEY) as client:
        for number, grown in enumerate(growth):
            for topic in grown:
                growing.topics.expand(topic, 4)
            renew(2 * number)
            renew(2 * number + 1)
            assert until(is_joined, TIMEOUT_SECONDS), list(client.subtopology_status())
            assert not client.state.is_final, client.problems
    changelogs = [
        topic for topic in growing.topics.names() if topic.startswith(growing.id) and "changelog" in topic
    ]
    assert len(changelogs) == 3
    assert {growing.topics.partitions(topic) for topic in changelogs} == {2}
