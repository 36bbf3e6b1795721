"""SIGKILL and pauses at random moments: output is compared with the input record by record.

In `make test`, `test_expansion_kills` kills processes and the broker.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import groupby
from pathlib import Path

import pytest

from headwater.toolchain.broker import Broker
from tests.runtime.spark.kafka_topics import Topics
from tests.runtime.spark.process_application import (
    TIMEOUT_SECONDS,
    ProcessApplication,
    kill,
    kill_all,
)
from tests.runtime.spark.process_faults import RESTART, Fault, cause_fault
from tests.runtime.spark.processes import jvm

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.soak,
    pytest.mark.timeout(3000),
]

_RECORDS = 6_000
_BATCH, _SMALL_BATCH = 400, 100
"""The most records of a batch."""
_RECORDS_OF_A_FAULT = 300
_LOCAL, _CLUSTER = "local[2]", "local-cluster[2,1,1024]"

_WINDOW_MS = 2_000
_IN_WINDOWS = f"""
application:
  id: counted
  config:
    processing.guarantee: GUARANTEE
    statestore.cache.max.bytes: 0
topology:
  - stream: {{topic: in, serdes: {{key: string, value: string}}}}
  - selectKey: {{key: "split(value, '-')[0]"}}
  - to: {{topic: passed}}
  - stream: {{topic: passed, serdes: {{key: string, value: string}}}}
  - groupByKey:
  - windowedBy: {{tumbling: {{size: {_WINDOW_MS}ms, grace: 24h}}}}
  - count: {{materialized: counts}}
  - toStream:
  - to: {{topic: counted, serdes: {{key: time-windowed, value: long}}}}
"""
"""The second sub-topology counts in columns, also small batches: its source has one writer."""
_SEQUENCE = bytes(4)
"""The end of a window's key in the changelog topic."""

Open = Callable[..., AbstractContextManager[ProcessApplication]]


@pytest.fixture
def open_application(own_broker: Callable[[], Broker], spark_jars: tuple[str, ...], tmp_path: Path) -> Open:
    @contextmanager
    def open_(guarantee: str = "exactly_once_v2", document: str = "") -> Iterator[ProcessApplication]:
        with own_broker() as broker:
            topics = Topics(broker.bootstrap_servers)
            application = ProcessApplication(broker, topics, tmp_path, spark_jars, guarantee)
            application.document = document or application.document
            application.set_up()
            yield application

    return open_


@pytest.fixture
def application(open_application: Open) -> Iterator[ProcessApplication]:
    """An application with input for many batches."""
    with open_application() as application:
        application.feed(_RECORDS)
        yield application


_KILLS = 3


def _kill_points(application: ProcessApplication, seed: int, number: int) -> list[int]:
    """Return the numbers of output records at which a process is killed."""
    return sorted(random.Random(seed).sample(range(1, application.fed * 9 // 10), number))  # noqa: S311


@pytest.mark.parametrize("seed", range(1, 11))
def test_results_are_exact_after_kills_of_the_driver(application: ProcessApplication, seed: int) -> None:
    for least in _kill_points(application, seed, _KILLS):
        with application.run() as process:
            application.await_counted(least, process)
            assert process.poll() is None, application.log()
            kill_all(process)
    application.finish()
    application.check_results()
    application.check_log()


@pytest.mark.parametrize("seed", range(21, 32))
def test_results_are_exact_after_kills_of_the_jvm_alone(application: ProcessApplication, seed: int) -> None:
    """The driver's process notices it and ends with exit code 75, so that it is started again."""
    for least in _kill_points(application, seed, _KILLS):
        with application.run() as process:
            application.await_counted(least, process)
            assert process.poll() is None, application.log()
            assert kill(jvm(process.pid))
            assert process.wait(TIMEOUT_SECONDS) == RESTART, application.log()
    application.finish()
    application.check_results()


_EXECUTOR_KILLS = 8


@pytest.mark.parametrize("guarantee", ["exactly_once_v2", "at_least_once"])
def test_every_record_is_processed_as_guaranteed_after_kills_of_executors(
    open_application: Open, guarantee: str
) -> None:
    """One of two executors is killed at a time, while a batch runs; Spark starts another one.

    In `make test`, `runtime/hosts/test_hosts` kills one.
    """
    draw = random.Random(_EXECUTOR_KILLS)  # noqa: S311
    with open_application(guarantee) as application:
        application.feed(_RECORDS)
        with application.run(_CLUSTER) as process:
            for least in _kill_points(application, _EXECUTOR_KILLS, _EXECUTOR_KILLS):
                application.await_counted(least, process)
                assert process.poll() is None, application.log()
                cause_fault(Fault.EXECUTOR, application, process, draw)
            assert process.wait(TIMEOUT_SECONDS) == 0, application.log()
        if guarantee == "exactly_once_v2":
            application.check_results()
        else:
            application.check_at_least_once(_EXECUTOR_KILLS, _BATCH)


def test_results_are_exact_after_loss_of_checkpoint_and_state(application: ProcessApplication) -> None:
    """Committed offsets are in Kafka; state is restored from the changelogs."""
    with application.run() as process:
        application.await_counted(application.fed // 3, process)
        assert process.poll() is None, application.log()
        kill_all(process)
    for name in ("checkpoint", "state"):
        (application.folder / name).rename(application.folder / f"lost-{name}")
    application.finish()
    application.check_results()


_SHORT_SERIES = (Fault.JVM_AND_DISK, Fault.WORKER, Fault.BROKER_KILL, Fault.BROKER_PAUSE)


def _faults(seed: int, number: int) -> Sequence[Fault]:
    """Return `number` faults, those that need executors last."""
    kinds = [fault for fault in Fault if fault is not Fault.EXECUTOR]
    local = [kinds[each % len(kinds)] for each in range(1, number + 1)]
    random.Random(seed).shuffle(local)  # noqa: S311
    with_executors = number // 5
    return [*local[: number - with_executors], *[Fault.EXECUTOR] * with_executors]


_SERIES = [
    pytest.param(1, _SHORT_SERIES, "exactly_once_v2", id="4 faults"),
    pytest.param(2, _faults(2, 50), "exactly_once_v2", id="50 faults"),
    pytest.param(3, _faults(3, 50), "at_least_once", id="50 faults, at least once"),
]


@pytest.mark.parametrize(("seed", "faults", "guarantee"), _SERIES)
def test_results_are_exact_after_a_series_of_faults(
    open_application: Open, seed: int, faults: Sequence[Fault], guarantee: str
) -> None:
    draw = random.Random(seed)  # noqa: S311
    with open_application(guarantee) as application:
        for master, some in groupby(faults, _master):
            _suffer(application, master, list(some), draw)
        if guarantee == "at_least_once" or not application.has_all_results():
            application.finish()
        if guarantee == "exactly_once_v2":
            application.check_results()
        else:
            application.check_at_least_once(len(faults), _SMALL_BATCH)
        application.check_log()


@pytest.mark.parametrize("seed", [4])
@pytest.mark.parametrize("faults", [_faults(4, 20)], ids=["20 faults"])
def test_counts_in_windows_are_exact_after_a_series_of_faults(
    open_application: Open, seed: int, faults: Sequence[Fault]
) -> None:
    draw = random.Random(seed)  # noqa: S311
    with open_application(document=_IN_WINDOWS) as application:
        for master, some in groupby(faults, _master):
            _suffer(application, master, list(some), draw)
        if not application.has_all_results():
            application.finish()
        application.check_passed()
        _check_windows(application)
        application.check_log()


def _check_windows(application: ProcessApplication) -> None:
    """Check that each record was counted once in its window, in the output and in the changelog topic."""
    numbers: Counter[bytes] = Counter()
    for _, _, _, time, key, _, _ in application.topics.get("passed"):
        numbers[(key or b"") + (time - time % _WINDOW_MS).to_bytes(8, "big")] += 1
    for topic, end in (("counted", b""), ("counted-counts-changelog", _SEQUENCE)):
        found: dict[bytes, list[int]] = {}
        for _, _, _, _, key, value, _ in application.topics.get(topic):
            found.setdefault(key or b"", []).append(int.from_bytes(value or b"", "big"))
        assert found == {key + end: list(range(1, number + 1)) for key, number in numbers.items()}, topic


def _master(fault: Fault) -> str:
    return _CLUSTER if fault is Fault.EXECUTOR else _LOCAL


def _suffer(
    application: ProcessApplication, master: str, faults: Sequence[Fault], draw: random.Random
) -> None:
    """Run the application, and let it suffer the faults; it is started again when its process has ended.

    A process that has not ended is stopped when all results are written.
    """
    remaining = list(faults)
    while remaining:
        with application.run(master, until_idle=False, max_records=_SMALL_BATCH) as process:
            while remaining and process.poll() is None:
                before = application.counted()
                application.feed(_RECORDS_OF_A_FAULT)
                application.await_counted(before + draw.randrange(1, _RECORDS_OF_A_FAULT // 2), process)
                assert process.poll() is None, application.log()
                cause_fault(remaining.pop(0), application, process, draw)
            if process.poll() is None:
                application.await_results(process)
                application.stop(process)
