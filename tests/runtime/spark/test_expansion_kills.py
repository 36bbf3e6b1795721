"""KIP-287: SIGKILL at random instants while processors are added under load.

Each record is processed once, in the order of its key, and counted once; joins have the rows of a run that
never scaled.
"""

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Collection
from contextlib import suppress
from enum import Enum
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import pytest
import structlog

from headwater.toolchain.broker import Broker
from headwater.toolchain.broker.readiness import until
from tests.control.conftest import HttpClient
from tests.runtime.spark.growing_processes import (
    DOCUMENT,
    GrowingApplication,
    await_running,
    processors_status,
    running,
)
from tests.runtime.spark.joined_tables import TOPOLOGY, JoinedTables
from tests.runtime.spark.kafka_topics import Topics
from tests.runtime.spark.process_application import (
    TIMEOUT_SECONDS,
    kill,
    kill_all,
    kill_driver,
    kill_worker,
)
from tests.runtime.spark.process_faults import Fault, cause_fault
from tests.runtime.spark.processes import executors

if TYPE_CHECKING:
    import subprocess

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(3600)]

_log = structlog.get_logger(__name__)
_WRITE_SECONDS = 1.0
_FEW = 100
"""The most records of a batch, so that faults happen within several batches."""


@attrs.define(kw_only=True)
class ExpandingApplication(GrowingApplication):
    """Counts records, and joins `tables` by foreign keys. It has two processors at first.

    Without tables, all its stores are read by key only: entries that moved are deleted after the cut. `most`
    is the number of partitions that its topics get.
    """

    tables: JoinedTables | None
    draw: random.Random
    most: int
    _written_at: float = 0.0

    def set_up(self) -> None:
        super().set_up()
        if self.tables is not None:
            (self.folder / "document.yaml").write_text(DOCUMENT + TOPOLOGY.replace("APP", "counted"))
            self.tables.create(2)
        self.write()

    def expand_topics(self) -> None:
        """Add partitions when the first records are processed, with two processors."""
        for topic in ("in", "counted", "regions"):
            self.topics.expand(topic, self.most)
        self.topics.expand("counted-regions-repartition", self.most)
        if self.tables is not None:
            self.tables.expand(self.most)

    def write(self) -> None:
        """Write records under which processors are added, unless that was done just now."""
        if time.monotonic() - self._written_at >= _WRITE_SECONDS:
            self.feed(40)
            if self.tables is not None:
                self.tables.change(20)
            self._written_at = time.monotonic()

    def writes_to(self, process: "subprocess.Popen[bytes]") -> bool:
        """Write records, unless that was done just now; return whether the process runs."""
        self.write()
        return process.poll() is None

    def has_all_results(self) -> bool:
        return super().has_all_results() and (
            self.tables is None or self.tables.results() == self.tables.expected()
        )

    def check_results(self) -> None:
        super().check_results()
        if self.tables is not None:
            assert self.tables.results() == self.tables.expected()


class Instant(Enum):
    """From when on the random time is counted after which the application is killed."""

    START = "start"
    REQUEST = "request"
    CUT = "cut"


_KILLS = 30
_SEED = int(os.environ.get("HEADWATER_FUZZ_SEED", "2"))
_SECONDS_FROM_CUT = 6.0
"""The cut takes about three seconds."""
_MOST_SECONDS = {Instant.START: 25.0, Instant.REQUEST: 25.0, Instant.CUT: _SECONDS_FROM_CUT}
_ATTEMPTS = 3
"""How often an application is expanded again whose cut has begun before it was killed."""


def _expand_and_kill(application: ExpandingApplication, instant: Instant) -> dict[str, Any]:
    """Start the application, let it add processors, and kill it; return its status just before."""
    with running(application) as (process, logged):
        endpoint = None
        if instant is not Instant.START:
            endpoint = await_running(application, logged)
            status = processors_status(endpoint)
            if status["target"] is None:
                answer = endpoint.post("/control/processors", {"processors": 2 * status["processors"]})
                assert answer.status == HTTPStatus.OK, answer
            if instant is Instant.CUT:
                _await_phase(("cut", "idle"), application, process, endpoint)
        seconds = application.draw.uniform(0, _MOST_SECONDS[instant])
        until(lambda: not application.writes_to(process), seconds)
        assert process.poll() is None, application.log()
        status = processors_status(endpoint or application.endpoint(logged))
        kill_all(process)
    return status


def _await_phase(
    phases: Collection[str],
    application: ExpandingApplication,
    process: "subprocess.Popen[bytes]",
    endpoint: HttpClient,
) -> dict[str, Any]:
    """Write records until the expansion has one of the phases; return its status."""

    def status_in_phase() -> dict[str, Any] | None:
        assert application.writes_to(process), application.log()
        status = processors_status(endpoint)
        return status if status.get("phase") in phases else None

    status = until(status_in_phase, TIMEOUT_SECONDS)
    assert status, application.log()
    return status


def _complete(application: ExpandingApplication) -> int:
    """Run the application until no expansion is incomplete and all records are processed.

    Return the number of processors.
    """
    with running(application) as (process, logged):
        return _end(application, process, await_running(application, logged))


def _end(application: ExpandingApplication, process: "subprocess.Popen[bytes]", endpoint: HttpClient) -> int:
    """Wait for the end of the expansion and for all results, then stop; return the number of processors."""
    status = _await_phase(("idle",), application, process, endpoint)
    assert not status.get("problems", True), status
    until(lambda: process.poll() is not None or application.has_all_results(), TIMEOUT_SECONDS)
    process.send_signal(signal.SIGTERM)
    assert process.wait(TIMEOUT_SECONDS) == os.EX_OK, application.log()
    return int(status["processors"])


def _application(
    broker: Broker,
    folder: Path,
    jars: tuple[str, ...],
    draw: random.Random,
    most: int,
    *,
    has_tables: bool = True,
) -> ExpandingApplication:
    """Return an application with two processors, whose topics have `most` partitions."""
    topics = Topics(broker.bootstrap_servers, keeps_producer=True)
    tables = JoinedTables("counted", topics, draw) if has_tables else None
    application = ExpandingApplication(broker, topics, folder, jars, tables=tables, draw=draw, most=most)
    application.set_up()
    return application


def _started_application(
    broker: Broker,
    folder: Path,
    jars: tuple[str, ...],
    draw: random.Random,
    most: int,
    *,
    has_tables: bool = True,
) -> ExpandingApplication:
    """Return the same when it has processed some records and its topics have more partitions."""
    application = _application(broker, folder, jars, draw, most, has_tables=has_tables)
    application.finish()
    application.expand_topics()
    return application


def _check_results(application: ExpandingApplication, processors: int) -> None:
    """Check all results and the changelog topics."""
    application.check_results()
    application.check_log()
    joined = ("named", "named-subscription-store", "placed", "customers")
    for name in ("counts", "regions", *(joined if application.tables is not None else ())):
        assert application.topics.partitions(f"counted-{name}-changelog") == processors, name


@pytest.mark.soak
@pytest.mark.parametrize("has_tables", [True, False], ids=["counts and joins", "counts"])
def test_nothing_is_lost_or_repeated_by_kills_at_random_times_while_processors_are_added(
    own_broker: Callable[[], Broker],
    spark_jars: tuple[str, ...],
    tmp_path: Path,
    has_tables: bool,  # noqa: FBT001 - parameter of a test
) -> None:
    draw = random.Random(_SEED)  # noqa: S311
    phases: Counter[str] = Counter()
    while phases.total() < _KILLS:
        folder = tmp_path / str(phases.total())
        folder.mkdir()
        with own_broker() as broker:
            application = _started_application(
                broker, folder, spark_jars, draw, most=16, has_tables=has_tables
            )
            processors = 2
            while phases.total() < _KILLS and processors < application.most:
                instant = draw.choices(list(Instant), (2, 3, 5))[0]
                status = _expand_and_kill(application, instant)
                processors = status.get("processors") or processors
                phases[status.get("phase", "start")] += 1
                _log.info("killed", number=phases.total(), instant=instant, **status)
            _check_results(application, _complete(application))
    assert phases["cut"], phases


def test_nothing_is_lost_or_repeated_by_kills_while_processors_are_added(
    own_broker: Callable[[], Broker], spark_jars: tuple[str, ...], tmp_path: Path
) -> None:
    """The driver is killed while an added processor restores its state.

    A Python worker is killed when partitions were added, and in each phase of the second run. Then the broker
    is killed and paused, and Spark's JVM is killed. Each start takes more than ten seconds of CPU time, so
    `make test` has no other series of faults. Without Spark, `runtime/driver/test_expansions_on_a_broker`
    kills at each step, also with joins.
    """
    for attempt in range(_ATTEMPTS):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        with own_broker() as broker:
            application = _application(
                broker,
                folder,
                spark_jars,
                random.Random(3),  # noqa: S311
                most=4,
                has_tables=False,
            )
            if _is_killed_in_warm_up(application):
                with running(application, max_records=_FEW) as (process, logged):
                    endpoint = await_running(application, logged)
                    for phases in (("catch-up", "cut", "idle"), ("cut", "idle")):
                        _await_phase(phases, application, process, endpoint)
                        kill_worker(process)
                    status = _await_phase(("idle",), application, process, endpoint)
                    assert (status["processors"], status["problems"]) == (4, []), status
                    _kill_broker_and_jvm(application, process)
                _check_results(application, 4)
                return
    raise AssertionError(f"each of {_ATTEMPTS} applications was killed too late")


def _kill_broker_and_jvm(application: ExpandingApplication, process: "subprocess.Popen[bytes]") -> None:
    """Kill and pause the broker while records are processed; at the end, kill Spark's JVM alone."""
    application.topics = Topics(application.broker.bootstrap_servers)  # it keeps no producer
    for fault in (Fault.BROKER_KILL, Fault.BROKER_PAUSE):
        before = application.counted()
        application.feed(4 * _FEW)
        application.await_counted(before + 1, process)
        cause_fault(fault, application, process, application.draw)
    application.await_results(process)
    cause_fault(Fault.JVM, application, process, application.draw)


def _is_killed_in_warm_up(application: ExpandingApplication) -> bool:
    """Run the application, expand its topics, and kill it while an added processor restores its state.

    The driver is killed alone. Return whether the cut had not begun when the status was read: a busy machine
    may read it later.
    """
    folders = application.folder / "state" / "counted"
    with running(application) as (process, logged):
        endpoint = await_running(application, logged)
        application.await_results(process)
        application.expand_topics()
        kill_worker(process)

        def is_warm() -> bool:
            status = processors_status(endpoint)
            if status.get("processors") == 2 and status["target"] is None:
                with suppress(OSError):  # as while the status is read
                    endpoint.post("/control/processors", {"processors": 4})
            return not application.writes_to(process) or any(folders.glob("*_2/data.mdb"))

        assert until(is_warm, TIMEOUT_SECONDS), application.log()
        assert process.poll() is None, application.log()
        status = processors_status(endpoint)
        kill_driver(process)
    _log.info("killed", **status)
    return (status.get("phase"), status.get("processors")) == ("catch-up", 2)


def _kill_executor(process: "subprocess.Popen[bytes]") -> None:
    assert until(lambda: any(map(kill, executors(process.pid)[:1])), TIMEOUT_SECONDS), "no executor"


@pytest.mark.soak
@pytest.mark.parametrize(
    ("kill_one", "options"),
    [
        pytest.param(kill_worker, (), id="Python workers"),
        pytest.param(_kill_executor, ("--master", "local-cluster[2,1,1024]"), id="executors"),
    ],
)
def test_nothing_is_lost_or_repeated_by_kills_of_workers_while_processors_are_added(
    own_broker: Callable[[], Broker],
    spark_jars: tuple[str, ...],
    tmp_path: Path,
    kill_one: Callable[["subprocess.Popen[bytes]"], None],
    options: tuple[str, ...],
) -> None:
    """One is killed in catch-up, one in the cut or later, and one after it. The driver is not restarted."""
    with own_broker() as broker:
        application = _started_application(broker, tmp_path, spark_jars, random.Random(4), most=4)  # noqa: S311
        with running(application, options=options) as (process, logged):
            endpoint = await_running(application, logged)
            answer = endpoint.post("/control/processors", {"processors": 4})
            assert answer.status == HTTPStatus.OK, answer
            for phases in (("catch-up",), ("cut", "idle"), ("idle",)):
                _await_phase(phases, application, process, endpoint)
                kill_one(process)
            assert _end(application, process, endpoint) == 4
        _check_results(application, 4)
