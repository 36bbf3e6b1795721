"""Workers, executors, drivers and brokers fail while a batch is processed whose records are packed.

The other tests of faults have small batches, which Spark passes on row by row.
"""

import logging
import os
import random
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import DataFrame

from headwater.toolchain.broker import Broker
from headwater_spark.driver.input.sources import RECORDS_AT_ONCE
from headwater_spark.driver.queries import row_distribution
from headwater_spark.driver.queries.row_distribution import FEWEST_PACKED
from headwater_spark.spark_internals.packing import RecordPacking
from tests.runtime.spark.applications import TIMEOUT_SECONDS, Cluster, RunningApplication
from tests.runtime.spark.kafka_topics import Topics
from tests.runtime.spark.open_transactions import cause_in_transaction, feed_and_stop
from tests.runtime.spark.process_application import TIMEOUT_SECONDS as PROCESS_SECONDS
from tests.runtime.spark.process_application import ProcessApplication
from tests.runtime.spark.process_faults import Fault
from tests.runtime.spark.processes import python_workers

if TYPE_CHECKING:
    import subprocess

_log = logging.getLogger(__name__)
pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(3000)]

_RECORDS, _KEYS = 40_000, 50
"""Records of a batch, more than `FEWEST_PACKED`."""
_ATTEMPTS = 5
_TIME_MS = 1_700_000_000_000
_PAUSE_SECONDS = 0.002
"""A batch writes its records in some tenths of a second."""


_COUNT = """
  - stream: {topic: IN, as: read, serdes: {key: string, value: string}}
  - to: {topic: PASSED}
  - selectKey: {from: read, key: value}
  - groupByKey:
  - count: {materialized: counts}
  - toStream:
  - to: {topic: OUT, serdes: {key: string, value: long}}
"""
"""Spark SQL does not evaluate the first sub-topology, as it has two sinks."""
_COUNT_OF_TWO = _COUNT.replace(
    "  - stream: {topic: IN, as: read, serdes: {key: string, value: string}}\n",
    """  - stream: {topic: IN, as: left, serdes: {key: string, value: string}}
  - stream: {topic: OTHER, as: right, serdes: {key: string, value: string}}
  - merge: {from: left, with: right, as: read}
""",
)
_COUNT_BY_KEY = """
  - stream: {topic: IN, serdes: {key: string, value: string}}
  - groupByKey:
  - count: {materialized: counts}
  - toStream:
  - to: {topic: OUT, serdes: {key: string, value: long}}
"""
_STEP = 2 * FEWEST_PACKED
"""Records of a step: a larger batch is read in steps."""
_REPARTITION = "counts-repartition"
_WRITTEN = [
    pytest.param(
        _COUNT_BY_KEY, "", "exactly_once_v2", id="steps of one topic, exactly once", marks=pytest.mark.soak
    ),
    pytest.param(_COUNT_OF_TWO, _REPARTITION, "exactly_once_v2", id="steps of two topics, exactly once"),
    pytest.param(
        _COUNT_OF_TWO,
        _REPARTITION,
        "at_least_once",
        id="steps of two topics, at least once",
        marks=pytest.mark.soak,
    ),
    pytest.param(
        _COUNT_BY_KEY, "", "at_least_once", id="steps of one topic, at least once", marks=pytest.mark.soak
    ),
    *(
        pytest.param(_COUNT, topic, guarantee, id=f"{of} sub-topology, {name}", marks=pytest.mark.soak)
        for of, topic, guarantee, name in (
            ("first", _REPARTITION, "at_least_once", "at least once"),
            ("second", "", "at_least_once", "at least once"),
            ("first", _REPARTITION, "exactly_once_v2", "exactly once"),
            ("second", "", "exactly_once_v2", "exactly once"),
        )
    ),
]


class _ObservedPacking(RecordPacking):
    """Records in `batches` whether records were packed, in `steps` whether steps were read without a plan."""

    batches: list[bool]
    steps: list[bool]

    def packed(self, *arguments: Any, **options: Any) -> DataFrame | None:  # noqa: ANN401 - as the original
        found = super().packed(*arguments, **options)
        self.batches.append(found is not None)
        return found

    def packed_ranges(self, *arguments: Any, **options: Any) -> DataFrame | None:  # noqa: ANN401 - as the original
        found = super().packed_ranges(*arguments, **options)
        self.steps.append(found is not None)
        return found


@pytest.mark.parametrize(("topology", "written", "guarantee"), _WRITTEN)
def test_records_are_counted_as_guaranteed_after_a_kill_of_the_workers_in_a_packed_batch(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, topology: str, written: str, guarantee: str
) -> None:
    """They are killed when they have written a part of the batch or of its first step.

    The second sub-topology merges writers.
    """
    batches, steps = list[bool](), list[bool]()
    monkeypatch.setattr(_ObservedPacking, "batches", batches, raising=False)
    monkeypatch.setattr(_ObservedPacking, "steps", steps, raising=False)
    monkeypatch.setattr(row_distribution, "RecordPacking", _ObservedPacking)
    passed, other = cluster.unique("passed"), cluster.unique("other")
    cluster.topics.create({passed: 2, other: 2})
    config = {"processing.guarantee": guarantee}
    is_in_steps = topology != _COUNT
    at_once = _STEP if is_in_steps else _RECORDS
    with cluster.application(
        topology,
        config,
        partitions=2,
        records_at_once=_STEP if is_in_steps else RECORDS_AT_ONCE,
        PASSED=passed,
        OTHER=other,
    ) as running:
        topic = running.topic(written) if written else running.sink
        inputs = [
            (name, each)
            for name in (running.source, *[other] * (topology == _COUNT_OF_TWO))
            for each in range(2)
        ]
        fed = 0
        for _ in range(_ATTEMPTS):
            for name, partition in inputs:
                # No key is in both partitions.
                keys = [b"%d" % ((2 * at + partition) % _KEYS) for at in range(_RECORDS // len(inputs))]
                cluster.topics.put(name, [(key, key, _TIME_MS) for key in keys], partition)
            fed += _RECORDS
            before = 0 if fed == _RECORDS else cluster.topics.appended(topic)
            running.restart()
            is_killed = _kill_workers_in_batch(cluster.topics, topic, before, at_once)
            running.application.wait_until_idle()
            if is_killed:
                break
        assert is_killed, "each batch was written before the workers were stopped"
        _check_counts(running, fed, exactly_once=guarantee == "exactly_once_v2")
    if is_in_steps:
        assert len(steps) >= 3, "two steps, and a repeated one"
        assert all(steps)
    else:
        assert len(batches) >= 3, "a batch of each sub-topology, and a repeated one"
        assert all(batches)


def _kill_workers_in_batch(topics: Topics, topic: str, before: int, records: int) -> bool:
    """Kill all Python workers when a part of a batch is in the topic; return False if all `records` are."""
    due = time.monotonic() + TIMEOUT_SECONDS
    while topics.appended(topic) <= before:
        assert time.monotonic() < due, "no batch was processed"
        time.sleep(_PAUSE_SECONDS)
    workers = python_workers(os.getpid())
    _signal(workers, signal.SIGSTOP)
    is_in_batch = topics.appended(topic) < before + records
    _signal(workers, signal.SIGKILL if is_in_batch else signal.SIGCONT)
    return is_in_batch


def _signal(processes: Sequence[int], number: signal.Signals) -> None:
    for each in processes:
        with suppress(ProcessLookupError):
            os.kill(each, number)


def _check_counts(running: RunningApplication, fed: int, *, exactly_once: bool) -> None:
    """Check that each record is counted once, or at least once and again for the killed batch only."""
    found: dict[bytes | None, list[int]] = defaultdict(list)
    for record in running.cluster.topics.get(running.sink):
        found[record[4]].append(int.from_bytes(record[5] or b"", "big"))
    expected = fed // _KEYS
    if exactly_once:
        assert found == {b"%d" % key: list(range(1, expected + 1)) for key in range(_KEYS)}
        return
    last = {key: counts[-1] for key, counts in found.items()}
    assert len(last) == _KEYS
    assert min(last.values()) >= expected, last
    # Both tasks were killed: their records are written to the repartition topic again, or counted again.
    assert sum(last.values()) <= fed + _RECORDS, last


_FIRST = int(os.environ.get("HEADWATER_FUZZ_SEED", "1"))
_SERIES = int(os.environ.get("HEADWATER_FUZZ_EXAMPLES", "2"))
_NUMBER, _FED = 10, 2 * FEWEST_PACKED
"""So many records are written at once, so each batch of the source topic is large enough to be packed."""
_MOST = 50 * _FED
"""No batch ends within these records: the rest could be too small to be packed."""
_CLUSTER = "local-cluster[2,1,1024]"
_FAULTS = (Fault.EXECUTOR, Fault.WORKER, Fault.BROKER_KILL, Fault.DRIVER, Fault.BROKER_PAUSE)
_PASSED = "passed"
"""Only the first sub-topology writes to it."""


@pytest.fixture
def application(
    own_broker: Callable[[], Broker],
    spark_jars: tuple[str, ...],
    tmp_path: Path,
) -> Iterator[ProcessApplication]:
    with own_broker() as broker:
        topics = Topics(broker.bootstrap_servers)
        created = ProcessApplication(broker, topics, tmp_path, spark_jars)
        created.set_up()
        yield created


@pytest.mark.soak  # in small batches: `runtime/hosts/test_hosts`
def test_every_record_is_processed_once_after_a_kill_of_an_executor_in_a_transaction(
    application: ProcessApplication,
) -> None:
    """The Python worker of the killed executor continues, and may commit its part of the batch."""
    _process_with_faults(application, [Fault.EXECUTOR], random.Random(_FIRST))  # noqa: S311 - the same faults in each run


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(_FIRST, _FIRST + _SERIES))
def test_every_record_is_processed_once_after_faults_in_packed_batches(
    application: ProcessApplication, seed: int
) -> None:
    """Executors, Python workers and the driver are killed, the broker is killed or paused."""
    draw = random.Random(seed)  # noqa: S311 - the same series in each run
    faults = [_FAULTS[each % len(_FAULTS)] for each in range(_NUMBER)]
    draw.shuffle(faults)
    _process_with_faults(application, faults, draw)


def _process_with_faults(
    application: ProcessApplication, faults: Sequence[Fault], draw: random.Random
) -> None:
    """Cause faults, each within a transaction of a packed batch, and check all results.

    Executors and workers of this transaction are killed. The driver continues after the last fault, unless it
    was killed: then it is started again.
    """
    left = list(faults)
    while left:
        logged = application.log_size() if application.fed else 0
        with _running(application) as process:
            while left and process.poll() is None:
                owner = feed_and_stop(
                    application,
                    process,
                    _PASSED,
                    partial(application.feed_at_once, _FED),
                    partial(draw.randrange, 1, _FED),
                )
                _log.info("fault: %s", left[0].value)
                cause_in_transaction(left.pop(0), application, process, owner, draw)
            if process.poll() is None:
                application.await_results(process)
                application.stop(process)
        written = (application.folder / "run.log").read_bytes()[logged:]
        assert b"records packed" in written
    if not application.has_all_results():
        with _running(application, until_idle=True) as process:
            assert process.wait(PROCESS_SECONDS) == 0, application.log()
    assert not [line for line in application.log_lines() if "not packed" in line]
    application.check_results()
    application.check_changelog()
    application.check_log()


def _running(
    application: ProcessApplication, *, until_idle: bool = False
) -> AbstractContextManager["subprocess.Popen[bytes]"]:
    return application.run(
        _CLUSTER, until_idle=until_idle, max_records=_MOST, options=("--log-level", "debug")
    )
