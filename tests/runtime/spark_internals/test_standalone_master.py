"""Which masters a URL names, and which applications are ended, by which of them."""

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event
from typing import Any

import pytest
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession
from structlog.testing import capture_logs

from headwater_spark.spark_internals import standalone_master
from headwater_spark.spark_internals.jvm import java_gateway
from headwater_spark.spark_internals.standalone_master import (
    Requests,
    end_application,
    master_addresses,
    replaced_application,
    run_requests,
    standalone_application,
)

_LOST = "app-20261126093056-0000"
_SECONDS = 60.0
_DRIVER = """
import sys
from pyspark.sql import SparkSession
builder = SparkSession.builder.master(sys.argv[1]).appName(sys.argv[2]).config("spark.ui.enabled", "false")
print(builder.getOrCreate().sparkContext.applicationId, flush=True)
sys.stdin.read()
"""


def test_the_masters_of_a_url() -> None:
    assert master_addresses("spark://first:7077") == (("first", 7077),)
    assert master_addresses("spark://first:7078,10.0.0.2:7079") == (("first", 7078), ("10.0.0.2", 7079))


def test_only_another_application_of_the_same_master_was_replaced() -> None:
    master = "spark://first:7077,second:7077"
    own = f"{master} app-20261126093056-0001"
    assert replaced_application(f"{master} {_LOST}", own) == _LOST
    assert replaced_application(f"{master} team.a_7", own) == "team.a_7", "spark.deploy.appIdPattern"
    for lost in (
        "",
        own,
        f"spark://first:7077 {_LOST}",
        f" {_LOST}",
        master,
        f"{master} ",
        f"{master} {'a' * 201}",
        f"{master} {_LOST} ",
        f"{master} {_LOST}\n",
    ):
        assert replaced_application(lost, own) == "", lost
    assert replaced_application(f" {_LOST}", "") == "", "the session has no master"


def _answering(*futures: str, reason: str = "") -> Requests:
    for each in futures:
        assert (yield each) == f"value of {each}"
    return reason


def _failing() -> Requests:
    yield from ()
    raise Py4JError("no such method")


def _value(future: str) -> str:
    if future == "refused":
        raise Py4JError("connection refused\nby the host")
    return f"value of {future}"


def _is_completed(future: str) -> bool:
    return future != "never"


def test_a_master_that_fails_or_does_not_answer_does_not_affect_the_others() -> None:
    requests = {
        "silent": _answering("never"),
        "down": _answering("refused"),
        "other": _failing(),
        "leader": _answering("reference", "state"),
    }
    reasons = run_requests(requests, _is_completed, _value, Event())
    assert reasons == {"down": "connection refused", "other": "no such method", "leader": ""}


def test_the_reasons_of_all_masters_are_returned_if_none_ends_the_application() -> None:
    requests = {"down": _answering("refused"), "standby": _answering("reference", reason="not active")}
    reasons = run_requests(requests, _is_completed, _value, Event())
    assert reasons == {"down": "connection refused", "standby": "not active"}


def test_a_stop_ends_the_wait_for_masters() -> None:
    stopping = Event()
    stopping.set()
    assert run_requests({"silent": _answering("never")}, _is_completed, _value, stopping) == {}


@pytest.mark.spark
def test_an_application_without_a_master_ends_no_other(spark: SparkSession) -> None:
    assert standalone_application(spark) == ""
    assert not end_application(spark, f"spark://first:7077 {_LOST}", Event())
    assert not end_application(spark, "", Event())


@contextmanager
def _master(spark: SparkSession) -> Iterator[int]:
    """Start a master in the JVM of the session; yield its port."""
    jvm: Any = java_gateway(spark).jvm
    started = jvm.org.apache.spark.deploy.master.Master.startRpcEnvAndEndpoint(
        "127.0.0.1", 0, 0, jvm.org.apache.spark.SparkConf()
    )
    try:
        yield started._1().address().port()
    finally:
        started._1().shutdown()


@contextmanager
def _driver(master: str, name: str) -> Iterator[str]:
    """Start a driver of a master that has no workers; yield the id of its application."""
    process = subprocess.Popen(
        [sys.executable, "-c", _DRIVER, master, name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_active_one_of_several_masters_ends_only_an_application_of_the_same_name(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the other masters, one refuses connections, and one accepts them and never answers."""
    with _master(spark) as port, socket.socket() as silent, socket.socket() as down:
        for each in (silent, down):
            each.bind(("127.0.0.1", 0))
        silent.listen()
        others = [f"127.0.0.1:{each.getsockname()[1]}" for each in (down, silent)]
        url = f"spark://{','.join([*others, f'127.0.0.1:{port}'])}"
        monkeypatch.setattr(
            standalone_master, "standalone_application", lambda _: f"{url} app-20261126093056-9999"
        )
        name, active = str(spark.sparkContext.appName), f"spark://127.0.0.1:{port}"
        with _driver(active, name) as application:
            with capture_logs() as logs, monkeypatch.context() as another:
                another.setattr(spark.sparkContext, "appName", "another name")
                another.setattr(standalone_master, "standalone_application", lambda _: f"{active} {_LOST}")
                assert not end_application(spark, f"{active} {application}", Event())
            (line,) = logs
            assert f"the application has another name: {name}" in json.dumps(line)
            assert end_application(spark, f"{url} {application}", Event())
