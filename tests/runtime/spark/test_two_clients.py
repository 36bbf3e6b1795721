"""Two processes of one application at the same time: `headwater run` on two hosts, which share no folder.

The second one waits until the first one ends or is silent. A client that was silent commits nothing when it
continues: with exactly once, brokers fence it, and with at least once, its workers read that it was replaced.

In `make test`, `runtime/worker/test_active_client` stops a worker with at least once, hosts are frozen in
`runtime/worker/test_several_hosts` with both guarantees, and in `test_as_programs` a client waits.
"""

import os
import random
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import pytest

from headwater.kafka import Connection
from headwater.toolchain.broker import Broker
from headwater.toolchain.broker.readiness import until
from headwater_spark.driver.offsets import GroupOffsets
from headwater_spark.engine.records import TopicPartition
from tests.runtime.spark.kafka_topics import Topics
from tests.runtime.spark.open_transactions import cause_in_transaction, feed_and_stop
from tests.runtime.spark.process_application import TIMEOUT_SECONDS, ProcessApplication
from tests.runtime.spark.process_faults import Fault
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

_EXACTLY_ONCE, _AT_LEAST_ONCE = "exactly_once_v2", "at_least_once"
_BATCH = 100
"""The most records of a batch of the first client; the second one catches up in larger batches."""
_INPUTS = ("in", "counted-counts-repartition")


@attrs.define
class _Clients:
    """Two clients of one application; the second one has folders of its own."""

    first: ProcessApplication
    second: ProcessApplication

    def feed(self, records: int) -> None:
        self.first.feed(records)
        self.second.fed = self.first.fed

    @contextmanager
    def waiting(self) -> Iterator["tuple[subprocess.Popen[bytes], subprocess.Popen[bytes]]"]:
        """Run the first client, and the second one when the first one is active; return when it waits."""
        with self.first.run(until_idle=False, max_records=_BATCH) as first:
            self.first.await_counted(100, first)
            with self.second.run(until_idle=False) as second:
                assert _has_logged(self.second, "waiting: another client is active")
                yield first, second

    def await_passed(self, process: "subprocess.Popen[bytes]") -> None:
        """Wait until all records are forwarded and all counts are written and committed, or it has ended."""
        until(lambda: process.poll() is not None or self._is_done(), TIMEOUT_SECONDS)
        assert process.poll() is None, self.first.log() + self.second.log()

    def committed(self) -> Mapping[TopicPartition, int]:
        with self._offsets() as offsets:
            return offsets.last_committed(_partitions())

    def _is_done(self) -> bool:
        topics = self.first.topics
        passed = {record[5] for record in topics.get("passed")}
        counts = {(record[4], record[5]) for record in topics.get("counted")}
        if len(passed) < self.first.fed or len(counts) < self.first.fed:
            return False
        with self._offsets() as offsets:
            lag = offsets.read_backlogs({"all": _partitions()}, {})["all"].lag
        # The last offset of a partition may be that of a transaction marker.
        return lag == 0 or (self.first.guarantee == _EXACTLY_ONCE and lag is not None and lag <= 4)

    @contextmanager
    def _offsets(self) -> Iterator[GroupOffsets]:
        connection = Connection(bootstrap_servers=(self.first.broker.bootstrap_servers,))
        with closing(GroupOffsets(connection, "counted")) as offsets:
            yield offsets


_New = Callable[[str], AbstractContextManager[_Clients]]


def _partitions() -> list[TopicPartition]:
    return [(topic, partition) for topic in _INPUTS for partition in range(2)]


@pytest.fixture
def new_clients(own_broker: Callable[[], Broker], spark_jars: tuple[str, ...], tmp_path: Path) -> _New:
    @contextmanager
    def new(guarantee: str) -> Iterator[_Clients]:
        with own_broker() as broker:
            topics = Topics(broker.bootstrap_servers)
            first, second = (
                ProcessApplication(broker, topics, tmp_path / name, spark_jars, guarantee)
                for name in ("first", "second")
            )
            for each in (first, second):
                each.folder.mkdir()
            first.set_up()
            (second.folder / "document.yaml").write_bytes((first.folder / "document.yaml").read_bytes())
            yield _Clients(first, second)

    return new


def _has_logged(client: ProcessApplication, text: str) -> bool:
    return until(lambda: client.has_logged(text), TIMEOUT_SECONDS)


def test_a_second_client_with_exactly_once_waits_and_takes_over_from_a_killed_one(
    new_clients: _New,
) -> None:
    with new_clients(_EXACTLY_ONCE) as clients:
        clients.feed(300)
        with clients.waiting() as (first, second):
            draw = random.Random(1)  # noqa: S311
            owner = _stop_in_transaction(clients, first, draw)
            cause_in_transaction(Fault.DRIVER, clients.first, first, owner, draw)
            clients.feed(300)
            clients.await_passed(second)
            assert clients.second.has_logged("client takes over: the active one is silent")
        clients.second.check_results()


def test_a_second_client_with_at_least_once_waits_and_continues(
    new_clients: _New,
) -> None:
    with new_clients(_AT_LEAST_ONCE) as clients:
        clients.feed(500)
        with clients.waiting() as (first, second):
            clients.feed(300)
            clients.await_passed(first)
            first.send_signal(signal.SIGTERM)
            assert first.wait(TIMEOUT_SECONDS) == os.EX_OK, clients.first.log()
            clients.feed(300)
            clients.await_passed(second)
            second.send_signal(signal.SIGTERM)
            assert second.wait(TIMEOUT_SECONDS) == os.EX_OK, clients.second.log()
        clients.second.check_results()  # without a failure, also with at least once


@pytest.mark.parametrize("guarantee", [_AT_LEAST_ONCE, _EXACTLY_ONCE])
def test_a_client_that_was_silent_commits_nothing_when_it_continues(
    new_clients: _New, guarantee: str
) -> None:
    """Its driver, JVM and workers are stopped within a batch, until the other client has all its tasks.

    With exactly once, one of its tasks has an open transaction.
    """
    with new_clients(guarantee) as clients:
        clients.feed(300)
        with clients.waiting() as (first, second):
            if guarantee == _EXACTLY_ONCE:
                _stop_in_transaction(clients, first, random.Random(2))  # noqa: S311
            else:
                clients.feed(2_000)
                clients.first.await_counted(clients.first.topics.written("counted") + 100, first)
            stop_all(first.pid)
            assert len(clients.first.topics.get("passed")) < clients.first.fed, "it was stopped too late"
            clients.await_passed(second)
            assert clients.second.has_logged("client takes over: the active one is silent")
            before = clients.committed()
            continue_all(first.pid)
            assert first.wait(TIMEOUT_SECONDS) == 1, clients.first.log()
            assert clients.first.has_logged("error[NotRunnable] Another client of counted is active.")
            # A worker that is stopped between its last check and its commit still commits; it is repaired.
            assert until(lambda: clients.committed() == before, TIMEOUT_SECONDS), clients.second.log()
            clients.feed(300)
            clients.await_passed(second)
        if guarantee == _EXACTLY_ONCE:
            clients.second.check_results()
            return
        # The stopped process had one batch of each sub-topology.
        clients.second.check_at_least_once(2, _BATCH)


def _stop_in_transaction(clients: _Clients, process: "subprocess.Popen[bytes]", draw: random.Random) -> int:
    """Feed records, and stop a process of the first client in the transaction of its task; return it."""
    feed, appended = partial(clients.feed, 1_000), partial(draw.randrange, 1, 500)
    return feed_and_stop(clients.first, process, "passed", feed, appended)
