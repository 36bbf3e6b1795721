"""SIGKILL while records of a repartition topic are held back: none is lost, processed twice or too early.

In `make test`, `test_input_order` holds records back without kills, and `test_batches_held_back` passes them
on to the next owner.
"""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headwater.toolchain.broker import Broker
from headwater.toolchain.broker.readiness import until
from tests.runtime.spark.kafka_topics import Topics
from tests.runtime.spark.process_application import ProcessApplication as Application
from tests.runtime.spark.process_application import kill_all, kill_worker

if TYPE_CHECKING:
    import subprocess

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.soak,
    pytest.mark.timeout(3000),
]

_PARTITIONS, _KEYS, _VERSIONS, _EVENTS = 2, 50, 60, 1_500
_START_MS = 1_700_000_000_000
_TIMEOUT_SECONDS = 600.0
_CHANGELOG = "held-rows-changelog"
_DOCUMENT = """
application:
  id: held
  config: {processing.guarantee: exactly_once_v2, statestore.cache.max.bytes: 0}
topology:
  - table: {topic: rows, materialized: rows, as: rows, serdes: {key: string, value: string}}
  - stream: {topic: events, serdes: {key: string, value: string}}
  - selectKey: {key: "split(value, '-')[0]"}
  - leftJoin: {with: rows, value: "concat(left, '+', coalesce(right, 'none'))"}
  - to: {topic: joined, serdes: {key: string, value: string}}
"""


@pytest.fixture
def application(
    own_broker: Callable[[], Broker], spark_jars: tuple[str, ...], tmp_path: Path
) -> Iterator[Application]:
    """Yield an application that joins a stream with the last of many versions of its rows."""
    (tmp_path / "document.yaml").write_text(_DOCUMENT)
    with own_broker() as broker:
        topics = Topics(broker.bootstrap_servers)
        topics.create(dict.fromkeys(["rows", "events", "joined"], _PARTITIONS))
        topics.put_by_key(
            "rows",
            [
                (b"k%d" % key, b"%d" % version, _START_MS + version)
                for version in range(_VERSIONS)
                for key in range(_KEYS)
            ],
        )
        for partition in range(_PARTITIONS):
            topics.put(
                "events",
                [(None, each, _START_MS + 1000 + n) for n, each in enumerate(_events(partition))],
                partition,
            )
        yield Application(broker, topics, tmp_path, spark_jars)


def _events(partition: int) -> list[bytes]:
    return [b"k%d-%d-%d" % (each % _KEYS, partition, each) for each in range(_EVENTS)]


def _until_written(
    application: Application, process: "subprocess.Popen[bytes]", topic: str, least: int
) -> None:
    is_due = partial(_has_written, application, process, topic, least)
    assert until(is_due, _TIMEOUT_SECONDS), application.log()
    assert process.poll() is None, application.log()


def _has_written(
    application: Application, process: "subprocess.Popen[bytes]", topic: str, least: int
) -> bool:
    return application.topics.written(topic) >= least or process.poll() is not None


_ROWS, _ALL_EVENTS = _KEYS * _VERSIONS, _PARTITIONS * _EVENTS
_WHILE_READING_ROWS, _LATER = (_CHANGELOG, _ROWS // 4), (_CHANGELOG, _ROWS * 3 // 4)
_WHILE_JOINING = ("joined", _ALL_EVENTS // 3)
_KILLS = (_WHILE_READING_ROWS, _LATER, _WHILE_JOINING)


def test_results_are_exact_after_kills_while_records_are_held_back(application: Application) -> None:
    for topic, least in _KILLS:
        with application.run() as process:
            _until_written(application, process, topic, least)
            kill_all(process)
    with application.run() as process:
        _until_written(application, process, "joined", _ALL_EVENTS * 2 // 3)
        kill_worker(process)
        assert process.wait(_TIMEOUT_SECONDS) == 0, application.log()
    joined = sorted(str(record[5]) for record in application.topics.get("joined"))
    assert joined == sorted(
        str(event + b"+%d" % (_VERSIONS - 1)) for each in range(_PARTITIONS) for event in _events(each)
    )
