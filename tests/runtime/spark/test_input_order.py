"""The order of records across the input partitions of a task, over backlogs of many batches."""

import pytest

from headwater.toolchain.broker.readiness import until
from headwater_spark.driver.states import ClientState
from tests.runtime.spark.applications import TIMEOUT_SECONDS, Cluster, RunningApplication

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.timeout(900),
    pytest.mark.usefixtures("packed_batches"),
]

_START_MS = 1_700_000_000_000
_KEYS = 20
_JOIN = """
  - table: {topic: ROWS, materialized: rows, as: rows, serdes: {key: string, value: string}}
  - stream: {topic: IN, as: events, serdes: {key: string, value: string}}
  - leftJoin: {from: events, with: rows, value: "concat(left, '+', coalesce(right, 'none'))"}
  - to: {topic: OUT, serdes: {key: string, value: string}}
"""
_JOIN_BY_VALUE = _JOIN.replace(
    "  - leftJoin: {from: events,",
    """  - selectKey: {from: events, key: "split(value, '-')[0]"}
  - leftJoin: {""",
)
"""The stream is repartitioned first; every task of the first sub-topology writes to every partition."""


def test_large_stream_is_joined_with_the_older_rows_of_a_small_table(cluster: Cluster) -> None:
    """Each record finds its row, though a batch of Spark has about 21 rows and 579 records of the stream."""
    rows = [(b"k%d" % each, b"row", _START_MS + each) for each in range(110)]
    events = [(b"k%d" % (each % 110), b"%d" % each, _START_MS + 1000 + each) for each in range(3_000)]
    table = cluster.unique("rows")
    cluster.topics.create({table: 1})
    with cluster.application(_JOIN, ROWS=table, records_at_once=600) as running:
        cluster.topics.put(table, rows)
        cluster.topics.put(running.source, events)
        running.application.start()
        running.application.wait_until_idle()
        assert running.values() == [b"%d+row" % each for each in range(3_000)]
        assert until(lambda: _lag(running) == 0, TIMEOUT_SECONDS)


@pytest.mark.parametrize(
    "guarantee", [pytest.param("at_least_once", marks=pytest.mark.soak), "exactly_once_v2"]
)
def test_repartition_topic_of_several_writers_waits_for_older_rows(cluster: Cluster, guarantee: str) -> None:
    """Each record is joined once, with the last of ten versions of its row."""
    partitions, events = 2, 400
    table = cluster.unique("rows")
    cluster.topics.create({table: partitions})
    with cluster.application(
        _JOIN_BY_VALUE,
        {"processing.guarantee": guarantee},
        partitions,
        ROWS=table,
        records_at_once=150,
    ) as running:
        cluster.topics.put_by_key(
            table,
            [
                (b"k%d" % key, b"%d" % version, _START_MS + version)
                for version in range(10)
                for key in range(_KEYS)
            ],
        )
        for partition in range(partitions):
            values = [b"k%d-%d-%d" % (each % _KEYS, partition, each) for each in range(events)]
            cluster.topics.put(
                running.source,
                [(None, value, _START_MS + 1000 + n) for n, value in enumerate(values)],
                partition,
            )
        running.application.start()
        running.application.wait_until_idle()
        found = sorted(running.values(), key=str)
    expected = [
        b"k%d-%d-%d+9" % (each % _KEYS, partition, each)
        for partition in range(partitions)
        for each in range(events)
    ]
    assert found == sorted(expected, key=str)


def test_task_waits_for_the_next_row_with_max_task_idle(cluster: Cluster) -> None:
    """A record is held back until a newer row shows that no older one can follow."""
    table = cluster.unique("rows")
    cluster.topics.create({table: 1})
    with cluster.application(_JOIN, {"max.task.idle.ms": "600000"}, ROWS=table) as running:
        cluster.topics.put(running.source, [(b"k", b"event", _START_MS + 1000)])
        running.application.start()
        assert until(lambda: running.application.state is ClientState.RUNNING, TIMEOUT_SECONDS)
        assert until(lambda: "max.task.idle.ms" in _waits_for(running), TIMEOUT_SECONDS)
        cluster.topics.put(table, [(b"k", b"row", _START_MS)])
        assert running.values() == []
        cluster.topics.put(table, [(b"k", b"newer", _START_MS + 2000)])
        assert until(lambda: running.values() == [b"event+row"], TIMEOUT_SECONDS)
        # the newer row is held back: the next record of the stream may be older
        assert until(lambda: _lag(running) == 1, TIMEOUT_SECONDS)
    assert running.application.state is ClientState.NOT_RUNNING


def test_task_continues_after_max_task_idle(cluster: Cluster) -> None:
    table = cluster.unique("rows")
    cluster.topics.create({table: 1})
    with cluster.application(_JOIN, {"max.task.idle.ms": "3000"}, ROWS=table) as running:
        cluster.topics.put(running.source, [(b"k", b"event", _START_MS + 1000)])
        running.application.start()
        running.application.wait_until_idle()
        assert running.values() == [b"event+none"]
        assert until(lambda: _lag(running) == 0, TIMEOUT_SECONDS)


def test_disabled_wait_takes_what_is_there(cluster: Cluster) -> None:
    """`max.task.idle.ms` -1: the first step has equal parts of both topics."""
    table = cluster.unique("rows")
    cluster.topics.create({table: 1})
    with cluster.application(_JOIN, {"max.task.idle.ms": "-1"}, ROWS=table, records_at_once=100) as running:
        cluster.topics.put(table, [(b"other", b"row", _START_MS)] * 200 + [(b"k", b"row", _START_MS)])
        cluster.topics.put(running.source, [(b"k", b"event", _START_MS + 1000)] * 200)
        running.application.start()
        running.application.wait_until_idle()
        values = running.values()
    assert values[0] == b"event+none"
    assert len(values) == 200


def test_order_is_kept_if_the_checkpoint_is_not_on_this_machine(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then the driver does not know the offsets of Spark's batches."""
    monkeypatch.setattr("headwater_spark.driver.queries.query_input.batch_end_offsets", lambda *_: {})
    table = cluster.unique("rows")
    cluster.topics.create({table: 1})
    with cluster.application(_JOIN, ROWS=table, records_at_once=50) as running:
        cluster.topics.put(table, [(b"k", b"%d" % each, _START_MS + each) for each in range(100)])
        cluster.topics.put(running.source, [(b"k", b"event", _START_MS + 1000)] * 100)
        running.application.start()
        running.application.wait_until_idle()
        cluster.topics.put(table, [(b"k", b"last", _START_MS + 2000)])
        cluster.topics.put(running.source, [(b"k", b"event", _START_MS + 3000)])
        running.application.wait_until_idle()
        assert running.values() == [b"event+99"] * 100 + [b"event+last"]


def test_application_that_is_stopped_in_the_middle_continues(cluster: Cluster) -> None:
    """Exactly once: what was held back is read again, and nothing else."""
    table, number = cluster.unique("rows"), 1200
    cluster.topics.create({table: 1})
    config = {"processing.guarantee": "exactly_once_v2"}
    with cluster.application(_JOIN, config, ROWS=table, records_at_once=50) as running:
        cluster.topics.put(table, [(b"k", b"%d" % each, _START_MS + each) for each in range(200)])
        events = [(b"k", b"%d" % each, _START_MS + 1000 + each) for each in range(number)]
        cluster.topics.put(running.source, events)
        running.application.start()
        assert until(lambda: cluster.topics.written(running.sink) > number // 10, TIMEOUT_SECONDS)
        running.application.close()
        assert running.application.state is ClientState.NOT_RUNNING
        assert 0 < len(running.values()) < number
        running.restart()
        running.application.wait_until_idle()
        assert running.values() == [b"%d+199" % each for each in range(number)]


def test_records_that_retention_deletes_are_skipped(cluster: Cluster) -> None:
    table = cluster.unique("rows")
    cluster.topics.create({table: 1})
    with cluster.application(_JOIN, ROWS=table, records_at_once=50) as running:
        cluster.topics.put(table, [(b"k", b"row", _START_MS)] * 200)
        cluster.topics.put(running.source, [(b"k", b"%d" % each, _START_MS + 1000) for each in range(300)])
        cluster.topics.commit(running.id, {running.source: 0, table: 0})
        cluster.topics.delete_records(running.source, 250)
        running.application.start()
        running.application.wait_until_idle()
        assert running.values() == [b"%d+row" % each for each in range(250, 300)]
        assert until(lambda: _lag(running) == 0, TIMEOUT_SECONDS)


def _waits_for(running: RunningApplication) -> str:
    return " ".join(part["waitsFor"] for part in running.application.subtopology_status())


def _lag(running: RunningApplication) -> int | None:
    lags = [part["lag"] for part in running.application.subtopology_status()]
    return None if None in lags else sum(lags)
