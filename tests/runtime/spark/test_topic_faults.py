"""Topics are expanded, deleted and re-created under load, while processes are killed (KIP-287, KIP-698).

Each record of (topic, partition, offset) is processed once, in the order of its key, and counted once.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headwater.kafka import Connection, KafkaClusterReader
from headwater.toolchain.broker import Broker
from headwater.toolchain.broker.readiness import until
from tests.runtime.spark.growing_processes import GrowingApplication, await_running, running
from tests.runtime.spark.kafka_topics import Topics
from tests.runtime.spark.process_application import TIMEOUT_SECONDS, kill_all, kill_worker

if TYPE_CHECKING:
    import subprocess

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(3000)]

_REPARTITION, _CHANGELOGS = (
    "counted-regions-repartition",
    ("counted-counts-changelog", "counted-regions-changelog"),
)
_MOST_PARTITIONS = 8
_RECORDS = 400
"""They have all keys, so a changelog topic that was re-created has all counts after them."""


class Fault(Enum):
    EXPANSION = "the source topic, the sinks and the repartition topic get twice as many partitions"
    REPARTITION_TOPIC = "the repartition topic is deleted, and re-created by the application"
    CHANGELOG_TOPIC = "a changelog topic is deleted, and re-created by the application"
    WORKER = "a Python worker is killed"
    DRIVER = "the driver's process group is killed"


@pytest.fixture
def application(
    own_broker: Callable[[], Broker], spark_jars: tuple[str, ...], tmp_path: Path
) -> Iterator[GrowingApplication]:
    with own_broker() as broker:
        application = GrowingApplication(broker, Topics(broker.bootstrap_servers), tmp_path, spark_jars)
        application.set_up()
        yield application


def _faults(seed: int, number: int) -> Sequence[Fault]:
    """Return `number` faults in random order: two expansions, and as many as possible of each other kind."""
    draw = random.Random(seed)  # noqa: S311
    others = [fault for fault in Fault if fault is not Fault.EXPANSION]
    faults = [Fault.EXPANSION] * 2 + [others[each % len(others)] for each in range(number - 2)]
    draw.shuffle(faults)
    return faults


_SERIES = [pytest.param(seed, 20, id=f"20 faults, seed {seed}", marks=pytest.mark.soak) for seed in (1, 2)]


@pytest.mark.parametrize(("seed", "number"), _SERIES)
def test_nothing_is_lost_or_repeated_while_topics_change_and_processes_are_killed(
    application: GrowingApplication, seed: int, number: int
) -> None:
    faults = list(_faults(seed, number))
    application.feed(_RECORDS)
    while faults:
        with running(application, max_records=200) as (process, logged):
            await_running(application, logged)
            while faults and process.poll() is None:
                _suffer(faults.pop(0), application, process)
            assert process.poll() is None or process.returncode < 0, application.log()
    application.feed(_RECORDS)
    application.finish()
    application.check_results()


def _suffer(fault: Fault, application: GrowingApplication, process: "subprocess.Popen[bytes]") -> None:
    """Let the application suffer a fault while it processes records; the lost topics have only old ones."""
    match fault:
        case Fault.EXPANSION:
            partitions = min(2 * application.topics.partitions("in"), _MOST_PARTITIONS)
            if application.topics.partitions("in") < partitions:
                _progress(application, process)
                application.expand(partitions)
                application.feed(_RECORDS)
                application.topics.expand(_REPARTITION, partitions)
        case Fault.REPARTITION_TOPIC:
            _lose(_REPARTITION, application, process)
        case Fault.CHANGELOG_TOPIC:
            _lose(_CHANGELOGS[application.fed // _RECORDS % 2], application, process)
        case Fault.WORKER:
            _progress(application, process)
            kill_worker(process)
        case Fault.DRIVER:
            _progress(application, process)
            kill_all(process)
            return
    _progress(application, process)


def _progress(application: GrowingApplication, process: "subprocess.Popen[bytes]") -> None:
    application.feed(_RECORDS)
    application.await_progress(_RECORDS // 4, process)


def _lose(topic: str, application: GrowingApplication, process: "subprocess.Popen[bytes]") -> None:
    """Delete a topic when all records are processed; then all keys are counted again, before other faults."""
    application.await_results(process)
    reader = KafkaClusterReader(Connection(bootstrap_servers=(application.broker.bootstrap_servers,)))
    before = reader.topic_ids([topic])
    application.topics.delete(topic)
    assert until(
        lambda: reader.topic_ids([topic]).get(topic, "") not in ("", before[topic]), TIMEOUT_SECONDS
    ), application.log()
    application.feed(_RECORDS)
    application.await_results(process)
