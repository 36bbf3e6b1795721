"""The answers to failures of stream threads (KIP-671) while workers and drivers are killed.

After each run the application is started again; at the end the output is compared with the input.
"""

import random
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import pytest

from headwater.toolchain.broker import Broker
from headwater.toolchain.broker.readiness import until
from tests.control.conftest import HttpClient
from tests.runtime.spark.kafka_topics import Topics
from tests.runtime.spark.open_transactions import feed_and_stop
from tests.runtime.spark.process_application import (
    TIMEOUT_SECONDS,
    ProcessApplication,
    kill,
    kill_all,
)
from tests.runtime.spark.processes import python_workers

if TYPE_CHECKING:
    import subprocess

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.soak,
    pytest.mark.timeout(3000),
]

_RECORDS = 300
_THREADS = 3
_FAILED = 1
"""The exit code of a client that has ended with an error."""
_URL = re.compile(r"endpoint started.*?(http://[0-9.:]+)")
_COLORS = re.compile(r"\x1b\[[0-9;]*m")


@attrs.frozen
class Clients:
    """One application and the brokers that it runs on; each client has its own folder."""

    broker: Broker
    folder: Path
    jars: tuple[str, ...]

    def client(self, name: str, answer: str) -> ProcessApplication:
        folder = self.folder / name
        folder.mkdir()
        config = f"num.stream.threads: {_THREADS}\n    uncaught.exception.handler: {answer}"
        topics = Topics(self.broker.bootstrap_servers)
        return ProcessApplication(self.broker, topics, folder, self.jars, config=config)


@pytest.fixture
def clients(
    own_broker: Callable[[], Broker], spark_jars: tuple[str, ...], tmp_path: Path
) -> Iterator[Clients]:
    with own_broker() as broker:
        yield Clients(broker, tmp_path, spark_jars)


_RUNS = 4


@pytest.mark.parametrize("answer", ["replace-thread", "shutdown-thread", "shutdown-client"])
def test_results_are_exact_after_answers_to_kills(clients: Clients, answer: str) -> None:
    """In every second run, the driver is killed while it handles the failure.

    In `make test`, `test_stream_threads` and `runtime/driver/test_uncaught_exceptions` have each answer, and
    `test_expansion_kills` kills workers.
    """
    draw = random.Random(_RUNS)  # noqa: S311
    application = clients.client("client", answer)
    application.set_up()
    for run in range(_RUNS):
        logged = application.log_size() if run else 0
        with application.run(
            "local[4]", until_idle=False, max_records=100, options=["--http", "127.0.0.1:0"]
        ) as process:
            if run % 2:
                _kill_while_handling(application, process, logged, draw)
                continue
            kills = 0
            while process.poll() is None and kills < (4 * _THREADS if answer == "replace-thread" else 1_000):
                _await_counted(application, draw.randrange(1, _RECORDS // 2), process)
                kills += sum(kill(worker) for worker in python_workers(process.pid)[:1])
            text = _text(application, logged)
            failed = text.count("stream thread failed")
            if answer == "replace-thread":
                assert process.poll() is None, text[-4000:]
                assert failed >= 1
                alive = HttpClient(_url(text)).get("/control/threads").json["threads"]
                assert len([each for each in alive if each["state"] != "PENDING_SHUTDOWN"]) == _THREADS
            else:
                assert process.wait(TIMEOUT_SECONDS) == _FAILED, text[-4000:]
                assert "error[QueryFailed]" in _text(application, logged)
                assert failed >= (_THREADS if answer == "shutdown-thread" else 1)
    application.finish()
    application.check_results()


@pytest.mark.parametrize("runs", [3])
def test_all_clients_stop_after_a_kill_and_the_next_start_is_exact(clients: Clients, runs: int) -> None:
    """The other client has no stream threads, so it cannot fail itself."""
    client, other = (clients.client(name, "shutdown-application") for name in ("client", "other"))
    client.set_up()
    (other.folder / "document.yaml").write_bytes((client.folder / "document.yaml").read_bytes())
    draw = random.Random(runs)  # noqa: S311
    for _ in range(runs):
        with _without_threads(other) as standby:
            with client.run("local[4]", until_idle=False, max_records=100) as process:
                killed = 0
                while process.poll() is None:
                    _await_counted(client, draw.randrange(1, _RECORDS // 2), process)
                    killed += sum(kill(worker) for worker in python_workers(process.pid)[:1])
                assert killed
                assert process.returncode == _FAILED, client.log()
            assert standby.wait(TIMEOUT_SECONDS) == _FAILED, other.log()
            assert "All clients of the application stop." in other.log()
    client.finish()
    client.check_results()


@contextmanager
def _without_threads(application: ProcessApplication) -> Iterator["subprocess.Popen[bytes]"]:
    logged = application.log_size() if (application.folder / "run.log").exists() else 0
    options = ["--http", "127.0.0.1:0"]
    with application.run("local[2]", until_idle=False, options=options) as process:
        assert until(lambda: _URL.search(_text(application, logged)), TIMEOUT_SECONDS)
        endpoint = HttpClient(_url(_text(application, logged)))

        def has_none() -> bool:
            status = endpoint.get("/control/threads").json
            if status["state"] in ("RUNNING", "REBALANCING") and status["threads"]:
                endpoint.post("/control/threads", {"action": "remove"})
            return status["state"] == "RUNNING" and not status["threads"]

        assert until(has_none, TIMEOUT_SECONDS), application.log()
        yield process


def _kill_while_handling(
    application: ProcessApplication, process: "subprocess.Popen[bytes]", logged: int, draw: random.Random
) -> None:
    """Kill a worker in a transaction, so that its batch fails, and the driver when it has noticed that."""
    assert kill(
        feed_and_stop(
            application,
            process,
            "counted",
            partial(application.feed, _RECORDS),
            partial(draw.randrange, 1, _RECORDS // 2),
        )
    )
    is_noticed = until(lambda: "stream thread failed" in _text(application, logged), TIMEOUT_SECONDS)
    assert is_noticed, application.log()
    time.sleep(draw.uniform(0, 0.5))  # not a wait: the driver is killed at a random time
    assert process.poll() is None, application.log()
    kill_all(process)


def _await_counted(application: ProcessApplication, number: int, process: "subprocess.Popen[bytes]") -> None:
    before = application.counted()
    application.feed(_RECORDS)
    application.await_counted(before + number, process)


def _text(application: ProcessApplication, logged: int) -> str:
    log = application.folder / "run.log"
    text = log.read_bytes()[logged:].decode(errors="replace") if log.exists() else ""
    return _COLORS.sub("", text)


def _url(text: str) -> str:
    found = _URL.search(text)
    assert found is not None, text
    return found[1]
