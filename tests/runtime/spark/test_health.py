"""Health follows progress: a real application whose worker or JVM hangs is neither ready nor live."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen

import pytest

from tests.control.conftest import HttpClient
from tests.runtime.spark.kafka_topics import Topics
from tests.runtime.spark.processes import jvm, python_workers
from tests.runtime.spark.programs import Application
from toolchain.broker import local
from toolchain.broker.readiness import until

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

_START_SECONDS = 240.0
_SECONDS = 120.0
_RECORDS = 10
_HEALTHY = {"ok": True, "reason": ""}


@pytest.fixture
def application(
    kafka: local.LocalBroker, spark_jars: tuple[str, ...], tmp_path: Path, unique: Callable[[str], str]
) -> Application:
    servers = kafka.bootstrap_servers
    found = Application(Topics(servers), servers, ",".join(spark_jars), tmp_path, unique("app"))
    found.prepare("automatic", "max.poll.interval.ms: 4000")
    return found


@contextmanager
def _running(application: Application) -> Iterator[tuple[Popen[bytes], HttpClient]]:
    command = [*application.headwater_run(), "--http", "127.0.0.1:0", "--log-format", "json"]
    with application.process(command, "one") as process:
        assert until(lambda: application.endpoint("one"), _START_SECONDS), application.log("one")
        client = HttpClient(application.endpoint("one"))
        assert until(lambda: client.get("/health/ready").status == 200, _START_SECONDS), application.log(
            "one"
        )
        yield process, client


def _answers(client: HttpClient, status: int) -> bool:
    return {client.get(f"/health/{path}").status for path in ("live", "ready")} == {status}


def _is_idle(client: HttpClient) -> bool:
    """Return whether all sub-topologies have processed all records."""
    parts = client.get("/status").json["runtime"]["subtopologies"]
    return [part["recordsRead"] for part in parts] == [_RECORDS] * 2 and all(
        part["lag"] == 0 for part in parts
    )


def _reason(client: HttpClient) -> str:
    return str(client.get("/health/live").json["reason"])


def test_application_whose_worker_hangs_is_not_healthy_until_it_continues(application: Application) -> None:
    with _running(application) as (process, client):
        application.put(2)  # starts the workers
        assert until(lambda: python_workers(process.pid), _SECONDS)
        assert until(lambda: client.get("/status").json["runtime"]["subtopologies"][0]["lag"] == 0, _SECONDS)
        workers = python_workers(process.pid)
        for worker in workers:
            os.kill(worker, signal.SIGSTOP)
        application.put(10)
        assert until(lambda: _answers(client, 503), _SECONDS)
        assert "has made no progress for" in _reason(client)
        parts = client.get("/status").json["runtime"]["subtopologies"]
        waiting = [part["waitsFor"] for part in parts if part["stalled"]]
        assert waiting
        assert all(text.startswith("batch ") for text in waiting)
        for worker in workers:
            os.kill(worker, signal.SIGCONT)
        assert until(lambda: _answers(client, 200), _SECONDS), client.get("/status").text


def test_application_whose_jvm_hangs_is_not_healthy_until_it_continues(application: Application) -> None:
    with _running(application) as (process, client):
        hanging = jvm(process.pid)
        os.kill(hanging, signal.SIGSTOP)
        application.put(10)
        assert until(lambda: _answers(client, 503), _SECONDS)
        assert "It waits for" in _reason(client)
        os.kill(hanging, signal.SIGCONT)
        assert until(lambda: _answers(client, 200), _SECONDS), client.get("/status").text


def test_application_without_input_stays_healthy(application: Application) -> None:
    with _running(application) as (_, client):
        application.put(_RECORDS)
        assert until(lambda: _is_idle(client), _SECONDS)
        assert not until(lambda: not _answers(client, 200), 8.0), _reason(client)
