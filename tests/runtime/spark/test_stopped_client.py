"""KIP-287: the process of a client is stopped while another process of the application adds processors.

Then it continues: its batches, and the transactions that they have begun, are those of the old processors.
In `make test`, `test_stale_client` lets a batch of such a client wait in its process.
"""

import os
import signal
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headwater.kafka import Connection
from headwater.model.problems import ProblemCode
from headwater.toolchain.broker import Broker
from headwater.toolchain.broker.readiness import until
from headwater_spark.driver.processor_move.kafka_cluster import KafkaMoveCluster
from headwater_spark.driver.processor_move.moves import Committed
from headwater_spark.engine.records import TopicPartition
from tests.control.conftest import HttpClient
from tests.runtime.spark.growing_processes import (
    GrowingApplication,
    await_running,
    processors_status,
    running,
)
from tests.runtime.spark.kafka_topics import Topics
from tests.runtime.spark.process_application import TIMEOUT_SECONDS
from tests.runtime.spark.processes import continue_all, stop_all

if TYPE_CHECKING:
    import subprocess

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.soak,
    pytest.mark.timeout(600),
]

_REPARTITION = "counted-regions-repartition"
_INPUTS = ("in", _REPARTITION)


def test_a_process_that_was_stopped_while_another_one_added_processors_commits_nothing(
    own_broker: Callable[[], Broker], spark_jars: tuple[str, ...], tmp_path: Path
) -> None:
    """It is stopped within a batch. Each record is counted once, and no count is missing."""
    with own_broker() as broker:
        topics = Topics(broker.bootstrap_servers)
        stale, client = (
            GrowingApplication(broker, topics, tmp_path / name, spark_jars) for name in ("stale", "client")
        )
        for each in (stale, client):
            each.folder.mkdir()
        stale.set_up()
        (client.folder / "document.yaml").write_bytes((stale.folder / "document.yaml").read_bytes())
        stale.feed(40)
        with running(stale, max_records=100, options=["--restarts", "3"]) as (stopped, _):
            stale.await_progress(1, stopped)
            stale.expand(4)
            topics.expand(_REPARTITION, 4)
            stale.feed(1_500)
            stale.await_progress(100, stopped)
            stop_all(stopped.pid)
            assert not stale.has_all_results()
            client.fed = stale.fed
            with running(client) as (process, logged):
                _expand(client, process, await_running(client, logged))
                client.await_results(process)
                before = _committed(broker)
                continue_all(stopped.pid)
                assert stopped.wait(TIMEOUT_SECONDS) != os.EX_OK, stale.log()
                # Its topic check may be due before it reads that it was replaced.
                reasons = (ProblemCode.PROCESSOR_COUNT.value, "Another client of counted is active.")
                assert any(map(stale.has_logged, reasons)), stale.log()
                assert _committed(broker) == before
                client.feed(200)
                client.await_results(process)
                process.send_signal(signal.SIGTERM)
                assert process.wait(TIMEOUT_SECONDS) == os.EX_OK, client.log()
        client.check_results()
        for store in ("counts", "regions"):
            assert topics.partitions(f"counted-{store}-changelog") == 4


def _expand(client: GrowingApplication, process: "subprocess.Popen[bytes]", endpoint: HttpClient) -> None:
    """Request 4 processors, again while that is refused: records of before the added partitions wait."""

    def is_expanded() -> bool:
        status = processors_status(endpoint)
        if status.get("processors") == 2 and status["target"] is None:
            with suppress(OSError):  # as while the status is read
                endpoint.post("/control/processors", {"processors": 4})
        return process.poll() is not None or status.get("processors") == 4

    assert until(is_expanded, TIMEOUT_SECONDS), client.log()


def _committed(broker: Broker) -> Mapping[TopicPartition, Committed]:
    """Return what is committed for the inputs, with the metadata."""
    partitions = [(topic, each) for topic in _INPUTS for each in range(4)]
    with closing(
        KafkaMoveCluster(Connection(bootstrap_servers=(broker.bootstrap_servers,)), "counted")
    ) as cluster:
        return cluster.committed(partitions)
