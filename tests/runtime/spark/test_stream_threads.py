"""Stream threads of a running application on a real broker (KIP-663), and the handlers of their failures."""

import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest

from headwater.kafka.pending_requests import in_background
from headwater.model.problems import ProblemCode, ProblemsError
from headwater.toolchain.broker import Broker
from headwater.toolchain.broker.readiness import until
from headwater_spark.driver.states import ClientState, QueryState
from headwater_spark.driver.threads.stream_threads import StreamThreads
from headwater_spark.stream_threads import RemovalTimeoutError
from tests.bench.runtime.thread_changes import (
    batches_until_added,
    batches_until_removed,
    recorded_batches,
)
from tests.runtime.spark.applications import (
    COUNT,
    MAP,
    TIMEOUT_SECONDS,
    Cluster,
    RunningApplication,
    do_not_notice_each_other,
)
from tests.runtime.spark.batch_results import Results
from tests.runtime.spark.kafka_topics import Topics
from tests.runtime.spark.thread_classes import AddsThread, RemovesThread

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(900)]

CONTROLLED = """
  - stream: {topic: IN, serdes: {key: string, value: string}}
  - process: {class: "tests.runtime.spark.thread_classes:Controlled"}
  - to: {topic: OUT, serdes: {key: string, value: string}}
"""
COUNT_BY_KEY = """
  - stream: {topic: IN, serdes: {key: string, value: string}}
  - groupByKey:
  - count: {materialized: counts}
  - toStream:
  - to: {topic: OUT, serdes: {key: string, value: long}}
"""
_HANDLERS = "tests.runtime.spark.thread_classes"


def _names(running: RunningApplication) -> list[str]:
    return [thread.name for thread in running.application.threads()]


def _put_all(running: RunningApplication, *values: bytes, partitions: int) -> None:
    for partition in range(partitions):
        running.feed(*values, partition=partition)


@contextmanager
def _paused(running: RunningApplication) -> Iterator[None]:
    """Stop the queries, and let them start again after the block."""
    for query in running.application.queries.values():
        query.pause()
    try:
        yield
    finally:
        for query in running.application.queries.values():
            query.resume()


@contextmanager
def _blocked(running: RunningApplication, file: Path) -> Iterator[None]:
    """Let a batch run inside the block; it ends after it."""
    file.touch()
    try:
        running.feed(b"block %s" % str(file).encode())
        assert until(file.with_suffix(".entered").exists, TIMEOUT_SECONDS)
        yield
    finally:
        file.unlink()


def test_threads_are_added_and_removed_while_the_application_runs(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names, reused indices, states, and that tasks run on the threads that are alive; 1, 3, 0, 2 threads."""
    results = Results(monkeypatch)
    config = {"num.stream.threads": "1", "client.id": "client-a"}
    with cluster.application(COUNT, config, partitions=2) as running:
        application = running.application
        assert application.add_stream_thread() is None, "CREATED"
        _put_all(running, b"a", b"b", partitions=2)  # one batch reads both partitions
        application.start()
        application.wait_until_idle()
        assert results.threads == {"1"}
        assert max(len(batch) for batch in results.batches) > 1, "tasks share the thread"

        assert application.add_stream_thread() == "client-a-StreamThread-2"
        assert application.add_stream_thread() == "client-a-StreamThread-3"
        assert until(lambda: application.state is ClientState.RUNNING, TIMEOUT_SECONDS)
        results.batches.clear()
        with _paused(running):  # one batch reads both partitions
            _put_all(running, b"a", b"c", partitions=2)
        application.wait_until_idle()
        assert len(results.threads) > 1
        assert results.threads <= {"1", "2", "3"}

        assert application.remove_stream_thread() == "client-a-StreamThread-1"
        assert application.add_stream_thread() == "client-a-StreamThread-1"
        removed = [application.remove_stream_thread(TIMEOUT_SECONDS) for _ in range(3)]
        assert removed == [f"client-a-StreamThread-{index}" for index in (2, 3, 1)]
        assert application.remove_stream_thread() is None
        assert application.threads() == ()

        results.batches.clear()
        _put_all(running, b"a", partitions=2)
        waiting = "an idle stream thread"
        assert until(
            lambda: any(waiting in part["waitsFor"] for part in application.subtopology_status()),
            TIMEOUT_SECONDS,
        )
        assert until(lambda: application.state is ClientState.RUNNING, TIMEOUT_SECONDS)
        assert results.batches == []
        assert [application.add_stream_thread() for _ in range(2)] == [
            f"client-a-StreamThread-{index}" for index in (1, 2)
        ]
        application.wait_until_idle()
        assert results.threads <= {"1", "2"}
        counts = [int.from_bytes(value or b"", "big") for value in running.values()]
        assert (len(counts), max(counts)) == (10, 6)

        running.restart()
        assert _names(running) == ["client-a-StreamThread-1"], "num.stream.threads applies"


@pytest.mark.soak  # without Spark: `runtime/driver/test_thread_settings`
def test_number_of_threads_is_that_of_the_slots_if_it_is_not_configured(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = Results(monkeypatch)
    with cluster.application(MAP, partitions=5, VALUE="string") as running:
        running.application.start()
        _put_all(running, b"1", partitions=5)
        running.application.wait_until_idle()
        assert len(_names(running)) == running.application.slots == 4
        assert all(f"-StreamThread-{n + 1}" in name for n, name in enumerate(_names(running)))
        assert results.threads <= {"1", "2", "3", "4"}
        with _paused(running):
            _put_all(running, b"2", partitions=5)
        assert until(lambda: len(running.values()) == 10, TIMEOUT_SECONDS)
        assert results.threads <= {"1", "2", "3", "4"}, "a restarted query reports its threads, too"


def test_record_cache_is_divided_again_after_each_change(cluster: Cluster) -> None:
    """Ten keys are in the cache of one thread, so each is written once; they are not in the half of it."""
    config = {"num.stream.threads": "1", "statestore.cache.max.bytes": "1500"}
    with cluster.application(COUNT_BY_KEY, config) as running:
        running.application.start()
        assert [_updates(running, threads) for threads in (2, 1)] == [20, 10]


def _updates(running: RunningApplication, threads: int) -> int:
    """Return the number of updates of one batch with ten keys, twice each."""
    application, topics = running.application, running.cluster.topics
    assert until(lambda: application.state is ClientState.RUNNING, TIMEOUT_SECONDS)
    while application.remove_stream_thread() is not None:
        pass
    before = len(running.values())
    # The first record is a batch that waits for a thread. The others are all in the next one.
    topics.put(running.source, [(b"first", b"", 1_700_000_000_000)])
    assert until(
        lambda: any("stream thread" in part["waitsFor"] for part in _parts(running)), TIMEOUT_SECONDS
    )
    topics.put(running.source, [(b"%d" % (each % 10), b"", 1_700_000_000_000) for each in range(20)])
    with application.stream_threads._changed:  # no batch takes the first one before the last one is added
        for _ in range(threads):
            assert application.add_stream_thread() is not None
    application.wait_until_idle()
    return len(running.values()) - before - 1


def test_removal_waits_for_the_batch_of_the_thread(cluster: Cluster, tmp_path: Path) -> None:
    with cluster.application(CONTROLLED, {"num.stream.threads": "1"}) as running:
        application = running.application
        application.start()
        (name,) = _names(running)
        removed: list[str | None] = []
        with _blocked(running, tmp_path / "first"):
            with pytest.raises(RemovalTimeoutError, match="the removal continues") as error:
                application.remove_stream_thread(0.2)
            assert error.value.thread == name
            (thread,) = application.threads()
            assert (thread.state, thread.runs) == ("PENDING_SHUTDOWN", ("0",))
            new = application.add_stream_thread()
            assert str(new).endswith("-StreamThread-2"), "index 1 is not free yet"
        assert until(lambda: _names(running) == [new], TIMEOUT_SECONDS)
        with _blocked(running, tmp_path / "second"):
            remover = threading.Thread(target=lambda: removed.append(application.remove_stream_thread()))
            remover.start()
            assert until(
                lambda: [thread.state for thread in application.threads()] == ["PENDING_SHUTDOWN"],
                TIMEOUT_SECONDS,
            )
            assert removed == []
        remover.join(TIMEOUT_SECONDS)
        assert removed == [new]
        assert application.state is ClientState.RUNNING


def test_threads_are_added_and_removed_within_two_batches(cluster: Cluster) -> None:
    """A batch that runs at that time is the first one."""
    config = {"num.stream.threads": "1"}
    with (
        recorded_batches() as batches,
        cluster.application(MAP, config, partitions=4, records_at_once=40, VALUE="string") as running,
    ):
        for partition in range(4):
            running.feed(*[b"1"] * 2_000, partition=partition)
        running.application.start()
        assert until(lambda: len(batches) > 0, TIMEOUT_SECONDS)
        assert 1 <= batches_until_added(running.application, batches) <= 2
        assert batches_until_removed(running.application, batches) <= 2
        assert all(len(each) <= 2 for each in batches)
        assert any(len(each) == 2 for each in batches), "both threads take part"


@pytest.mark.soak  # without Spark: `runtime/driver/test_stream_threads`
def test_batch_that_waits_for_a_thread_ends_with_the_application(cluster: Cluster) -> None:
    with cluster.application(MAP, {"num.stream.threads": "1"}, VALUE="string") as running:
        running.application.start()
        assert until(running.application.remove_stream_thread, TIMEOUT_SECONDS)
        running.feed(b"1")
        assert until(
            lambda: any("stream thread" in part["waitsFor"] for part in _parts(running)), TIMEOUT_SECONDS
        )
        running.application.stop()
        assert running.application.wait(TIMEOUT_SECONDS)
        assert running.application.state is ClientState.NOT_RUNNING
        assert running.application.add_stream_thread() is None


def _parts(running: RunningApplication) -> list[Mapping[str, Any]]:
    return list(running.application.subtopology_status())


@contextmanager
def _failing(cluster: Cluster, handler: str, file: Path, threads: int = 2) -> Iterator[RunningApplication]:
    """Yield a running application with a record that fails as long as `file` exists."""
    config = {"num.stream.threads": str(threads), "uncaught.exception.handler": handler}
    file.touch()
    with cluster.application(CONTROLLED, config) as running:
        running.application.start()
        running.feed(b"1", b"fail %s" % str(file).encode(), b"3")
        yield running


def _heals(running: RunningApplication, file: Path) -> None:
    """Let the record succeed, and check that each record was processed."""
    file.unlink()
    assert until(lambda: running.values()[-1:] == [b"3"], TIMEOUT_SECONDS)
    assert running.application.stream_threads.pool.failed >= 1


def test_failed_thread_is_replaced_as_often_as_it_fails(cluster: Cluster, tmp_path: Path) -> None:
    file = tmp_path / "fail"
    with _failing(cluster, "replace-thread", file) as running:
        threads = running.application.stream_threads
        # More often than --restarts allows (3 in tests): only the handler decides.
        assert until(lambda: threads.pool.failed >= 4, TIMEOUT_SECONDS)
        assert threads.alive == 2
        assert running.application.state in (ClientState.RUNNING, ClientState.REBALANCING)
        _heals(running, file)


def test_failed_threads_are_shut_down_until_the_last_one_fails(cluster: Cluster, tmp_path: Path) -> None:
    file = tmp_path / "fail"
    with _failing(cluster, "shutdown-thread", file, threads=2) as running:
        application = running.application
        assert application.wait(TIMEOUT_SECONDS)
        assert application.state is ClientState.ERROR
        assert application.stream_threads.pool.failed == 2
        (problem,) = application.problems
        assert problem.code is ProblemCode.QUERY_FAILED


@pytest.mark.soak  # without Spark: `runtime/driver/test_uncaught_exceptions`
def test_client_shuts_down_at_the_first_failure(cluster: Cluster, tmp_path: Path) -> None:
    with _failing(cluster, "shutdown-client", tmp_path / "fail") as running:
        assert running.application.wait(TIMEOUT_SECONDS)
        assert running.application.state is ClientState.ERROR
        assert running.application.stream_threads.pool.failed == 1
        assert all(part["restarts"] == 0 for part in _parts(running))


def test_an_outage_that_lasts_longer_than_the_restarts_does_not_end_the_application(
    cluster: Cluster, own_broker: Callable[[], Broker], tmp_path: Path
) -> None:
    """The only broker is paused while a batch runs. Each record is processed once when it continues."""
    with own_broker() as broker:
        servers, file = broker.bootstrap_servers, tmp_path / "block"
        alone = attrs.evolve(cluster, topics=Topics(servers), servers=servers, restarts=1)
        with alone.application(CONTROLLED, {"processing.guarantee": "exactly_once_v2"}) as running:
            application = running.application
            application.start()
            (query,) = application.queries.values()
            with _blocked(running, file):
                running.feed(b"1", b"2")
                broker.pause()
            try:
                # Pauses of 0.2, 0.4, 0.8, 1.6 and 3.2 s have passed without an answer.
                assert until(
                    lambda: (
                        application.state.is_final
                        or (query.state is QueryState.WAITING and query.restart_in > 5.0)
                    ),
                    TIMEOUT_SECONDS,
                )
                assert application.state is ClientState.REBALANCING, application.problems
                assert "KafkaError" in _parts(running)[0]["failure"]
            finally:
                broker.resume()
            assert until(lambda: application.state is ClientState.RUNNING, TIMEOUT_SECONDS)
            assert until(lambda: len(running.values()) >= 3, TIMEOUT_SECONDS)
            application.wait_until_idle()
            assert running.values() == [b"block %s" % str(file).encode(), b"1", b"2"]
            assert application.problems == ()
            assert application.stream_threads.pool.failed >= 1, "as after any failure"


def test_handler_of_a_user_adds_a_thread(cluster: Cluster, tmp_path: Path) -> None:
    """The KIP's example: the new thread cannot have the name of the one that fails."""
    file = tmp_path / "fail"
    with _failing(cluster, f"{_HANDLERS}:AddsThread", file) as running:
        handler = running.application.handler
        assert isinstance(handler, AddsThread)
        assert until(lambda: bool(handler.added), TIMEOUT_SECONDS)
        failure = handler.failures[0]
        assert failure.thread.endswith("-StreamThread-1")
        assert (failure.subtopology, failure.failures_in_a_row) == ("0", 1)
        assert "the record fails while its file exists" in failure.reason
        assert str(handler.added[0]).endswith("-StreamThread-3")
        assert until(lambda: running.application.stream_threads.alive == 2, TIMEOUT_SECONDS)
        _heals(running, file)


def test_killed_worker_is_a_failure_of_the_thread_that_it_ran(cluster: Cluster, tmp_path: Path) -> None:
    file = tmp_path / "kill"
    config = {"num.stream.threads": "2", "uncaught.exception.handler": f"{_HANDLERS}:AddsThread"}
    with cluster.application(CONTROLLED, config, partitions=4) as running:
        application = running.application
        application.start()
        _put_all(running, b"1", partitions=4)
        application.wait_until_idle()
        # Twice: the process that owns the task, and the one that forwards the record to it.
        file.write_bytes(b"12")
        running.feed(b"kill %s" % str(file).encode(), partition=2)
        assert until(lambda: len(running.values()) == 5, TIMEOUT_SECONDS)
        assert isinstance(application.handler, AddsThread)
        failures = application.handler.failures
        assert failures[0].thread.rpartition("-")[2] in ("1", "2")
        assert failures[0].reason.startswith("A Python worker process ended without a Python error.")
        assert failures[-1].thread not in _names(running)
        assert application.stream_threads.pool.failed == len(failures)
        assert application.stream_threads.alive == 2


@pytest.mark.soak  # without Spark: `runtime/driver/test_uncaught_exceptions`
def test_failure_in_a_worker_reports_the_thread_that_it_happened_on(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark's message of an exception in Python does not say which task failed."""
    reported: list[str] = []
    failed_thread = StreamThreads.failed_thread

    def spy(threads: StreamThreads, name: str) -> str:
        reported.append(name)
        return failed_thread(threads, name)

    monkeypatch.setattr(StreamThreads, "failed_thread", spy)
    topology = CONTROLLED.replace("Controlled", "FailsToStart")
    config = {"num.stream.threads": "2", "client.id": "a", "uncaught.exception.handler": "replace-thread"}
    with cluster.application(topology, config) as running:
        file = Path(tempfile.gettempdir(), running.id)
        file.touch()
        try:
            running.application.start()
            running.feed(b"1")
            assert until(lambda: bool(reported), TIMEOUT_SECONDS)
            assert reported[0] == "a-StreamThread-1"
            assert [part["failure"] for part in _parts(running)] == ["OSError: the task cannot be opened"]
        finally:
            file.unlink()
        assert until(lambda: len(running.values()) == 1, TIMEOUT_SECONDS)


def test_handler_that_removes_a_thread_and_replaces_the_failed_one_does_not_hang(
    cluster: Cluster, tmp_path: Path
) -> None:
    """KAFKA-20873; the last thread, which fails and is removed, is not replaced."""
    with _failing(cluster, f"{_HANDLERS}:RemovesThread", tmp_path / "fail", threads=2) as running:
        handler = running.application.handler
        assert isinstance(handler, RemovesThread)
        assert until(lambda: len(handler.removed) == 2, TIMEOUT_SECONDS)
        # Thread 1 fails: thread 2 is removed, and its index is that of the new thread, which fails alone.
        assert [str(name).rpartition("-")[2] for name in handler.removed] == ["2", "2"]
        assert until(lambda: running.application.threads() == (), TIMEOUT_SECONDS)
        assert until(lambda: running.application.state is ClientState.RUNNING, TIMEOUT_SECONDS)
        assert running.application.add_stream_thread() is not None


@pytest.mark.soak  # without Spark: `runtime/driver/test_uncaught_exceptions`
def test_handler_that_raises_shuts_the_client_down(cluster: Cluster, tmp_path: Path) -> None:
    with _failing(cluster, f"{_HANDLERS}:Raises", tmp_path / "fail") as running:
        assert running.application.wait(TIMEOUT_SECONDS)
        assert running.application.state is ClientState.ERROR


def test_shutdown_of_the_application_reaches_its_other_client(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    do_not_notice_each_other(monkeypatch)
    file = tmp_path / "fail"
    config = {
        "uncaught.exception.handler": "shutdown-application",
        "processing.guarantee": "exactly_once_v2",
    }
    with cluster.application(CONTROLLED, config) as running:
        other = cluster.attach(running, "other")
        try:
            other.start()
            assert until(lambda: other.state is ClientState.RUNNING, TIMEOUT_SECONDS)
            while other.remove_stream_thread() is not None:
                pass  # so it processes no record, and cannot fail itself
            running.application.start()
            file.touch()
            running.feed(b"fail %s" % str(file).encode())
            assert running.application.wait(TIMEOUT_SECONDS)
            assert other.wait(TIMEOUT_SECONDS)
            assert {running.application.state, other.state} == {ClientState.ERROR}
            (own,), (requested,) = running.application.problems, other.problems
            assert own.why.startswith(
                "The failure of its stream thread was answered with shutdown-application"
            )
            assert requested.summary == "All clients of the application stop."
        finally:
            other.close()
        file.unlink()
        running.restart()
        assert until(lambda: len(running.values()) == 1, TIMEOUT_SECONDS), "the request is of the past"


def test_shutdown_of_the_application_reaches_a_client_that_waits(cluster: Cluster, tmp_path: Path) -> None:
    file = tmp_path / "fail"
    config = {"uncaught.exception.handler": "shutdown-application"}
    with cluster.application(CONTROLLED, config) as running:
        running.application.start()
        other = cluster.attach(running, "other")
        started = in_background(other.start)
        try:
            assert until(lambda: other.starting.startswith("waiting"), TIMEOUT_SECONDS)
            file.touch()
            running.feed(b"fail %s" % str(file).encode())
            assert running.application.wait(TIMEOUT_SECONDS)
            with pytest.raises(ProblemsError) as stopped:
                started.result(TIMEOUT_SECONDS)
        finally:
            other.close()
        assert stopped.value.problems[0].summary == "All clients of the application stop."
