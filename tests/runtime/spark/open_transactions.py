"""The process that has an open transaction: it is stopped, so that a fault happens within the transaction.

A transaction of some tenths of a second is often committed before a process is found and killed.
"""

import logging
import os
import random
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headwater.kafka import Connection
from headwater.kafka.broker_connection import BrokerConnection, Message
from headwater.kafka.wire import NO_TAGS, ResponseReader, compact_array, compact_text
from headwater.toolchain.broker.readiness import until
from tests.runtime.spark.process_application import TIMEOUT_SECONDS, ProcessApplication, kill, kill_all
from tests.runtime.spark.process_faults import Fault
from tests.runtime.spark.processes import descendants, executors, is_stopped, kill_groups

if TYPE_CHECKING:
    import subprocess

_log = logging.getLogger(__name__)
_LIST_TRANSACTIONS = Message("ListTransactions", 66, 0, 0)
_ONGOING = "Ongoing"
_ANSWER_SECONDS = 30.0
_PAUSE_SECONDS = 0.002
_MOST_MISSES = 20


def feed_and_stop(
    application: ProcessApplication,
    process: "subprocess.Popen[bytes]",
    topic: str,
    feed: Callable[[], None],
    appended: Callable[[], int],
) -> int:
    """Feed records and stop a process in the transaction of its task, when a topic has some more offsets.

    `appended` returns how many. Again, while all transactions are committed before. Return the process.
    """
    for misses in range(_MOST_MISSES):
        before = application.topics.appended(topic)
        feed()
        owner = _stop_in_transaction(application, process, topic, before + appended())
        if owner is not None:
            _log.info("a process is stopped in a transaction, after %d misses", misses)
            return owner
    pytest.fail(f"no process was stopped in a transaction: {application.log()}")


def _stop_in_transaction(
    application: ProcessApplication, process: "subprocess.Popen[bytes]", topic: str, least: int
) -> int | None:
    """Stop a process in the transaction of its task, when a topic has `least` offsets; return the process.

    None = all transactions were committed before it was stopped. Offsets of open transactions count, too.
    """
    servers = application.broker.bootstrap_servers
    due = time.monotonic() + TIMEOUT_SECONDS
    while application.topics.appended(topic) < least:
        assert process.poll() is None, application.log()
        assert time.monotonic() < due, application.log()
        time.sleep(_PAUSE_SECONDS)
    for task in ongoing_transactions(servers):
        owner = _owner(application.folder / "state", task)
        if owner is None or not _send(owner, signal.SIGSTOP):
            continue
        assert until(lambda owner=owner: is_stopped(owner), TIMEOUT_SECONDS)  # type: ignore[misc]
        if task in ongoing_transactions(servers):
            return owner
        _send(owner, signal.SIGCONT)
    return None


def cause_in_transaction(
    fault: Fault,
    application: ProcessApplication,
    process: "subprocess.Popen[bytes]",
    owner: int,
    draw: random.Random,
) -> None:
    """Cause a fault while the process `owner` is stopped in a transaction; it continues, unless it is killed.

    A broker that was killed or paused runs again when this returns.
    """
    match fault:
        case Fault.DRIVER:
            kill_groups(process.pid)
            _send(owner, signal.SIGCONT)  # a stopped process does not notice that its JVM has ended
            kill_all(process)
        case Fault.WORKER:
            assert kill(owner)
        case Fault.EXECUTOR:
            [executor] = [each for each in executors(process.pid) if owner in descendants(each)]
            assert kill(executor)
            _send(owner, signal.SIGCONT)
        case Fault.BROKER_KILL:
            application.broker.kill()
            _send(owner, signal.SIGCONT)
            application.broker.start()
        case Fault.BROKER_PAUSE:
            application.broker.pause()
            _send(owner, signal.SIGCONT)
            time.sleep(draw.uniform(0.5, 12))
            application.broker.resume()
        case _:
            raise ValueError(fault)


def ongoing_transactions(servers: str) -> list[str]:
    """Return the transactional ids of the transactions that are open on a broker; a task has its name."""

    def transactional_id(reader: ResponseReader) -> str:
        found = reader.compact_text()
        reader.skip(8)  # the producer's id
        assert reader.compact_text() == _ONGOING
        reader.tagged_fields()
        return found

    def read(reader: ResponseReader) -> list[str]:
        reader.skip(4)  # throttle time
        assert reader.number(2) == 0, "the broker has not listed its transactions"
        assert not list(reader.compact_array(reader.compact_text)), "unknown states"
        return list(reader.compact_array(lambda: transactional_id(reader)))

    body = compact_array([compact_text(_ONGOING)]) + compact_array([]) + NO_TAGS
    connection = Connection(bootstrap_servers=(servers,))
    with BrokerConnection(connection, servers, _ANSWER_SECONDS, None) as connected:
        return connected.request(_LIST_TRANSACTIONS, body, _ANSWER_SECONDS, read)


def _owner(folder: Path, task: str) -> int | None:
    """Return the process that holds the lease of a task: the file is locked."""
    for file in folder.rglob(f"{task}.lease"):
        inode = file.stat().st_ino
        for line in Path("/proc/locks").read_text().splitlines():
            match line.split():
                case [_, "FLOCK", _, _, pid, place, *_] if place.rpartition(":")[2] == str(inode):
                    return int(pid)
                case _:
                    pass
    return None


def _send(pid: int, number: signal.Signals) -> bool:
    """Return whether the process exists."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)
        return True
    return False
