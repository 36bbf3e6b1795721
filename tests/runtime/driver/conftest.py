"""An application on a broker whose tasks run without Spark."""

from collections.abc import Callable
from pathlib import Path

import pytest

from headwater.toolchain.broker.local import LocalBroker
from tests.runtime.driver.sparkless import Sparkless
from tests.runtime.spark.kafka_topics import Topics


@pytest.fixture
def app(kafka: LocalBroker, tmp_path: Path, unique: Callable[[str], str]) -> Sparkless:
    """Return an application with 2 processors and 4 partitions, of which all have records."""
    topics = Topics(kafka.bootstrap_servers, keeps_producer=True)
    app = Sparkless(kafka.bootstrap_servers, unique("app"), tmp_path, topics)
    return app.with_added_partitions()
