"""The topics of a test module are deleted from the shared brokers, and no other ones."""

from collections.abc import Callable

import pytest

from headwater.toolchain.broker.local import LocalBroker
from headwater.toolchain.broker.readiness import until
from tests.runtime.spark.kafka_topics import Topics
from tests.shared_topics import SharedTopics

pytestmark = pytest.mark.broker


def test_topics_with_names_of_the_module_are_deleted(
    kafka: LocalBroker, unique: Callable[[str], str]
) -> None:
    of_module = SharedTopics(brokers={kafka.bootstrap_servers})
    id_, other = of_module.unique_name("app"), unique("app")
    topics = Topics(kafka.bootstrap_servers)
    topics.create(dict.fromkeys((f"in-{id_}", f"{id_}-counts-changelog", other), 1))
    of_module.delete()
    assert until(lambda: not [each for each in topics.names() if id_ in each], 60)
    assert other in topics.names()
