"""Where partitions end while transactions are on their way."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from confluent_kafka import KafkaException, Producer

from infra.observe import Connection
from spark_jobs.runtime.driver.offsets import Positions
from tests.runtime.spark.kafka_topics import Topics
from toolchain.broker import local

pytestmark = pytest.mark.broker


@pytest.fixture
def topic(kafka: local.LocalBroker, unique: Callable[[str], str]) -> str:
    name = unique("ends")
    Topics(kafka.bootstrap_servers).create({name: 1})
    return name


@pytest.fixture
def positions(kafka: local.LocalBroker, topic: str) -> Iterator[Positions]:
    made = Positions(Connection(bootstrap_servers=(kafka.bootstrap_servers,)), topic)
    yield made
    made.close()


def test_an_end_waits_for_what_is_being_committed(
    kafka: local.LocalBroker, topic: str, positions: Positions
) -> None:
    place = (topic, 0)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": topic})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce(topic, b"one")
    producer.produce(topic, b"two")
    producer.flush()
    assert positions.ends([place]) == {place: 0}
    with pytest.raises(KafkaException, match=r"transactions are open after 0\.1 s"):
        positions.settled_ends([place], 0.1)
    with ThreadPoolExecutor(1) as pool:
        settled = pool.submit(positions.settled_ends, [place], 60.0)
        producer.commit_transaction(60)
        assert settled.result() == {place: 3}, "two records and the transaction's mark"


def test_an_end_without_transactions_is_there_at_once(
    kafka: local.LocalBroker, topic: str, positions: Positions
) -> None:
    Topics(kafka.bootstrap_servers).put(topic, [(b"k", b"v", 1)], 0)
    assert positions.settled_ends([(topic, 0)], 0) == {(topic, 0): 1}
    assert positions.settled_ends([]) == {}
